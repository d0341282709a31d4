// Package table is what the stores in a table of a SQL server share, whatever its
// SQL: what the table can hold, connections that died in the pool, and errors that say
// what to do.
package table

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firn-id/firn/store"
)

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
