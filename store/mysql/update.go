package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table"
)

var _ store.Updater = (*Store)(nil)

const (
	// sqlHasty has the server end a connection on which nothing comes for two
	// seconds, as from a process that is stopped while it holds a record. MariaDB's
	// timeouts for idle transactions, where they are set, count instead.
	sqlHasty = `SET @firn_wait_timeout = @@SESSION.wait_timeout, SESSION wait_timeout = 2`

	// sqlUsual is for the caller, whose connection it is.
	sqlUsual = `SET @firn_queue = RELEASE_LOCK(%s), SESSION wait_timeout = @firn_wait_timeout`

	// sqlQueue lets those who want a record wait for one another by another lock
	// than the row's, which alone is what keeps others away. InnoDB takes milliseconds
	// to replace a row for which dozens wait by one of another length.
	sqlQueue = `DO GET_LOCK(%s, 50)`
)

// queue is the name of the lock to wait by.
func queue(key string) string {
	return "CONCAT('firn ', SHA1(CONCAT(DATABASE(), ' ', " + ascii(key) + ")))"
}

// Update implements [store.Updater] with a lock on the row, in a transaction at
// READ COMMITTED. The server gives the row to those who wait in their order, and
// takes it from a process that is stopped while it has it. A record that was never
// written has no row to hold.
func (s *Store) Update(ctx context.Context, key string, f func(store.Record) ([]byte, error)) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Record{}, err
	}
	conn, err := s.hasty(ctx)
	if err != nil {
		return store.Record{}, s.table.Explain(ctx, s.db, err)
	}
	defer usual(ctx, conn, key)
	t, held, err := s.hold(ctx, conn, key)
	if err != nil {
		return store.Record{}, s.table.Explain(ctx, conn, err)
	}
	open := true
	defer func() {
		if open {
			t.Undo(ctx)
		}
	}()
	value, err := f(held)
	switch {
	case err != nil:
		return store.Record{}, err
	case held.Version == "":
		return store.Record{}, store.ErrConflict
	}
	open = false
	return s.table.Replace(ctx, t, held, value)
}

// hasty is a connection that the server ends soon when nothing comes on it.
func (s *Store) hasty(ctx context.Context) (conn *sql.Conn, err error) {
	err = table.Alive(ctx, func() error {
		if conn, err = s.db.Conn(ctx); err != nil {
			return err
		}
		if _, err = conn.ExecContext(ctx, sqlHasty); err != nil {
			discard(conn)
		}
		return err
	})
	return conn, err
}

// usual gives a connection of hasty back to the pool, as it was.
func usual(ctx context.Context, conn *sql.Conn, key string) {
	if _, err := conn.ExecContext(ctx, fmt.Sprintf(sqlUsual, queue(key))); err != nil {
		discard(conn)
		return
	}
	conn.Close()
}

// discard closes a connection, so that the pool does not have it again.
func discard(conn *sql.Conn) {
	conn.Raw(func(any) error { return driver.ErrBadConn })
	conn.Close()
}

// hold locks a record's row in a transaction, and reads it. What it returns is on the
// disk: it was read and brought there before, as a transaction that holds a row cannot
// do that. Others may have replaced it meanwhile, but not those who queue. A record that
// was never written has no row.
func (s *Store) hold(ctx context.Context, conn *sql.Conn, key string) (table.Tx, store.Record, error) {
	if _, err := conn.ExecContext(ctx, fmt.Sprintf(sqlQueue, queue(key))); err != nil {
		return nil, store.Record{}, err
	}
	for {
		known, err := s.durable(ctx, conn, sqlGet(key))
		if err != nil {
			return nil, store.Record{}, err
		}
		t, err := begin(ctx, conn)
		if err != nil {
			return nil, store.Record{}, err
		}
		held, err := s.find(ctx, t, sqlGet(key)+" FOR UPDATE")
		if err == nil && held.Record(key).Version == known.Record(key).Version {
			return t, held.Record(key), nil
		}
		if end := t.Undo(ctx); err == nil {
			err = end
		}
		if err != nil {
			return nil, store.Record{}, err
		}
	}
}
