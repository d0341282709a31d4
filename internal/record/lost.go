package record

import (
	"context"
	"errors"

	"github.com/firn-id/firn/store"
)

// KeyLost is the key of the record of a store that may have lost pools and counters: it was
// recovered, or somebody created a pool there who was not sure that it never existed. No counter
// begins by itself there any more, and whoever creates one says where it begins.
const KeyLost = "lost"

// MarkLost records that a store may have lost pools and counters. Nothing takes the mark back.
func MarkLost(ctx context.Context, st store.Store) error {
	marked, err := MayHaveLost(ctx, st)
	if err != nil || marked {
		return err
	}
	if _, err = Create(ctx, st, KeyLost, []byte(`{"v":1}`)); errors.Is(err, store.ErrConflict) {
		return nil // another process was first
	}
	return err
}

// MayHaveLost reports whether a store may have lost pools and counters.
func MayHaveLost(ctx context.Context, st store.Store) (bool, error) {
	rec, err := st.Get(ctx, KeyLost)
	return err == nil && rec.Version != "", err
}
