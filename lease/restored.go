package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

// A Restoration is what [Restored] did to one pool.
type Restoration struct {
	Pool    string
	Floor   time.Time // nothing is issued at or before it
	Workers int       // records rewritten
}

// Restored makes a store that has forgotten usable again: after a backup was
// restored, a replica that lagged was promoted, or a file was lost. Cut every
// process off the store first, and let them back in when it has returned: ids
// issued from the store in between may repeat.
//
// It raises the floor of the store and of every pool above everything that may
// have been granted, outage being the longest outage budget of any member (5 min
// unless some pool was given more); then it takes every worker away from its
// holder. So nothing is issued for about that long. It may be repeated, and is
// to be after an error.
func Restored(ctx context.Context, s store.Store, outage time.Duration) ([]Restoration, error) {
	if outage <= 0 {
		outage = term.OutageStrict
	}
	rec, err := s.Get(ctx, term.KeyStore)
	if err != nil {
		return nil, err
	}
	// Grants are bound by the store's clock and the bound on clocks; where it has
	// none, by the clocks of their holders, and this one may be wrong, too.
	now := rec.Read.Add(term.Skew)
	if rec.Read.IsZero() {
		now = time.Now().Add(2 * term.Skew)
	}
	floor := now.Add(outage)
	if rec.Version != "" {
		all, err := term.ReadStore(rec)
		if err != nil {
			return nil, err
		}
		if all.Floor.After(floor) {
			floor = all.Floor
		}
	}
	if _, err := s.Put(ctx, rec.Key, term.StoreFloor(floor), store.Condition{Version: rec.Version}); err != nil {
		return nil, fmt.Errorf("lease: raising the store's floor: %w", err)
	}
	pools, err := Pools(ctx, s)
	if err != nil {
		return nil, err
	}
	var done []Restoration
	for _, pool := range pools {
		r, err := restorePool(ctx, s, pool, now, floor)
		if err != nil {
			return done, fmt.Errorf("lease: pool %q: %w", pool, err)
		}
		done = append(done, r)
	}
	return done, nil
}

// restorePool raises the pool's floor first and the workers' records after, so
// that whoever acquires a worker meanwhile either reads the new floor or is found.
func restorePool(ctx context.Context, s store.Store, pool string, now, floor time.Time) (Restoration, error) {
	layout, err := Layout(ctx, s, pool)
	if err != nil {
		return Restoration{}, err
	}
	raised, err := raiseFloor(ctx, s, pool, layout, now, floor)
	if err != nil {
		return Restoration{}, err
	}
	r := Restoration{Pool: pool, Floor: layout.Time(raised + 1).Add(-1)}
	for pass := 0; ; pass++ {
		rewritten, err := raiseWorkers(ctx, s, pool, raised, pass == 0)
		r.Workers += rewritten
		if err != nil || rewritten == 0 {
			return r, err
		}
	}
}

// raiseFloor raises the pool's floor above every horizon that its workers have,
// and above all that its members may have been granted, and returns it.
func raiseFloor(ctx context.Context, s store.Store, pool string, layout firn.Layout, now, floor time.Time) (firn.Tick, error) {
	list, err := s.List(ctx, term.KeyWorkers(pool))
	if err != nil {
		return 0, err
	}
	rec, err := s.Get(ctx, term.KeyPool(pool))
	if err != nil {
		return 0, err
	}
	p, err := term.ReadPool(rec)
	if err != nil {
		return 0, err
	}
	if longest := now.Add(p.Longest()); longest.After(floor) {
		floor = longest
	}
	to := min(layout.Tick(floor), layout.Last())
	for _, rec := range list {
		w, err := term.ReadRecord(rec)
		if err != nil {
			return 0, err
		}
		to = max(to, w.Horizon)
	}
	p = p.Raised(to)
	_, err = s.Put(ctx, rec.Key, p.Encode(), store.Condition{Version: rec.Version})
	return p.Floor, err
}

// raiseWorkers raises the workers' records that are below the floor, and takes
// those workers away from their holders; with held, all that somebody holds. It
// returns how many records it rewrote, or has to look at again.
func raiseWorkers(ctx context.Context, s store.Store, pool string, floor firn.Tick, held bool) (n int, err error) {
	list, err := s.List(ctx, term.KeyWorkers(pool))
	if err != nil {
		return 0, err
	}
	for _, rec := range list {
		w, err := term.ReadRecord(rec)
		if err != nil {
			return n, err
		}
		if w.Horizon >= floor && (w.Owner == "" || !held) {
			continue
		}
		_, err = s.Put(ctx, rec.Key, w.Freed(floor).Encode(), store.Condition{Version: rec.Version})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return n, err
		}
		n++
	}
	return n, nil
}
