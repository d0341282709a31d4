package lease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

// ErrUsed: the pool has workers already, so it is not new.
var ErrUsed = errors.New("lease: the pool was used before")

// Found makes a pool whose ids begin at once, for a caller who knows that nobody
// ever leased from one of this name on this store, nor on one that this was copied
// or restored from.
//
// A pool that [Open] finds missing starts only above all that a forgotten one may
// have granted, 5 min and 5 s ahead by default. One that has been made in that way,
// and has no workers yet, is made anew: whoever waits for it stops. ErrUsed says
// that a pool with a floor ahead has workers, or that the store was restored. It
// returns whether it wrote anything.
func Found(ctx context.Context, s store.Store, pool string, opts *Options) (bool, error) {
	o := opts.withDefaults()
	if err := o.validate(pool); err != nil {
		return false, err
	}
	promise, err := s.Promise(ctx)
	if err != nil {
		return false, err
	}
	rec, err := s.Get(ctx, term.KeyPool(pool))
	if err != nil {
		return false, err
	}
	all, err := s.Get(ctx, term.KeyStore)
	if err != nil {
		return false, err
	}
	if rec.Version != "" {
		if again, err := foundAgain(ctx, s, rec, all.Version != "", pool, &o); !again || err != nil {
			return false, err
		}
	}
	var floor term.Store
	if all.Version != "" {
		if floor, err = term.ReadStore(all); err != nil {
			return false, err
		}
	}
	var id [16]byte
	rand.Read(id[:])
	p := term.Founded(o.rules(pool, promise), hex.EncodeToString(id[:]), floor)
	_, err = s.Put(ctx, rec.Key, p.Encode(), store.Condition{Version: rec.Version})
	return err == nil, err
}

// foundAgain says whether a pool that is there is to be made anew. Where the store
// was restored the pool may have had workers that it has forgotten, and its own
// floor may be above the store's.
func foundAgain(ctx context.Context, s store.Store, rec store.Record, restored bool, pool string, o *Options) (bool, error) {
	p, err := term.ReadPool(rec)
	if err != nil {
		return false, err
	}
	if p.Layout != o.Layout.String() {
		return false, &term.LayoutError{Pool: pool, Have: p.Layout, Want: o.Layout.String()}
	}
	now := rec.Read
	if now.IsZero() {
		now = time.Now()
	}
	floor := o.Layout.Time(p.Floor)
	if p.Floor == 0 || !floor.After(now) {
		return false, nil
	}
	workers, err := s.List(ctx, term.KeyWorkers(pool))
	switch {
	case restored:
		return false, fmt.Errorf("%w: the store was restored, and pool %q issues nothing before %s", ErrUsed, pool, floor.UTC().Format(time.RFC3339))
	case err != nil:
		return false, err
	case len(workers) > 0:
		return false, fmt.Errorf("%w: pool %q has %d, and issues nothing before %s", ErrUsed, pool, len(workers), floor.UTC().Format(time.RFC3339))
	}
	return true, nil
}
