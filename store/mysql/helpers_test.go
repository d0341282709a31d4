package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

func TestMain(m *testing.M) {
	mysql.SetLogger(log.New(io.Discard, "", 0)) // of each connection that is cut
	testserver.Main(m, func() error { return goleak.Find() })
}

// shared is the server of the tests that do it no harm.
func shared(tb testing.TB) *testserver.Server { return testserver.Shared(tb, testserver.MariaDB) }

var databases atomic.Int64

// newDatabase makes an empty database on a server and returns how to connect to it.
func newDatabase(tb testing.TB, s *testserver.Server) *mysql.Config {
	tb.Helper()
	c := config(tb, s)
	db := connect(tb, c)
	c.DBName = fmt.Sprintf("t%d_%d", time.Now().UnixNano(), databases.Add(1))
	do(tb, db, "CREATE DATABASE "+c.DBName)
	tb.Cleanup(func() { do(tb, db, "DROP DATABASE "+c.DBName) })
	return c
}

// config is how to connect to a server.
func config(tb testing.TB, s *testserver.Server) *mysql.Config {
	tb.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		tb.Fatal(err)
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	return c
}

// with returns a changed copy.
func with(c *mysql.Config, change func(*mysql.Config)) *mysql.Config {
	c = c.Clone()
	change(c)
	return c
}

// through is c by way of a proxy.
func through(c *mysql.Config, p *testserver.Proxy) *mysql.Config {
	return with(c, func(c *mysql.Config) { c.Addr = p.Addr() })
}

// connect opens a database as a program would, and closes it with the test.
func connect(tb testing.TB, c *mysql.Config) *sql.DB {
	tb.Helper()
	db, err := sql.Open("mysql", c.FormatDSN())
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(8)
	tb.Cleanup(func() { db.Close() })
	return db
}

func do(tb testing.TB, db *sql.DB, queries ...string) {
	tb.Helper()
	for _, q := range queries {
		if _, err := db.ExecContext(context.WithoutCancel(tb.Context()), q); err != nil {
			tb.Fatalf("%s: %v", q, err)
		}
	}
}

// fresh is a store in a database of its own on the shared server, a connection to
// look at it with, and how to connect to it.
func fresh(tb testing.TB) (*Store, *sql.DB, *mysql.Config) {
	tb.Helper()
	c := newDatabase(tb, shared(tb))
	return New(connect(tb, c)), connect(tb, c), c
}

func mustPut(tb testing.TB, s *Store, key, value string, cond store.Condition) store.Record {
	tb.Helper()
	r, err := s.Put(tb.Context(), key, []byte(value), cond)
	if err != nil {
		tb.Fatalf("Put %s: %v", key, err)
	}
	return r
}

// works requires that a store reads and writes, within a minute.
func works(tb testing.TB, s *Store) {
	tb.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = use(tb, s); err == nil {
			return
		}
	}
	tb.Fatalf("a minute later: %v", err)
}

// isAgain requires that a record is read as it was, within a minute.
func isAgain(tb testing.TB, s *Store, was store.Record) {
	tb.Helper()
	got, err := s.Get(tb.Context(), was.Key)
	for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); got, err = s.Get(tb.Context(), was.Key) {
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil || got.Version != was.Version {
		tb.Errorf("%+v, %v; was %+v", got, err, was)
	}
}

// use reads and writes once.
func use(tb testing.TB, s *Store) error {
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Second)
	defer cancel()
	r, err := s.Get(ctx, "k")
	if err != nil {
		return err
	}
	_, err = s.Put(ctx, "k", []byte(`1`), store.Condition{Version: r.Version})
	return err
}

// fails requires of all methods an error that says what is the matter, and is
// neither a success nor a conflict. put is what the Put returned.
func fails(tb testing.TB, s *Store, cond store.Condition, want ...string) (put store.Record) {
	tb.Helper()
	for what, call := range map[string]func(context.Context) error{
		"Get":        func(ctx context.Context) error { _, err := s.Get(ctx, "k"); return err },
		"List":       func(ctx context.Context) error { _, err := s.List(ctx, ""); return err },
		"Durability": func(ctx context.Context) error { _, err := s.Durability(ctx); return err },
		"Put":        func(ctx context.Context) (err error) { put, err = s.Put(ctx, "k", []byte(`2`), cond); return err },
	} {
		long := time.Minute
		if slices.Contains(want, "not answered in time") {
			long = time.Second
		}
		ctx, cancel := context.WithTimeout(tb.Context(), long)
		says(tb, what, call(ctx), want...)
		cancel()
	}
	return put
}

func says(tb testing.TB, what string, err error, want ...string) {
	tb.Helper()
	if err == nil || errors.Is(err, store.ErrConflict) {
		tb.Errorf("%s: %v", what, err)
		return
	}
	for _, w := range want {
		if strings.Contains(err.Error(), w) {
			return
		}
	}
	tb.Errorf("%s: %v: does not say %q", what, err, want)
}

// exists says whether there is a table or view of that name.
func exists(tb testing.TB, db *sql.DB, name string) (ok bool) {
	tb.Helper()
	err := db.QueryRow(`SELECT COUNT(*) > 0 FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?`, name).Scan(&ok)
	if err != nil {
		tb.Fatal(err)
	}
	return ok
}
