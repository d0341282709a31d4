package mysql

import (
	"context"
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
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

// TestUpdateUsual: the caller's connections come back as they were.
func TestUpdateUsual(t *testing.T) {
	good, _, c := fresh(t)
	s := New(connect(t, with(c, func(c *mysql.Config) { c.Params = map[string]string{"wait_timeout": "77"} })))
	s.db.SetMaxOpenConns(1)
	mustPut(t, good, "k", `0`, store.Condition{})
	id := 0
	for _, f := range []func(store.Record) ([]byte, error){
		tabletest.To2,
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

// TestUpdateDeadline: one whose COMMIT hangs, as it does with the server's disk,
// returns by its deadline, with what it tried; so does one that ends with nothing.
func TestUpdateDeadline(t *testing.T) {
	server := testserver.MariaDB(t)
	c := config(t, server)
	good := New(connect(t, c))
	mustPut(t, good, "k", `1`, store.Condition{})
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		db := tabletest.Watch(t, "mysql", c.FormatDSN(), &tabletest.Hooks{Before: func(statement string) {
			if statement == end {
				server.Freeze(t)
			}
		}})
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
		now, err := good.Update(t.Context(), "k", tabletest.To2)
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
	refused("statements in the log", option("binlog_format", "'STATEMENT'"), tabletest.To2, "binlog_format = 'ROW'")
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
