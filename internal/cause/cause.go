// Package cause asks the store why a pool could not be opened, and adds the answer to the error: that a missing pool was lost,
// that another schema of the database has it, which workers a pool can have.
package cause

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/beside"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// A LostPoolError says that the store has records of workers of a pool that it does not
// have.
type LostPoolError struct {
	*lease.MissingPoolError
	Workers int
	Left    string // the workers that the other pools leave to it; "" where that is not known
}

func (e *LostPoolError) Unwrap() error { return e.MissingPoolError }

// A LongOutageError says that a pool has no outage budget as long as the one that is asked for.
type LongOutageError struct {
	Err   error
	Limit time.Duration // the longest that the pool has
}

func (e *LongOutageError) Error() string { return e.Err.Error() }
func (e *LongOutageError) Unwrap() error { return e.Err }

// Learn adds to an error what the store says of its cause: that a missing pool was lost, or
// which workers a pool can have.
func Learn(ctx context.Context, s store.Store, l *config.Leasing, err error) error {
	var missing *lease.MissingPoolError
	var option *lease.OptionError
	switch {
	case errors.As(err, &option) && option.Option == "outage":
		info, failed := pool.Show(ctx, s, l.Pool)
		if failed == nil && l.Options.Outage > info.OutageLimit {
			return &LongOutageError{err, info.OutageLimit}
		}
		return err
	case !errors.As(err, &missing):
		return beside.RoomFor(ctx, s, beside.WiderFor(ctx, s, err))
	}
	remains, lost := s.List(ctx, term.KeyPool(l.Pool)+"/")
	if lost != nil || len(remains) == 0 {
		return Elsewhere(ctx, s, beside.Crowded(ctx, s, err, &l.Options))
	}
	if _, failed := pool.Show(ctx, s, l.Pool); failed == nil {
		return err // somebody has created it since, and the workers are its own
	}
	return &LostPoolError{missing, len(remains), beside.LeftTo(ctx, s, l.Pool, l.Options.Layout)}
}
