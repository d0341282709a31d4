package shard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard"
)

// TestFollow: a shard that has moved is found where it went, again and again, and by
// whoever knows of it only what was long ago.
func TestFollow(t *testing.T) {
	all := newServers(t, "mod", 1, "a", "b", "c")
	c := openCluster(t, all.pools(t), nil)
	old := openCluster(t, all.pools(t), nil)
	var ids []firn.ID
	at := "a"
	for i, to := range []string{"b", "c", "b", "a", "c"} {
		ids = append(ids, mustInsert(t, c.Shard(0), fmt.Sprint(i)))
		all.move(t, 0, at, to)
		at = to
		if got := whereIs(t, c.Shard(0)); got != all[to].Config().Database {
			t.Fatalf("after the move to %s it is in %s", to, got)
		}
	}
	for i, id := range ids {
		if textOf(t, c, id) != fmt.Sprint(i) || textOf(t, old, id) != fmt.Sprint(i) {
			t.Errorf("row %d", i)
		}
		if i > 0 && id <= ids[i-1] {
			t.Errorf("%d after %d", id, ids[i-1])
		}
	}
	fresh := openCluster(t, all.pools(t), nil)
	if r, _ := fresh.Map().Route(0); r.Server != "c" {
		t.Errorf("route %+v", r)
	}
}

// TestFence: a transaction that meets the fence after it has begun is rolled back and
// run again where the shard is, whatever f makes of the error.
func TestFence(t *testing.T) {
	errOpaque := errors.New("something went wrong")
	all := newServers(t, "mod", 1, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	from, to := "a", "b"
	for name, does := range map[string]func(err error) error{
		"returned": func(err error) error { return err },
		"wrapped": func(err error) error {
			if err != nil {
				return fmt.Errorf("insert: %w", err)
			}
			return nil
		},
		"hidden": func(err error) error {
			if err != nil {
				return errOpaque
			}
			return nil
		},
		"swallowed": func(error) error { return nil },
		// in a savepoint, which was rolled back to
		"nested": func(err error) error { return err },
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			err := c.Shard(0).InTx(t.Context(), func(tx pgx.Tx) error {
				if runs++; runs == 1 {
					all.move(t, 0, from, to)
				}
				insert := func(tx pgx.Tx) error {
					_, err := tx.Exec(t.Context(), "INSERT INTO item (text) VALUES ($1)", name)
					return err
				}
				if name == "nested" {
					return does(pgx.BeginFunc(t.Context(), tx, insert))
				}
				return does(insert(tx))
			})
			if err != nil || runs != 2 {
				t.Fatalf("%v after %d runs", err, runs)
			}
			if n := query[int](t, all[to].Conn, "SELECT count(*) FROM insta0.item WHERE text = '"+name+"'"); n != 1 {
				t.Errorf("%d rows", n)
			}
			from, to = to, from
		})
	}
}

// TestErrorsOfTheCaller are returned, with shard and server, and run nothing again.
func TestErrorsOfTheCaller(t *testing.T) {
	all := newServers(t, "mod", 2, "a")
	c := openCluster(t, all.pools(t), nil)
	mine := errors.New("mine")
	for what, f := range map[string]func(tx pgx.Tx) error{
		"mine": func(pgx.Tx) error { return mine },
		"duplicate key": func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "INSERT INTO item (id) VALUES (1), (1)")
			return err
		},
		`"itme" does not exist`: func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "INSERT INTO itme VALUES (1)")
			return err
		},
		"unexpectedly resulted in rollback": func(tx pgx.Tx) error {
			tx.Exec(t.Context(), "SELECT 1/0")
			return nil
		},
		"ended the transaction itself": func(tx pgx.Tx) error { return tx.Commit(t.Context()) },
		"while it was away": func(tx pgx.Tx) error {
			tx.Conn().Close(t.Context())
			return errors.New("while it was away")
		},
		"lost before the commit": func(tx pgx.Tx) error { tx.Conn().Close(t.Context()); return nil },
		// As a function of the caller's might raise it, in a part that was rolled back.
		"nested": func(tx pgx.Tx) error {
			inner, err := tx.Begin(t.Context())
			if err != nil {
				return err
			}
			_, err = inner.Exec(t.Context(), "DO $$ BEGIN RAISE 'nested' USING ERRCODE = 'ID002', DETAIL = 'b'; END $$")
			return errors.Join(err, inner.Rollback(t.Context()))
		},
	} {
		runs := 0
		err := c.Shard(1).InTx(t.Context(), func(tx pgx.Tx) error { runs++; return f(tx) })
		var e *shard.TxError
		if !errors.As(err, &e) || e.Shard != 1 || e.Server != "a" || runs != 1 || errors.Is(err, shard.ErrAmbiguous) {
			t.Errorf("%s: %v after %d runs", what, err, runs)
		}
		failsWith(t, err, "", what)
	}
	if err := c.Shard(0).InTx(t.Context(), func(pgx.Tx) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("%v", err)
	}
	if n := query[int](t, all["a"].Conn, "SELECT count(*) FROM insta1.item"); n != 0 {
		t.Errorf("%d rows", n)
	}
	mustInsert(t, c.Shard(1), "") // it still works
}

