package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

// Helpers that all stores in tables have.
var (
	do, mustPut, works, use = tabletest.Do, tabletest.MustPut, tabletest.Works, tabletest.Use
	fails, says, becomes    = tabletest.Fails, tabletest.Says, tabletest.Becomes
)

func TestMain(m *testing.M) { testserver.Main(m, func() error { return goleak.Find() }) }

// shared is the server of the tests that do it no harm.
func shared(tb testing.TB) *testserver.Server { return testserver.Shared(tb, testserver.Postgres) }

// own is the URL of a database of its own on that server. A database has one store, unless
// somebody makes a second one on purpose.
func own(tb testing.TB) string {
	tb.Helper()
	return testdb.New(tb, shared(tb), fmt.Sprintf("d%d_%d", time.Now().UnixNano(), schemas.Add(1)))
}

var schemas atomic.Int64

// newSchema makes an empty schema on a server and returns its name.
func newSchema(tb testing.TB, address string) string {
	tb.Helper()
	name := schemaName()
	db := connect(tb, address)
	do(tb, db, `CREATE SCHEMA `+name)
	tb.Cleanup(func() { do(tb, db, `DROP SCHEMA `+name+` CASCADE`) })
	return name
}

func schemaName() string { return fmt.Sprintf("t%d_%d", time.Now().UnixNano(), schemas.Add(1)) }

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

// fresh is a store in a schema of its own on the shared server, and a connection
// to look at it with.
func fresh(tb testing.TB, options ...string) (*Store, *sql.DB) {
	tb.Helper()
	schema := schemaName()
	address := at(tb, own(tb), append(options, "search_path="+schema)...)
	db := connect(tb, address)
	do(tb, db, `CREATE SCHEMA `+schema)
	return New(connect(tb, address)), db
}

// exists says whether there is a table or view of that name in the search_path.
func exists(tb testing.TB, db *sql.DB, name string) (ok bool) {
	tb.Helper()
	if err := db.QueryRow(`SELECT to_regclass($1) IS NOT NULL`, name).Scan(&ok); err != nil {
		tb.Fatal(err)
	}
	return ok
}

// connect opens a database as a program would, and closes it with the test. It keeps connections that are
// idle for a moment: a login takes a server longer than most of what a test asks for.
func connect(tb testing.TB, address string) *sql.DB {
	tb.Helper()
	db := tabletest.Connect(tb, "pgx", address)
	db.SetMaxIdleConns(8)
	return db
}

func TestTable(t *testing.T) {
	tabletest.Run(t, tabletest.Server{
		Driver: "pgx",
		New:    func(db *sql.DB) tabletest.Store { return New(db) },
		Ensure: func(ctx context.Context, s tabletest.Store, conn *sql.Conn) error {
			return s.(*Store).table.Ensure(ctx, conn)
		},
		Fresh: func(tb testing.TB) tabletest.Database {
			address := own(tb)
			return database(tb, at(tb, address, "search_path="+newSchema(tb, address)))
		},
		Start: func(tb testing.TB) (*testserver.Server, tabletest.Database) {
			pg := testserver.Postgres(tb)
			return pg, database(tb, pg.URL())
		},
		Exists: exists,
		Levels: [][]string{nil},
		Silent: func(tb testing.TB, d tabletest.Database) *sql.DB {
			config, err := pgx.ParseConfig(d.DSN(tb, d.Addr))
			if err != nil {
				tb.Fatal(err)
			}
			// Or it would see that nobody answers before it sends anything.
			db := stdlib.OpenDB(*config, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }))
			tb.Cleanup(func() { db.Close() })
			return db
		},
		Views: tabletest.Views{
			Segments: `SELECT string_agg(concat_ws(' ', series, granted, max, increment, step, strict, rate, granted_by <> '',
				abs(extract(epoch FROM granted_at - written)) < 60), ';' ORDER BY series) FROM firn_sequences`,
			SegmentsWant: "even 100 1000 2 50 f 0.8333333333333334 t t;none 0 9223372036854775807 1 100 f t;strict 1 9223372036854775807 1 100 t 0.016666666666666666 t t",
			Serials:      `SELECT concat_ws(' ', series, period, count) FROM firn_documents`,
		},
	})
}

// database is address for the tests that all stores in tables pass.
func database(tb testing.TB, address string) tabletest.Database {
	return tabletest.Database{Addr: host(tb, address), DSN: func(tb testing.TB, addr string, options ...string) string {
		return at(tb, through(tb, address, addr), options...)
	}}
}
