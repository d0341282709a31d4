package sequence

import (
	"context"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// checkStore returns a [*store.OtherStoreError] where the store is a copy.
func checkStore(ctx context.Context, st store.Store) error {
	return record.CheckStore(ctx, st, block.Keys, "series")
}

// AcceptMove accepts that the series are in this store now, and changes nothing else. The
// caller states that the store was moved on purpose, that no process has used the old one
// since the copy was made, and that it is gone. Otherwise [Recover] is right: numbers that
// were granted since the copy would be granted again. A series on a lossy store
// still wants [Recover] where another instance answers. It returns the series that it
// changed; after an error it may be repeated.
func AcceptMove(ctx context.Context, st store.Store) ([]Info, error) {
	p, err := st.Durability(ctx)
	if err != nil {
		return nil, err
	}
	all, err := List(ctx, st)
	if err != nil {
		return nil, err
	}
	var moved []Info
	for _, in := range all {
		if in.Err == nil && in.Store == p.Identity {
			continue
		}
		in, err := move(ctx, st, in.Name, p.Identity)
		if err != nil {
			return moved, err
		}
		moved = append(moved, in)
	}
	return moved, nil
}

// move writes down that a series is in the store of that identity.
func move(ctx context.Context, st store.Store, name, identity string) (Info, error) {
	return change(ctx, st, name, func(r block.Record) (block.Record, error) {
		r.Store = identity
		r.Writes++
		return r, nil
	})
}

// note writes down which store a new series is in, where the store could not say that
// before it had a record.
func note(ctx context.Context, st store.Store, name string) error {
	p, err := st.Durability(ctx)
	if err != nil || p.Identity == "" {
		return err
	}
	_, err = move(ctx, st, name, p.Identity)
	return err
}
