package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

// Helpers that all stores in tables have.
var (
	do, mustPut, works   = tabletest.Do, tabletest.MustPut, tabletest.Works
	fails, says, becomes = tabletest.Fails, tabletest.Says, tabletest.Becomes
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

// fresh is a store in a database of its own on the shared server, a connection to
// look at it with, and how to connect to it.
func fresh(tb testing.TB) (*Store, *sql.DB, *mysql.Config) {
	tb.Helper()
	c := newDatabase(tb, shared(tb))
	return New(connect(tb, c)), connect(tb, c), c
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

// exists says whether there is a table or view of that name.
func exists(tb testing.TB, db *sql.DB, name string) (ok bool) {
	tb.Helper()
	err := db.QueryRow(`SELECT COUNT(*) > 0 FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?`, name).Scan(&ok)
	if err != nil {
		tb.Fatal(err)
	}
	return ok
}

// connect opens a database as a program would, and closes it with the test.
func connect(tb testing.TB, c *mysql.Config) *sql.DB {
	tb.Helper()
	return tabletest.Connect(tb, "mysql", c.FormatDSN())
}

func TestTable(t *testing.T) {
	tabletest.Run(t, tabletest.Server{
		Driver: "mysql",
		New:    func(db *sql.DB) tabletest.Store { return New(db) },
		Ensure: func(ctx context.Context, s tabletest.Store, conn *sql.Conn) error {
			return s.(*Store).table.Ensure(ctx, conn)
		},
		Fresh: func(tb testing.TB) tabletest.Database { return database(newDatabase(tb, shared(tb))) },
		Start: func(tb testing.TB) (*testserver.Server, tabletest.Database) {
			server := testserver.MariaDB(tb)
			return server, database(config(tb, server))
		},
		Exists: exists,
		Levels: [][]string{
			{"tx_isolation='REPEATABLE-READ'"},
			{"tx_isolation='READ-COMMITTED'"},
			{"innodb_snapshot_isolation=1"}, // the default from MariaDB 11.6 on
		},
		Silent: func(tb testing.TB, d tabletest.Database) *sql.DB {
			return tabletest.Connect(tb, "mysql", d.DSN(tb, d.Addr))
		},
		Views: tabletest.Views{
			Segments: `SELECT GROUP_CONCAT(CONCAT_WS(' ', series, granted, max, increment, step, strict, ROUND(rate, 3), granted_by <> '',
				LEFT(granted_at, 3) = '202') ORDER BY series SEPARATOR ';') FROM firn_sequences`,
			SegmentsWant: "even 100 1000 2 50 0 0.833 1 1;none 0 9223372036854775807 1 100 0 1;strict 1 9223372036854775807 1 100 1 0.017 1 1",
			Serials:      `SELECT CONCAT_WS(' ', series, period, count) FROM firn_documents`,
		},
	})
}

// database is c for the tests that all stores in tables pass.
func database(c *mysql.Config) tabletest.Database {
	return tabletest.Database{Addr: c.Addr, DSN: func(_ testing.TB, addr string, options ...string) string {
		return with(c, func(c *mysql.Config) {
			c.Addr, c.Params = addr, map[string]string{}
			for _, o := range options {
				name, value, _ := strings.Cut(o, "=")
				c.Params[name] = value
			}
		}).FormatDSN()
	}}
}
