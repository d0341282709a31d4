// Package tabletest has the tests that every store in a table of a SQL server passes, with a
// real server, and helpers for those that only one of them has.
package tabletest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// A Store is what the stores have in common.
type Store interface {
	store.Store
	store.Updater
	Init(ctx context.Context) (made bool, err error)
}

// A Server is a server under test.
type Server struct {
	// Driver is the name of the database/sql driver.
	Driver string
	// New returns a store in the database that db leads to.
	New func(db *sql.DB) Store
	// Ensure is what the first Put of a store from New does that finds no table.
	Ensure func(ctx context.Context, s Store, conn *sql.Conn) error
	// Start starts a server for one test, and returns its database.
	Start func(tb testing.TB) (*testserver.Server, Database)
	// Fresh returns an empty database on a server that tests share.
	Fresh func(tb testing.TB) Database
	// Exists says whether there is a table or view of that name.
	Exists func(tb testing.TB, db *sql.DB, name string) bool
	// Levels are options of connections, one list for each way to run the tests of Puts that
	// wait for one another.
	Levels [][]string
	// Silent has a connection of a Database send at once, whether or not the server answers.
	Silent func(tb testing.TB, d Database) *sql.DB
	// Views are the queries of views for people and what they return.
	Views Views
}

// A Database is how to connect to a database.
type Database struct {
	Addr string // host:port of its server
	// DSN is for a connection to addr with options, "name=value" each.
	DSN func(tb testing.TB, addr string, options ...string) string
}

// Views are queries of one text.
type Views struct {
	Segments, SegmentsWant string
	Serials                string // series, period and count
}

// Run runs the tests.
func Run(t *testing.T, s Server) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Server)
	}{
		{"Wait", testWait},
		{"WaitChanged", testWaitChanged},
		{"SentOnce", testSentOnce},
		{"Lost", testLost},
		{"Values", testValues},
		{"UpdateLost", testUpdateLost},
		{"UpdateNoTable", testUpdateNoTable},
		{"UpdateStopped", testUpdateStopped},
		{"UpdateGivesUp", testUpdateGivesUp},
		{"FirstUse", testFirstUse},
		{"NoTable", testNoTable},
		{"Dropped", testDropped},
		{"Views", testViews},
		{"Deadline", testDeadline},
		{"Away", testAway},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
	}
}

// open opens a database as a program would, and closes it with the test.
func (s Server) open(tb testing.TB, d Database, options ...string) *sql.DB {
	tb.Helper()
	return Connect(tb, s.Driver, d.DSN(tb, d.Addr, options...))
}

// through opens a database by way of a proxy.
func (s Server) through(tb testing.TB, d Database, p *testserver.Proxy) *sql.DB {
	tb.Helper()
	return Connect(tb, s.Driver, d.DSN(tb, p.Addr()))
}

// fresh is a store in a database of its own, and a connection to look at it with.
func (s Server) fresh(tb testing.TB) (Store, *sql.DB) {
	tb.Helper()
	d := s.Fresh(tb)
	return s.New(s.open(tb, d)), s.open(tb, d)
}
