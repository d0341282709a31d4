package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// to2 is what an Update writes whatever it is given.
func to2(store.Record) ([]byte, error) { return []byte(`2`), nil }

// TestUpdateLost loses the request or the reply of each statement of an Update.
func TestUpdateLost(t *testing.T) {
	good, _, c := fresh(t)
	proxy := testserver.NewProxy(t, c.Addr)
	mustPut(t, good, "k", `0`, store.Condition{})
	landed := map[string]bool{}
	for _, x := range []struct {
		name string
		when string
		lose func(int)
	}{
		{"BEGIN", "START TRANSACTION", proxy.LoseReplies},
		{"UPDATE lost", "update", proxy.LoseRequests},
		{"UPDATE unanswered", "update", proxy.LoseReplies},
		{"COMMIT lost", "COMMIT", proxy.LoseRequests},
		{"COMMIT unanswered", "COMMIT", proxy.LoseReplies},
	} {
		lose := map[string]func(){x.when: func() { x.lose(1) }}
		db := sql.OpenDB(&txConnector{through(c, proxy).FormatDSN(), lose})
		defer db.Close()
		was, err := good.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		put, err := New(db).Update(t.Context(), "k", func(store.Record) ([]byte, error) {
			if f := lose["update"]; f != nil {
				f()
			}
			return []byte(`2`), nil
		})
		says(t, x.name, err, "connection was lost")
		if unknown := x.when == "COMMIT"; unknown != (put.Version != "") {
			t.Errorf("%s: tried %q", x.name, put.Version)
		}
		// The row is free again, and has what was tried or what it had.
		now, err := good.Update(t.Context(), "k", func(r store.Record) ([]byte, error) {
			landed[x.name] = r.Version != was.Version
			if landed[x.name] && r.Version != put.Version {
				t.Errorf("%s: tried %q, was %q, is %q", x.name, put.Version, was.Version, r.Version)
			}
			return []byte(`3`), nil
		})
		if err != nil || now.Version == "" {
			t.Errorf("%s: and then %v", x.name, err)
		}
	}
	if landed["COMMIT lost"] || !landed["COMMIT unanswered"] {
		t.Errorf("carried out: %v", landed)
	}
}

// A txConnector calls functions before statements.
type txConnector struct {
	dsn    string
	before map[string]func()
}

func (c *txConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := mysql.MySQLDriver{}.Open(c.dsn)
	return &txConn{conn.(myConn), c.before}, err
}

func (c *txConnector) Driver() driver.Driver { return mysql.MySQLDriver{} }

type myConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
}

type txConn struct {
	myConn
	before map[string]func()
}

func (c *txConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if f := c.before[query]; f != nil {
		f()
	}
	return c.myConn.ExecContext(ctx, query, args)
}

// TestUpdateNoTable: where nothing was ever written there is nothing to hold, and
// where there was a table it was forgotten.
func TestUpdateNoTable(t *testing.T) {
	s, db, _ := fresh(t)
	calls := 0
	f := func(r store.Record) ([]byte, error) {
		if calls++; r.Version != "" || r.Key != "k" || r.Read.IsZero() {
			t.Errorf("f is given %+v", r)
		}
		return []byte(`1`), nil
	}
	for _, made := range []bool{false, true} {
		calls = 0
		if r, err := s.Update(t.Context(), "k", f); !errors.Is(err, store.ErrConflict) || r.Version != "" || calls != 1 {
			t.Errorf("table: %t: %+v, %v after %d calls", made, r, err, calls)
		}
		mine := errors.New("mine")
		if _, err := s.Update(t.Context(), "k", func(store.Record) ([]byte, error) { return nil, mine }); err != mine {
			t.Errorf("table: %t: %v", made, err)
		}
		if exists(t, db, "firn_records") != made {
			t.Error("an Update makes no table")
		}
		mustPut(t, s, map[bool]string{false: "other", true: "third"}[made], `1`, store.Condition{})
	}
	updated := New(db)
	if _, err := updated.Update(t.Context(), "other", to2); err != nil {
		t.Error(err)
	}
	do(t, db, `DROP TABLE firn_records`)
	for _, s := range []*Store{s, updated} {
		calls = 0
		var forgot *store.ForgotError
		if r, err := s.Update(t.Context(), "k", f); !errors.As(err, &forgot) || r.Version != "" || calls != 0 {
			t.Errorf("%+v, %v after %d calls", r, err, calls)
		}
	}
}

