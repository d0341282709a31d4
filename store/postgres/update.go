package postgres

import (
	"context"
	"database/sql"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table"
)

var _ store.Updater = (*Store)(nil)

// sqlHold locks the record's row. A process that is stopped while it holds the
// row is parted from it by the server after two seconds.
const sqlHold = `
SELECT r.value, r.version, (extract(epoch FROM r.written) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
	set_config('idle_in_transaction_session_timeout', '2000', true)
FROM firn_records AS r WHERE r.key = $1 FOR NO KEY UPDATE`

// Update implements [store.Updater] with a lock on the row, in a transaction at
// READ COMMITTED. The server gives the row to those who wait in their order, and
// takes it from a process that is stopped while it has it. A record that was never
// written has no row to hold.
func (s *Store) Update(ctx context.Context, key string, f func(store.Record) ([]byte, error)) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	var t tx
	err := table.Alive(ctx, func() (err error) {
		t, err = begin(ctx, s.db)
		return err
	})
	if err != nil {
		return store.Record{}, s.table.Explain(ctx, s.db, err)
	}
	defer t.Undo(ctx)
	held, err := s.hold(ctx, t, key)
	if err != nil {
		return store.Record{}, s.table.Explain(ctx, t, err)
	}
	if held.Version == "" {
		if err := t.Undo(ctx); err != nil {
			return store.Record{}, s.table.Explain(ctx, s.db, err)
		}
		return store.Record{}, s.refuse(ctx, key, f)
	}
	value, err := f(held)
	if err != nil {
		return store.Record{}, err
	}
	return s.table.Replace(ctx, t, held, value)
}

// hold locks a record's row and reads it. One never written has none.
func (s *Store) hold(ctx context.Context, t tx, key string) (rec store.Record, err error) {
	err = rows(ctx, t, sqlHold, []any{key}, func(r *sql.Rows) error {
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
		s.table.See()
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
