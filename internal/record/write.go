package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
)

// ErrMissing says that there is no record to change.
var ErrMissing = errors.New("record: there is none")

// Write is store.Store.Put by somebody who has the time to find out what became of a write
// whose answer was lost: the write was carried out if the record bears the Version that was
// tried. Otherwise the error is that of Put, and the write may be carried out yet.
func Write(ctx context.Context, st store.Store, key string, value []byte, cond store.Condition) (store.Record, error) {
	rec, err := st.Put(ctx, key, value, cond)
	if err == nil || errors.Is(err, store.ErrConflict) || rec.Version == "" {
		return rec, err
	}
	now, lost := st.Get(ctx, key)
	if lost != nil || now.Version != rec.Version {
		return rec, err
	}
	return now, nil
}

// Create writes a record that was never written. With [store.ErrConflict] it returns the
// record that is there.
func Create(ctx context.Context, st store.Store, key string, value []byte) (store.Record, error) {
	rec, err := Write(ctx, st, key, value, store.Condition{})
	if !errors.Is(err, store.ErrConflict) {
		return rec, err
	}
	there, lost := st.Get(ctx, key)
	if lost != nil {
		return store.Record{}, lost
	}
	return there, err
}

// Change replaces a record by what change makes of it, and begins anew where somebody else
// was faster. It returns the record as it was written. Errors are [ErrMissing],
// [*store.FormatError], those of change, and those of [Write].
func Change[T Value](ctx context.Context, st store.Store, key string, change func(T) (T, error)) (store.Record, error) {
	for {
		rec, err := st.Get(ctx, key)
		if err != nil {
			return store.Record{}, err
		}
		if rec.Version == "" {
			return store.Record{}, ErrMissing
		}
		v, err := Read[T](rec)
		if err != nil {
			return store.Record{}, err
		}
		if v, err = change(v); err != nil {
			return store.Record{}, err
		}
		value := Encode(v)
		wrote, err := Write(ctx, st, key, value, store.Condition{Version: rec.Version})
		switch {
		case errors.Is(err, store.ErrConflict):
			continue
		case err != nil:
			return store.Record{}, fmt.Errorf("record %s may or may not be changed: %w", key, err)
		}
		wrote.Key, wrote.Value = key, value
		return wrote, nil
	}
}