func TestPanic(t *testing.T) {
	all := newServers(t, "mod", 1, "a")
	p := all.pools(t)
	c := openCluster(t, p, nil)
	func() {
		defer func() { recover() }()
		c.Shard(0).InTx(t.Context(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "INSERT INTO item DEFAULT VALUES"); err != nil {
				t.Error(err)
			}
			panic("f")
		})
	}()
	if n := query[int](t, all["a"].Conn, "SELECT count(*) FROM insta0.item"); n != 0 {
		t.Errorf("%d rows", n)
	}
	eventually(t, func() error {
		if n := p["a"].Stat().AcquiredConns(); n != 0 {
			return fmt.Errorf("%d connections were not given back", n)
		}
		return nil
	})
}

// TestClosed: a shard that is closed is waited for, as long as was said.
func TestClosed(t *testing.T) {
	all := newServers(t, "mod", 1, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	above := all.leave(t, 0, "a", "b")
	done := make(chan error, 1)
	go func() {
		_, err := insert(t.Context(), c.Shard(0), "waited")
		done <- err
	}()
	// What has waited has asked b.
	asked := func() error {
		if r, _ := c.Map().Route(0); r.Server != "b" {
			return errors.New("the server was not looked at again")
		}
		return nil
	}
	eventually(t, asked)
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	all.arrive(t, 0, "a", "b", above)
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	mustExec(t, all["b"].Conn, "SELECT firn.close(0)")
	short := openCluster(t, all.pools(t), &shard.Options{Wait: 30 * time.Millisecond})
	_, err := insert(t.Context(), short.Shard(0), "")
	failsWith(t, err, "ID001", "shard 0 on b", "closed", "firn shard status")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err = insert(ctx, c.Shard(0), ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	failsWith(t, err, "", "shard 0 on b")
}

// TestNotHere: what else firn.enter refuses is looked into, and said.
func TestNotHere(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil, sqlstate string
		words           []string
	}{
		"another cluster": {"UPDATE firn.server SET cluster = 'decaf'", "ID006", []string{"another cluster", "does the server's pool lead"}},
		"a copy":          {"UPDATE firn.shard SET system = 1", "ID003", []string{"firn shard reopen"}},
		"forgotten":       {"DELETE FROM firn.generator; DELETE FROM firn.shard", "ID005", []string{"firn shard doctor"}},
		"no firn":         {"DROP SCHEMA firn CASCADE", "3F000", []string{"knows nothing of firn"}},
		"no right":        {"REVOKE EXECUTE ON FUNCTION firn.enter FROM app", "42501", []string{"--role"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := newServers(t, "mod", 1, "a")
			p := all.pools(t)
			c := openCluster(t, p, nil)
			mustExec(t, all["a"].Conn, tt.spoil)
			failsWith(t, c.Shard(0).InTx(t.Context(), nothing), tt.sqlstate, append(tt.words, "shard 0 on a")...)
			if n := p["a"].Stat().NewConnsCount(); n != 1 {
				t.Errorf("%d connections were made, and one is enough", n)
			}
		})
	}
}

// TestOpenedElsewhere: where the server that had a shard says that it has not, the
// others are asked.
func TestOpenedElsewhere(t *testing.T) {
	for name, spoil := range map[string]string{
		"a copy":    "UPDATE firn.shard SET system = 1",
		"forgotten": "DELETE FROM firn.generator; DELETE FROM firn.shard",
		"closed":    "SELECT firn.close(0)",
	} {
		t.Run(name, func(t *testing.T) {
			all := newServers(t, "mod", 1, "a", "b")
			c := openCluster(t, all.pools(t), nil)
			mustExec(t, all["a"].Conn, spoil)
			mustExec(t, all["b"].Conn, "UPDATE firn.shard SET state = 'closed'; SELECT firn.open(0)")
			if got := whereIs(t, c.Shard(0)); got != all["b"].Config().Database {
				t.Errorf("it is in %s", got)
			}
		})
	}
}

// TestOpenedElsewhereNoWait: who does not wait finds it the next time, or soon.
func TestOpenedElsewhereNoWait(t *testing.T) {
	all := newServers(t, "mod", 1, "a", "b")
	c := openCluster(t, all.pools(t), &shard.Options{Wait: -1})
	mustExec(t, all["a"].Conn, "SELECT firn.close(0)")
	mustExec(t, all["b"].Conn, "UPDATE firn.shard SET state = 'closed'; SELECT firn.open(0)")
	eventually(t, func() error { return c.Shard(0).InTx(t.Context(), nothing) })
}

// TestTwoOpen: nobody is sent to a shard that two servers have open.
func TestTwoOpen(t *testing.T) {
	all := newServers(t, "mod", 1, "a", "b")
	mustExec(t, all["b"].Conn, "UPDATE firn.shard SET state = 'closed'; SELECT firn.open(0)")
	c := openCluster(t, all.pools(t), &shard.Options{Wait: 20 * time.Millisecond})
	failsWith(t, c.Shard(0).InTx(t.Context(), nothing), "", "shard 0", "open on a and b")
	mustExec(t, all["a"].Conn, "SELECT firn.close(0)")
	eventually(t, func() error { return c.Shard(0).InTx(t.Context(), nothing) })
}

// TestMovedAwayFromTheDead: a shard moved, and its old server died before the program heard of
// it. What that one said last does not keep the program from the new one.
func TestMovedAwayFromTheDead(t *testing.T) {
	all := newServers(t, "mod", 1, "a", "b")
	p := all.pools(t)
	proxy := testserver.NewProxy(t, testserver.Shared(t, testserver.Postgres).Addr())
	p["a"] = pool(t, asApp(strings.Replace(all["a"].url, testserver.Shared(t, testserver.Postgres).Addr(), proxy.Addr(), 1)))
	c := openCluster(t, p, nil)
	mustInsert(t, c.Shard(0), "")
	proxy.Refuse(true)
	proxy.Cut()
	all.move(t, 0, "a", "b")
	mustInsert(t, c.Shard(0), "")
	if got := whereIs(t, c.Shard(0)); got != all["b"].Config().Database {
		t.Errorf("it is in %s", got)
	}
}

// TestNoPool: a shard that went to a server which the program has no pool for, and came
// back.
func TestNoPool(t *testing.T) {
	all := newServers(t, "mod", 1, "a", "b")
	c := openCluster(t, all.pools(t, "a"), nil)
	mustInsert(t, c.Shard(0), "")
	all.move(t, 0, "a", "b")
	failsWith(t, c.Shard(0).InTx(t.Context(), nothing), "", "shard 0 is on server b", "opened without")
	all.move(t, 0, "b", "a")
	eventually(t, func() error { return c.Shard(0).InTx(t.Context(), nothing) })
}

func TestTxOptions(t *testing.T) {
	all := newServers(t, "mod", 1, "a")
	c := openCluster(t, all.pools(t), nil)
	for want, o := range map[string]pgx.TxOptions{
		"read committed off off": {},
		"serializable on on":     {IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly, DeferrableMode: pgx.Deferrable},
		"repeatable read off on": {IsoLevel: pgx.RepeatableRead, DeferrableMode: pgx.Deferrable},
		"read committed on off":  {AccessMode: pgx.ReadOnly, DeferrableMode: pgx.NotDeferrable},
	} {
		var got string
		err := c.Shard(0).InTxOptions(t.Context(), o, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT concat_ws(' ', current_setting('transaction_isolation'),
				current_setting('transaction_read_only'), current_setting('transaction_deferrable'))`).Scan(&got)
		})
		if err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	err := c.Shard(0).InTxOptions(t.Context(), pgx.TxOptions{BeginQuery: "begin"}, nothing)
	failsWith(t, err, "", "BeginQuery")
}

// TestSearchPath: names mean the shard's, in statements that were prepared for another
// shard too, and nothing of it stays.
func TestSearchPath(t *testing.T) {
	all := newServers(t, "mod", 2, "a")
	p := pool(t, asApp(all["a"].url)+"&pool_max_conns=1")
	c := openCluster(t, map[string]*pgxpool.Pool{"a": p}, nil)
	for i := range 6 {
		s := c.ForNumber(int64(i))
		id := mustInsert(t, s, fmt.Sprint(i)) // one statement, one connection
		if parts, err := firn.MustLayout("instagram").Decode(id); err != nil || parts.Shard != s.Number() {
			t.Errorf("%v, %v", parts, err)
		}
	}
	for n := range 2 {
		if got := query[int](t, all["a"].Conn, fmt.Sprintf("SELECT count(*) FROM insta%d.item", n)); got != 3 {
			t.Errorf("shard %d has %d rows", n, got)
		}
	}
	c.Shard(0).InTx(t.Context(), func(pgx.Tx) error { return errors.New("rolled back") })
	var path string
	if err := p.QueryRow(t.Context(), "SHOW search_path").Scan(&path); err != nil || path != `"$user", public` {
		t.Errorf("the search path outside of a transaction is %s, %v", path, err)
	}
}

// TestLoad: eight write while a shard goes to and fro. Each row that was acknowledged
// is there once, on the shard's server, and no other is.
func TestLoad(t *testing.T) {
	all := newServers(t, "mod", 1, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	acknowledged := map[firn.ID]string{}
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				text := fmt.Sprintf("%d of %d", i, w)
				id, err := insert(t.Context(), c.Shard(0), text)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if acknowledged[id] != "" {
					t.Errorf("%d was given twice", id)
				}
				acknowledged[id] = text
				mu.Unlock()
			}
		})
	}
	from, to := "a", "b"
	for range 10 {
		mu.Lock()
		before := len(acknowledged)
		mu.Unlock()
		all.move(t, 0, from, to)
		from, to = to, from
		eventually(t, func() error { // they go on there
			mu.Lock()
			defer mu.Unlock()
			if len(acknowledged) < before+20 && !t.Failed() {
				return fmt.Errorf("%d rows, and %d before the move", len(acknowledged), before)
			}
			return nil
		})
	}
	stop()
	writers.Wait()
	rows, err := all[from].Query(t.Context(), "SELECT id, text FROM insta0.item")
	if err != nil {
		t.Fatal(err)
	}
	var id firn.ID
	var text string
	n := 0
	if _, err := pgx.ForEachRow(rows, []any{&id, &text}, func() error {
		if n++; acknowledged[id] != text {
			t.Errorf("%d is %q, and what was acknowledged is %q", id, text, acknowledged[id])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n != len(acknowledged) {
		t.Errorf("%d rows, and %d were acknowledged", n, len(acknowledged))
	}
}

// TestStandby: where a server's address leads to its standby, and to that when it was
// promoted, nothing is written until somebody has opened the shards there.
func TestStandby(t *testing.T) {
	server := testserver.Postgres(t)
	all := servers{"a": openDatabase(t, server.URL())}
	all.make(t, "a", "mod", 1, func(int) bool { return true })
	proxy := testserver.NewProxy(t, server.Addr())
	p := pool(t, asApp(strings.Replace(server.URL(), server.Addr(), proxy.Addr(), 1)))
	c := openCluster(t, map[string]*pgxpool.Pool{"a": p}, nil)
	last := mustInsert(t, c.Shard(0), "")
	standby := testserver.PostgresStandby(t, server)

	proxy.Target(standby.Addr())
	proxy.Cut()
	failsWith(t, c.Shard(0).InTx(t.Context(), nothing), "ID003", "shard 0 on a", "standby")
	standby.Promote(t)
	failsWith(t, c.Shard(0).InTx(t.Context(), nothing), "ID003", "shard 0 on a", "promoted", "firn shard reopen")
	mustExec(t, connect(t, standby.URL()), "SELECT firn.take_incarnation(), firn.open(0)")
	if id := mustInsert(t, c.Shard(0), ""); id <= last {
		t.Errorf("%d after %d", id, last)
	}
}

// TestBack: a shard that was followed, and then opened where it came from, is found
// there.
func TestBack(t *testing.T) {
	all := newServers(t, "mod", 1, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	all.move(t, 0, "a", "b")
	mustInsert(t, c.Shard(0), "")
	mustExec(t, all["b"].Conn, "SELECT firn.close(0)")
	mustExec(t, all["a"].Conn, "UPDATE firn.shard SET state = 'closed'; SELECT firn.open(0)")
	if got := whereIs(t, c.Shard(0)); got != all["a"].Config().Database {
		t.Errorf("it is in %s", got)
	}
}

// TestDifferingShards: with statements that are not kept, shards may have types of their
// own, and differ while a migration runs.
func TestDifferingShards(t *testing.T) {
	all := newServers(t, "mod", 2, "a")
	for n := range 2 {
		mustExec(t, all["a"].Conn, fmt.Sprintf("CREATE TYPE insta%[1]d.mood AS ENUM ('glad'); ALTER TABLE insta%[1]d.item ADD mood insta%[1]d.mood", n))
	}
	mustExec(t, all["a"].Conn, "ALTER TABLE insta1.item ADD more integer")
	p := pool(t, asApp(all["a"].url)+"&pool_max_conns=1&default_query_exec_mode=exec")
	c := openCluster(t, map[string]*pgxpool.Pool{"a": p}, nil)
	for i := range 4 {
		err := c.ForNumber(int64(i)).InTx(t.Context(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "INSERT INTO item (mood) VALUES ($1)", "glad"); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), "SELECT * FROM item WHERE id > $1", 1)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
