package record

import (
	"context"
	"errors"
	"time"

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

// Version is the number of the format.
func (l lost) Version() int { return l.V }

// Fault says what of the record cannot be: nothing.
func (l lost) Fault() string { return "" }

// CheckLost returns an error where the record cannot be read, as where a later firn wrote it.
func CheckLost(rec store.Record) error {
	_, err := Read[lost](rec)
	return err
}

// lost is the record. An earlier firn reads only whether it is there.
type lost struct {
	V         int       `json:"v"`
	Recovered time.Time `json:"recovered,omitzero"` // when a recovery had made all of the store safe
}

// MarkRecovered records that a recovery has just made all of a store safe that may have lost
// something. It is the last thing that a recovery does.
func MarkRecovered(ctx context.Context, st store.Store, at time.Time) error {
	rec, err := st.Get(ctx, KeyLost)
	if err == nil && rec.Version != "" {
		_, err = Read[lost](rec)
	}
	if err != nil {
		return err
	}
	if _, err = Write(ctx, st, KeyLost, Encode(lost{Format, at.UTC()}), store.Condition{Version: rec.Version}); errors.Is(err, store.ErrConflict) {
		return nil // another recovery has just marked it
	}
	return err
}

// RecoveredAt returns when a store was last recovered; zero where it never was, or by an earlier firn.
func RecoveredAt(ctx context.Context, st store.Store) (time.Time, error) {
	rec, err := st.Get(ctx, KeyLost)
	if err != nil || rec.Version == "" {
		return time.Time{}, err
	}
	l, err := Read[lost](rec)
	return l.Recovered, err
}
