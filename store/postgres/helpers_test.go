package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

func TestMain(m *testing.M) { testserver.Main(m, func() error { return goleak.Find() }) }

// shared is the server of the tests that do it no harm.
func shared(tb testing.TB) *testserver.Server { return testserver.Shared(tb, testserver.Postgres) }

var schemas atomic.Int64

// newSchema makes an empty schema on a server and returns its name.
func newSchema(tb testing.TB, address string) string {
	tb.Helper()
	name := fmt.Sprintf("t%d_%d", time.Now().UnixNano(), schemas.Add(1))
	db := connect(tb, address)
	do(tb, db, `CREATE SCHEMA `+name)
	tb.Cleanup(func() { do(tb, db, `DROP SCHEMA `+name+` CASCADE`) })
	return name
}

// at returns address with options, "name=value" each.
func at(tb testing.TB, address string, options ...string) string {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	q := u.Query()
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		q.Set(name, value)
	}
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String()
}

// through returns address as a proxy, a pooler or a host of another name is reached.
func through(tb testing.TB, address, host string) string {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	u.Host = host
	return u.String()
}

// inDatabase returns address with another database.
func inDatabase(tb testing.TB, address, name string) string {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

func host(tb testing.TB, address string) string {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	return u.Host
}

// connect opens a database as a program would, and closes it with the test.
func connect(tb testing.TB, address string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("pgx", address)
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

// fresh is a store in a schema of its own on the shared server, and a connection
// to look at it with.
func fresh(tb testing.TB, options ...string) (*Store, *sql.DB) {
	tb.Helper()
	address := shared(tb).URL()
	address = at(tb, address, append(options, "search_path="+newSchema(tb, address))...)
	return New(connect(tb, address)), connect(tb, address)
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
		if err = use(tb, s, 5*time.Second); err == nil {
			return
		}
	}
	tb.Fatalf("a minute later: %v", err)
}

// use reads and writes once.
func use(tb testing.TB, s *Store, d time.Duration) error {
	ctx, cancel := context.WithTimeout(tb.Context(), d)
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

// exists says whether there is a table or view of that name in the search_path.
func exists(tb testing.TB, db *sql.DB, name string) (ok bool) {
	tb.Helper()
	if err := db.QueryRow(`SELECT to_regclass($1) IS NOT NULL`, name).Scan(&ok); err != nil {
		tb.Fatal(err)
	}
	return ok
}
