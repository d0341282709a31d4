package postgres

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table"
)

var _ store.Updater = (*Store)(nil)

const (
	// sqlHold locks the record's row. A process that is stopped while it holds the
	// row is parted from it by the server after two seconds.
	sqlHold = `
SELECT r.value, r.version, (extract(epoch FROM r.written) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
	set_config('idle_in_transaction_session_timeout', '2000', true)
FROM firn_records AS r WHERE r.key = $1 FOR NO KEY UPDATE`

	sqlRelease = `
UPDATE firn_records AS r SET value = $2, version = $3, written = clock_timestamp()
WHERE r.key = $1 AND r.version = $4
RETURNING (extract(epoch FROM r.written) * 1000000)::bigint`
)

// Update implements [store.Updater] with a lock on the row, in a transaction at
// READ COMMITTED. The server gives the row to those who wait in their order, and
// takes it from a process that is stopped while it has it. A record that was never
// written has no row to hold.
func (s *Store) Update(ctx context.Context, key string, f func(store.Record) ([]byte, error)) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	var tx *sql.Tx
	err := table.Alive(ctx, func() (err error) {
		tx, err = s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		return err
	})
	if err != nil {
		return store.Record{}, explain(ctx, s.db, err)
	}
	defer tx.Rollback()
	held, err := s.hold(ctx, tx, key)
	if err != nil {
		return store.Record{}, explain(ctx, tx, err)
	}
	if held.Version == "" {
		if err := tx.Rollback(); err != nil {
			return store.Record{}, explain(ctx, s.db, err)
		}
		return store.Record{}, s.refuse(ctx, key, f)
	}
	value, err := f(held)
	if err != nil {
		return store.Record{}, err
	}
	next := store.Record{Key: key, Value: slices.Clone(value), Version: store.NewVersion()}
	if err := release(ctx, tx, &next, held.Version); err != nil { // COMMIT was not sent
		return store.Record{}, explain(ctx, tx, err)
	}
	switch err := acknowledged(ctx, tx.Commit()); {
	case err == nil:
		return next, nil
	case certain(err):
		return store.Record{}, explain(ctx, tx, err)
	default:
		return store.Record{Key: key, Version: next.Version}, explain(ctx, tx, err)
	}
}

// hold locks a record's row and reads it. One never written has none.
func (s *Store) hold(ctx context.Context, tx *sql.Tx, key string) (rec store.Record, err error) {
	err = rows(ctx, tx, sqlHold, []any{key}, func(r *sql.Rows) error {
		var value, version, timeout string
		var written, now int64
		if err := r.Scan(&value, &version, &written, &now, &timeout); err != nil {
			return err
		}
		rec = store.Record{
			Key: key, Value: []byte(value), Version: store.Version(version),
			Written: table.Instant(written), Read: table.Instant(max(now, written)),
		}
		return nil
	})
	switch {
	case err == nil:
		s.seen.Store(true)
	case missing(err): // whoever reads the record next finds out why
		return rec, nil
	}
	return rec, err
}

// refuse lets f see a record that cannot be held, and writes nothing.
func (s *Store) refuse(ctx context.Context, key string, f func(store.Record) ([]byte, error)) error {
	rec, err := s.Get(ctx, key) // somebody may have made it by now
	if err != nil {
		return err
	}
	if _, err := f(rec); err != nil {
		return err
	}
	return store.ErrConflict
}

// release replaces the record that is held, and completes next with the time.
func release(ctx context.Context, tx *sql.Tx, next *store.Record, held store.Version) error {
	if err := table.Check(next.Key, next.Value); err != nil {
		return err
	}
	written := int64(-1)
	args := []any{next.Key, string(next.Value), string(next.Version), string(held)}
	err := rows(ctx, tx, sqlRelease, args, func(r *sql.Rows) error { return r.Scan(&written) })
	switch {
	case err != nil:
		return err
	case written < 0:
		return errors.New("the server did not replace a record that it had locked; has the table a trigger or a rule?")
	}
	next.Written, next.Read = table.Instant(written), table.Instant(written)
	return nil
}
