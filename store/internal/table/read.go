package table

import (
	"context"
	"database/sql"
	"time"

	"github.com/firn-id/firn/store"
)

// An Answer is what a statement found, and when by the server's clock.
type Answer struct {
	List []store.Record
	Read time.Time
}

// Record is the only one, or that of a key that was never written.
func (a Answer) Record(key string) store.Record {
	if len(a.List) == 0 {
		return store.Record{Key: key, Read: a.Read}
	}
	return a.List[0]
}

// A Row is one row of a statement that reads, with times in microseconds since 1970. A row
// without a Key says only what the time is.
type Row struct {
	Before, After       int64 // the server's clock before it looked, and after
	Key, Value, Version sql.Null[string]
	Written             sql.Null[int64]
}

// A Reading makes an answer out of rows. The zero Reading has read none.
type Reading struct {
	list           []store.Record
	before, latest int64
}

// Add adds the next row.
func (r *Reading) Add(row Row) {
	r.before = row.Before
	if !row.Key.Valid {
		return
	}
	r.list = append(r.list, store.Record{
		Key: row.Key.V, Value: []byte(row.Value.V), Version: store.Version(row.Version.V), Written: Instant(row.Written.V),
	})
	if row.Written.V <= row.After {
		r.latest = max(r.latest, row.Written.V)
	}
}

// Answer returns what all rows say.
//
// Read is the time before the query: one after it would make records look older
// than they are if the server paused in between. Only where a record was written
// in that moment it is as late as that.
func (r *Reading) Answer() Answer {
	a := Answer{List: r.list, Read: Instant(max(r.before, r.latest))}
	for i := range a.List {
		a.List[i].Read = a.Read
	}
	return a
}

// Rows calls f for each row. It returns nil only when the server has said that the
// statement, and its commit, went well: that comes after the last row.
func Rows(ctx context.Context, q Querier, query string, args []any, f func(*sql.Rows) error) error {
	r, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer r.Close()
	for r.Next() {
		if err := f(r); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	return r.Close()
}

// Find calls look, which reads the table. Where nobody has created the table yet, none
// answers instead: nothing was ever written.
func (t *Table) Find(ctx context.Context, q Querier, look, none func() (Answer, error)) (Answer, error) {
	seen := t.Seen()
	a, err := look()
	switch {
	case err == nil:
		t.See()
		return a, nil
	case !t.Missing(err):
		return Answer{}, err
	}
	if err := t.missing(ctx, q, seen); err != nil {
		return Answer{}, err
	}
	return none()
}
