// Package table is what the stores in a table of a SQL server share, whatever its
// SQL: what the table can hold, how a record is read, put and updated, connections that
// died in the pool, and errors that say what to do. A [Server] is what differs.
package table

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/firn-id/firn/store"
)

// A Querier runs statements: a *sql.DB, a *sql.Conn or a [Tx].
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// A Tx is a transaction at READ COMMITTED.
type Tx interface {
	Querier
	End(ctx context.Context) error  // commits
	Undo(ctx context.Context) error // rolls back
}

// A Server is what a server does in its own way.
type Server struct {
	Name string // of its package, for errors

	// Write carries out one Put, and completes next with the time.
	Write func(ctx context.Context, q Querier, next *store.Record, cond store.Condition) error
	// Create creates the table unless it is there.
	Create func(ctx context.Context, conn *sql.Conn) error
	// Begin begins a transaction.
	Begin func(ctx context.Context, conn *sql.Conn) (Tx, error)

	// Missing says that the table was not found.
	Missing func(error) bool
	// Hidden returns why a table that was not found may be there nevertheless. It may be nil.
	Hidden func(ctx context.Context, q Querier) error
	// Repeat says that the server refused a statement, for certain, because of what others
	// wrote, and that it would not do so in a [Tx].
	Repeat func(error) bool
	// Refused says that a Put that ended so was not and will not be carried out.
	Refused func(error) bool

	// Advice says what to do about an error, or nothing. It may ask the server.
	Advice func(ctx context.Context, q Querier, err error) string
	// Denied says that the user lacks a right.
	Denied func(error) bool
	// Cause is the text of an error, where the driver's is not fit to be read. Nil: the driver's is.
	Cause func(error) string
}

// A Table is the table firn_records of a server.
type Table struct {
	Server
	DB *sql.DB

	seen atomic.Bool // the table was there: it is never created again
}

// Seen reports whether the table was there.
func (t *Table) Seen() bool { return t.seen.Load() }

// See notes that the table is there.
func (t *Table) See() { t.seen.Store(true) }

// missing is about an error with which the table was not found: nil, or why it is not as if
// nobody had created it yet. Seen is what the process knew before the server looked: others
// may create the table after that.
func (t *Table) missing(ctx context.Context, q Querier, seen bool) error {
	if t.Hidden != nil {
		if err := t.Hidden(ctx, q); err != nil {
			return err
		}
	}
	if seen {
		return t.Forgotten()
	}
	return nil
}

// Check refuses a record that the table cannot hold.
func Check(key string, value []byte) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	if err := store.CheckValue(value); err != nil {
		return err
	}
	if !utf8.Valid(value) || slices.Contains(value, 0) {
		return errors.New("store: the value is not JSON: not UTF-8, or with a zero byte")
	}
	return nil
}

// Possible says whether there can be a record as cond says. Only a Version made by
// [store.NewVersion] is ever written.
func Possible(cond store.Condition) bool {
	if cond.Version == "" {
		return cond.Within == 0
	}
	return cond.Within >= 0 && len(cond.Version) == 32 && strings.Trim(string(cond.Version), "0123456789abcdef") == ""
}

// Instant is a time that the server gave as microseconds since 1970.
func Instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// Alive calls f, which changes nothing in the store, again when it met a connection
// that had died in the pool. A *sql.DB gives up after three, of which a server that
// started again leaves more.
func Alive(ctx context.Context, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		if !errors.Is(err, driver.ErrBadConn) || try == 8 || ctx.Err() != nil {
			return err
		}
	}
}

// Conn is a connection of the pool.
func Conn(ctx context.Context, db *sql.DB) (c *sql.Conn, err error) {
	err = Alive(ctx, func() error {
		c, err = db.Conn(ctx)
		return err
	})
	return c, err
}
