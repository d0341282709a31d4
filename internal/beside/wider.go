package beside

import (
	"context"
	"errors"
	"slices"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// A FullPoolError says how a pool without a free worker gets more.
type FullPoolError struct {
	error
	One   bool   // one worker was asked for, and the pool has more
	Wider string // the range that the pool can have, such as 0-15; "": it can have no more workers
}

func (e *FullPoolError) Unwrap() error { return e.error }

// WiderFor adds to the error of a full pool which range it can have: about twice its workers, as far
// as no other pool of the store has or had them.
func WiderFor(ctx context.Context, s store.Store, err error) error {
	var full *lease.FullError
	if !errors.As(err, &full) {
		return err
	}
	all := poolsOf(ctx, s)
	i := slices.IndexFunc(all, func(p createdPool) bool { return p.name == full.Pool })
	if i < 0 {
		return err
	}
	own := all[i]
	if full.Workers == 1 && own.now.Count() > 1 {
		return &FullPoolError{error: err, One: true}
	}
	if own.Reserved != "" { // its workers are being changed already
		return err
	}
	return &FullPoolError{error: err, Wider: wider(own, all)}
}

// WiderOf returns the range that a pool can have, from the records of all pools by their names; "" if it can have no
// more workers, or its workers are being changed.
func WiderOf(pools map[string]term.Pool, name string) string {
	all := createdPools(pools)
	i := slices.IndexFunc(all, func(p createdPool) bool { return p.name == name })
	if i < 0 || all[i].Reserved != "" {
		return ""
	}
	return wider(all[i], all)
}

// wider returns the range with up to twice the workers of a pool; "" where others have those beside it.
func wider(own createdPool, all []createdPool) string {
	most := term.Range{First: 0, Last: own.layout.Workers() - 1}
	for _, other := range all {
		if other.name == own.name || other.Repeats(own.name) || own.Repeats(other.name) {
			continue
		}
		theirs := other.taken(own.layout)
		switch {
		case !term.SameWorkerBits(own.layout, other.layout):
			return ""
		case theirs.First > own.now.Last:
			most.Last = min(most.Last, theirs.First-1)
		case theirs.Last < own.now.First:
			most.First = max(most.First, theirs.Last+1)
		default:
			return ""
		}
	}
	more := own.now
	more.Last = min(more.Last+own.now.Count(), most.Last)
	if more == own.now {
		more.First = max(more.First-own.now.Count(), most.First)
	}
	if more == own.now {
		return ""
	}
	return more.String()
}
