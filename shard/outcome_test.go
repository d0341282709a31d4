package shard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard"
)

// through is a cluster of one server, a, reached through a proxy.
func through(t *testing.T) (servers, *testserver.Proxy, *shard.Cluster) {
	t.Helper()
	all := newServers(t, "mod", 2, "a")
	addr := testserver.Shared(t, testserver.Postgres).Addr()
	proxy := testserver.NewProxy(t, addr)
	p := pool(t, strings.Replace(asApp(all["a"].url), addr, proxy.Addr(), 1))
	return all, proxy, openCluster(t, map[string]*pgxpool.Pool{"a": p}, nil)
}

// TestCommit: what is said of a commit is what became of it.
func TestCommit(t *testing.T) {
	all, proxy, c := through(t)
	mustExec(t, all["a"].Conn, `
		CREATE FUNCTION insta0.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF new.text = 'refused' THEN RAISE 'refused' USING ERRCODE = '23000'; END IF;
			IF new.text = 'given up' THEN PERFORM pg_advisory_xact_lock(4711); END IF; RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON insta0.item DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION insta0.refuse()`)
	ctx, cancel := context.WithCancel(t.Context())
	holder := connect(t, all["a"].url)
	mustExec(t, holder, "SELECT pg_advisory_lock(4711)")
	cancelInCommit := func() {
		eventually(t, func() error {
			n, err := tryQuery[int](t, holder, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted")
			if err == nil && n == 0 {
				err = errors.New("nobody commits")
			}
			return err
		})
		cancel()
	}
	for _, tt := range []struct {
		text      string
		meanwhile func(tx pgx.Tx)
		ambiguous bool
		rows      int // -1: either
	}{
		{"committed", func(pgx.Tx) {}, false, 1},
		{"refused", func(pgx.Tx) {}, false, 0},
		{"request lost", func(pgx.Tx) { proxy.LoseRequests(1) }, true, 0},
		{"reply lost", func(pgx.Tx) { proxy.LoseReplies(1) }, true, 1},
		{"ended by the server", func(tx pgx.Tx) {
			mustExec(t, all["a"].Conn, fmt.Sprintf("SELECT pg_terminate_backend(%d, 10000)", tx.Conn().PgConn().PID()))
		}, true, 0},
		{"given up", func(pgx.Tx) { go cancelInCommit() }, true, -1},
		{"given up before", func(pgx.Tx) { cancel() }, false, 0},
	} {
		runs := 0
		err := c.Shard(0).InTx(ctx, func(tx pgx.Tx) error {
			runs++
			_, err := tx.Exec(ctx, "INSERT INTO item (text) VALUES ($1)", tt.text)
			tt.meanwhile(tx)
			return err
		})
		if errors.Is(err, shard.ErrAmbiguous) != tt.ambiguous || (err == nil) != (tt.rows == 1 && !tt.ambiguous) || runs != 1 {
			t.Errorf("%s: %v after %d runs", tt.text, err, runs)
		}
		if rows := query[int](t, all["a"].Conn, "SELECT count(*) FROM insta0.item WHERE text = '"+tt.text+"'"); rows != tt.rows && tt.rows >= 0 {
			t.Errorf("%s: %d rows, and %v was reported", tt.text, rows, err)
		}
		if ctx.Err() != nil {
			ctx, cancel = context.WithCancel(t.Context())
		}
	}
	cancel()
}

// TestLostAnywhere cuts connections at any moment under writers. A transaction is
// there if that was reported, and is not if another error was. make full has more writers, and
// cuts them more often.
func TestLostAnywhere(t *testing.T) {
	all, proxy, c := through(t)
	done := make(chan struct{})
	var mu sync.Mutex
	outcome := map[string]error{}
	var committed atomic.Int64
	var writers sync.WaitGroup
	crowd, cuts := 4, 20
	if testserver.Long() {
		crowd, cuts = 8, 60
	}
	for w := range crowd {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				text := fmt.Sprintf("%d of %d", i, w)
				_, err := insert(t.Context(), c.ForNumber(int64(i)), text)
				if err == nil {
					committed.Add(1)
				}
				mu.Lock()
				outcome[text] = err
				mu.Unlock()
			}
		})
	}
	for range cuts {
		before := committed.Load()
		eventually(t, func() error { // each cut meets them at work
			if committed.Load() <= before {
				return errors.New("nothing is committed any more")
			}
			return nil
		})
		time.Sleep(rand.N(3 * time.Millisecond))
		proxy.Cut()
	}
	close(done)
	writers.Wait()
	rows, ambiguous, failed := map[string]int{}, 0, 0
	for n := range 2 {
		var text string
		r, err := all["a"].Query(t.Context(), fmt.Sprintf("SELECT text FROM insta%d.item", n))
		if err == nil {
			_, err = pgx.ForEachRow(r, []any{&text}, func() error { rows[text]++; return nil })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for text, err := range outcome {
		switch {
		case rows[text] > 1:
			t.Errorf("%s is there %d times", text, rows[text])
		case err == nil && rows[text] == 0:
			t.Errorf("%s was acknowledged and is not there", text)
		case errors.Is(err, shard.ErrAmbiguous):
			ambiguous++
		case err != nil && rows[text] != 0:
			t.Errorf("%s is there, and it was said: %v", text, err)
		case err != nil:
			failed++
		}
	}
	t.Logf("%d committed, %d failed, %d ambiguous", committed.Load(), failed, ambiguous)
}

// TestRestart: a server that ends and comes again costs those who are in a transaction
// theirs, and nobody else anything.
func TestRestart(t *testing.T) {
	server := testserver.Postgres(t)
	all := servers{"a": openDatabase(t, server.URL())}
	all.make(t, "a", "mod", 1, func(int) bool { return true })
	c := openCluster(t, all.pools(t), nil)
	const writers = 4
	var all4 sync.WaitGroup
	in := make(chan struct{}, writers)
	for range writers { // so that there are idle connections
		all4.Go(func() {
			err := c.Shard(0).InTx(t.Context(), func(pgx.Tx) error {
				in <- struct{}{}
				for len(in) < writers {
					time.Sleep(time.Millisecond)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all4.Wait()
	server.Kill(t)
	came := make(chan error, writers)
	for range writers {
		go func() { _, err := insert(t.Context(), c.Shard(0), ""); came <- err }()
	}
	server.Start(t)
	for range writers {
		if err := <-came; err != nil {
			t.Error(err)
		}
	}

	server.Kill(t)
	short := openClusterLater(t, all, server)
	failsWith(t, short.Shard(0).InTx(t.Context(), nothing), "", "shard 0 on a", "refused")
}

// openClusterLater opens a cluster while its server runs, which does not afterwards.
func openClusterLater(t *testing.T, all servers, server *testserver.Server) *shard.Cluster {
	t.Helper()
	server.Start(t)
	c := openCluster(t, all.pools(t), &shard.Options{Wait: 50 * time.Millisecond})
	server.Kill(t)
	return c
}

// TestPgBouncer: all of it works where each transaction gets another connection, and a
// connection serves the transactions of many.
func TestPgBouncer(t *testing.T) {
	all := newServers(t, "mod", 2, "a", "b")
	server := testserver.Shared(t, testserver.Postgres)
	bouncer := testserver.PgBouncer(t, server, "default_pool_size = 1")
	pools := map[string]*pgxpool.Pool{}
	for name, db := range all {
		pools[name] = pool(t, strings.Replace(db.url, server.Addr(), bouncer.Addr(), 1)+"&default_query_exec_mode=exec")
	}
	c := openCluster(t, pools, nil)
	all.move(t, 1, "b", "a") // both are on one connection now
	var clients sync.WaitGroup
	for w := range 6 {
		clients.Go(func() {
			for i := range 20 {
				s := c.ForNumber(int64(i + w))
				id, err := insert(t.Context(), s, "")
				if err != nil {
					t.Error(err)
				} else if c.ForID(id) != s {
					t.Errorf("%d was written on %v", id, s)
				}
				var path string
				if err := pools["a"].QueryRow(t.Context(), "SHOW search_path").Scan(&path); err != nil || path != `"$user", public` {
					t.Errorf("search path %s, %v", path, err)
				}
			}
		})
	}
	clients.Wait()
	for n := range 2 {
		if got := query[int](t, all["a"].Conn, fmt.Sprintf("SELECT count(*) FROM insta%d.item", n)); got != 60 {
			t.Errorf("shard %d has %d rows", n, got)
		}
	}

	// The fence, and a commit whose connection is lost behind PgBouncer.
	runs := 0
	err := c.Shard(0).InTx(t.Context(), func(tx pgx.Tx) error {
		if runs++; runs == 1 {
			all.move(t, 0, "a", "b")
		}
		_, err := tx.Exec(t.Context(), "INSERT INTO item DEFAULT VALUES")
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("%v after %d runs", err, runs)
	}
	err = c.Shard(0).InTx(t.Context(), func(tx pgx.Tx) error {
		var pid int
		if err := tx.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			return err
		}
		mustExec(t, all["b"].Conn, fmt.Sprintf("SELECT pg_terminate_backend(%d, 10000)", pid))
		return nil
	})
	if !errors.Is(err, shard.ErrAmbiguous) {
		t.Errorf("%v, and nobody knows", err)
	}
	if err := c.Shard(0).InTx(t.Context(), nothing); err != nil {
		t.Error(err)
	}
}

// endsWith ends a context as soon as a query has failed.
type endsWith struct{ cancel context.CancelFunc }

func (e endsWith) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (e endsWith) TraceQueryEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	if d.Err != nil {
		e.cancel()
	}
}

// TestEndedBetween: a context that ends after the server's answer, and before it is
// waited, is in the error too.
func TestEndedBetween(t *testing.T) {
	all := newServers(t, "mod", 1, "a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	config, err := pgxpool.ParseConfig(asApp(all["a"].url))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Tracer = endsWith{cancel}
	traced, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer traced.Close()
	c := openCluster(t, map[string]*pgxpool.Pool{"a": traced}, nil)
	mustExec(t, all["a"].Conn, "SELECT firn.close(0)")
	_, err = insert(ctx, c.Shard(0), "")
	failsWith(t, err, "ID001", "shard 0 on a")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