// TestUpdateStopped stops a process that holds the row: the others go on, and it
// learns that it wrote nothing.
func TestUpdateStopped(t *testing.T) {
	s, db, _ := fresh(t)
	mustPut(t, s, "k", `0`, store.Condition{})
	other := New(db)
	holds, thaw := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		r, err := s.Update(t.Context(), "k", func(store.Record) ([]byte, error) {
			close(holds)
			<-thaw // as a process that is stopped
			return []byte(`1`), nil
		})
		if r.Version != "" {
			t.Errorf("COMMIT was not sent, and there is the Version %s", r.Version)
		}
		ended <- err
	}()
	<-holds
	start := time.Now()
	r, err := other.Update(t.Context(), "k", to2)
	if took := time.Since(start); err != nil || took < time.Second || took > time.Minute {
		t.Errorf("after %v: %v", took, err)
	}
	close(thaw)
	says(t, "Update", <-ended, "connection was lost")
	if got, err := other.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
	works(t, s)
}

// TestUpdateUsual: the caller's connections come back as they were.
func TestUpdateUsual(t *testing.T) {
	good, _, c := fresh(t)
	s := New(connect(t, with(c, func(c *mysql.Config) { c.Params = map[string]string{"wait_timeout": "77"} })))
	s.db.SetMaxOpenConns(1)
	mustPut(t, good, "k", `0`, store.Condition{})
	id := 0
	for _, f := range []func(store.Record) ([]byte, error){
		to2,
		func(store.Record) ([]byte, error) { return nil, errors.New("mine") },
		func(store.Record) ([]byte, error) { return []byte("\xff"), nil },
	} {
		for _, key := range []string{"k", "new"} {
			s.Update(t.Context(), key, f)
			var timeout, now int
			var level string
			if err := s.db.QueryRow(`SELECT @@wait_timeout, @@tx_isolation, CONNECTION_ID()`).Scan(&timeout, &level, &now); err != nil {
				t.Fatal(err)
			}
			if timeout != 77 || level != "REPEATABLE-READ" || id != 0 && id != now {
				t.Errorf("wait_timeout = %d, %s, connection %d that was %d", timeout, level, now, id)
			}
			id = now
		}
	}
	// One that was given up is not left as it is either.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if r, err := s.Update(ctx, "k", func(store.Record) ([]byte, error) { cancel(); return []byte(`9`), nil }); err == nil || r.Version != "" {
		t.Errorf("cancelled by f: %+v, %v", r, err)
	}
	var timeout int
	if err := s.db.QueryRow(`SELECT @@wait_timeout`).Scan(&timeout); err != nil || timeout != 77 {
		t.Errorf("wait_timeout = %d, %v", timeout, err)
	}
	if got, err := good.Get(t.Context(), "k"); err != nil || string(got.Value) != `2` {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestUpdateGivesUp: one that waits for the row returns by its deadline, and does
// not have it later.
func TestUpdateGivesUp(t *testing.T) {
	s, db, _ := fresh(t)
	mustPut(t, s, "k", `0`, store.Condition{})
	s.db.SetMaxOpenConns(2)
	_, err := New(db).Update(t.Context(), "k", func(store.Record) ([]byte, error) {
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			r, err := s.Update(ctx, "k", func(store.Record) ([]byte, error) {
				t.Error("f is called")
				return nil, errors.New("never")
			})
			if !errors.Is(err, context.DeadlineExceeded) || r.Version != "" || time.Since(start) > 20*time.Second {
				t.Errorf("%+v, %v after %v", r, err, time.Since(start))
			}
		}
		return []byte(`1`), nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := s.Update(t.Context(), "k", to2); err != nil {
		t.Error(err)
	}
}

// TestUpdateDeadline: one whose COMMIT hangs, as it does with the server's disk,
// returns by its deadline, with what it tried; so does one that ends with nothing.
func TestUpdateDeadline(t *testing.T) {
	server := testserver.MariaDB(t)
	c := config(t, server)
	good := New(connect(t, c))
	mustPut(t, good, "k", `1`, store.Condition{})
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		db := sql.OpenDB(&txConnector{c.FormatDSN(), map[string]func(){end: func() { server.Freeze(t) }}})
		defer db.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		late := time.AfterFunc(20*time.Second, func() { server.Thaw(t) }) // or it would wait for ever
		start := time.Now()
		var none error
		if end == "ROLLBACK" {
			none = errors.New("nothing")
		}
		put, err := New(db).Update(ctx, "k", func(store.Record) ([]byte, error) { return []byte(`2`), none })
		if took := time.Since(start); took > 15*time.Second {
			t.Errorf("%s: took %v", end, took)
		}
		if unknown := none == nil; unknown && !errors.Is(err, context.DeadlineExceeded) || !unknown && !errors.Is(err, none) || unknown != (put.Version != "") {
			t.Errorf("%s: %+v, %v", end, put, err)
		}
		if late.Stop() {
			server.Thaw(t)
		}
		now, err := good.Update(t.Context(), "k", to2)
		if err != nil || now.Version == "" {
			t.Errorf("%s: and then %+v, %v", end, now, err)
		}
	}
}

// TestUpdateRefused has the server, or the table, refuse.
func TestUpdateRefused(t *testing.T) {
	server := testserver.MariaDB(t, "--log-bin=b", "--server-id=1")
	c := config(t, server)
	db := connect(t, c)
	s := New(db)
	r := mustPut(t, s, "k", `0`, store.Condition{})
	option := func(name, value string) *Store {
		return New(connect(t, with(c, func(c *mysql.Config) { c.Params = map[string]string{name: value} })))
	}
	refused := func(what string, s *Store, f func(store.Record) ([]byte, error), want string) {
		t.Helper()
		put, err := s.Update(t.Context(), "k", f)
		says(t, what, err, want)
		if put.Version != "" {
			t.Errorf("%s: for certain not carried out, and there is a Version", what)
		}
		var version string
		if err := db.QueryRow("SELECT version FROM firn_records WHERE `key` = 'k'").Scan(&version); err != nil || version != string(r.Version) {
			t.Errorf("%s: %s, %v", what, version, err)
		}
	}
	never := func(store.Record) ([]byte, error) {
		t.Error("f is called")
		return nil, errors.New("never")
	}
	refused("no JSON", s, func(store.Record) ([]byte, error) { return []byte("\xff"), nil }, "not JSON")
	refused("autocommit", option("autocommit", "0"), never, "leave out autocommit")
	refused("statements in the log", option("binlog_format", "'STATEMENT'"), to2, "binlog_format = 'ROW'")
	do(t, db, `SET GLOBAL read_only = 1`)
	refused("read-only", s, never, "connect to the primary")
	do(t, db, `SET GLOBAL read_only = 0`)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT * FROM firn_records FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	refused("lock wait", option("innodb_lock_wait_timeout", "1"), never, "innodb_lock_wait_timeout")
	refused("max_statement_time", option("max_statement_time", "0.1"), never, "max_statement_time")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkUpdateCrowd has 64 replace a record, by one of its length and by one of
// another, which is slow where all of them wait for the row.
func BenchmarkUpdateCrowd(b *testing.B) {
	c := newDatabase(b, testserver.MariaDB(b, "--max-connections=200"))
	mustPut(b, New(connect(b, c)), "k", `0`, store.Condition{})
	for _, lengths := range []int{1, 60} {
		b.Run(fmt.Sprint("lengths=", lengths), func(b *testing.B) {
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for range 64 {
				s := New(connect(b, c))
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := s.Update(b.Context(), "k", func(store.Record) ([]byte, error) {
							return fmt.Appendf(nil, `"%0*d"`, 300+rand.N(lengths), 0), nil
						}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
