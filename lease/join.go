package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// Errors of [Open], [Lease.Next] and [Hold].
type (
	MissingPoolError = term.MissingPoolError
	NotYetError      = term.NotYetError
	FullError        = term.FullError
	WorkerError      = term.WorkerError
	LayoutError      = term.LayoutError
	FreshError       = term.FreshError
	LostError        = term.LostError
	AwayError        = term.AwayError
	ClockError       = term.ClockError
)

// join finds out what the store promises and which layout the pool has, and checks the
// options against it. A process that goes on with its old grant needs no store to start:
// its grant file says both.
func (o *Options) join(ctx context.Context, s store.Store, files grantFiles, begun term.Now) (seen term.View, err error) {
	seen = term.View{Asked: begun.Boot, Known: true}
	if o.Layout.IsValid() {
		if err := o.Layout.Check(begun.Wall); err != nil {
			return seen, err
		}
	}
	var layout firn.Layout
	if seen.Durability, err = s.Durability(ctx); err == nil {
		layout, err = o.poolLayout(ctx, s, seen.Durability)
	}
	if err != nil && unanswered(err) {
		promise, saved, ok := files.saved(o)
		if !ok {
			return seen, err
		}
		seen.Durability, seen.Known, layout, err = promise, false, saved, nil
	}
	if err != nil {
		return seen, err
	}
	o.Layout = layout
	if err := layout.Check(begun.Wall); err != nil {
		return seen, err
	}
	return seen, errors.Join(o.misfits(layout)...)
}

// unanswered reports whether an error came from the store, and not from what it answered.
func unanswered(err error) bool {
	var missing *MissingPoolError
	var layout *LayoutError
	var option *OptionError
	return !errors.As(err, &missing) && !errors.As(err, &layout) && !errors.As(err, &option)
}

// poolLayout returns the layout of the pool. A store that is a file of this host, or in
// this process, has its first pool made together with it.
func (o *Options) poolLayout(ctx context.Context, s store.Store, p store.Durability) (firn.Layout, error) {
	info, err := pool.Show(ctx, s, o.Pool)
	_, only := o.Choice.Only()
	var missing *MissingPoolError
	if errors.As(err, &missing) && p.NoticesLoss && len(missing.Pools) == 0 {
		info, err = o.create(ctx, s)
	}
	switch {
	case err != nil:
		return firn.Layout{}, err
	case o.Layout.IsValid() && o.Layout != info.Layout:
		return firn.Layout{}, &LayoutError{Pool: o.Pool, Have: info.Layout.String(), Want: o.Layout.String()}
	case o.Outage > info.OutageLimit:
		return firn.Layout{}, &OptionError{"outage", fmt.Sprintf("outage %s: pool %q was created for at most %[3]s: set it to %[3]s or less", o.Outage, o.Pool, info.OutageLimit)}
	case !only && int64(o.Lanes) > info.Workers():
		return firn.Layout{}, &OptionError{"lanes", fmt.Sprintf("lanes %d: pool %q has only %d workers", o.Lanes, o.Pool, info.Workers())}
	}
	return info.Layout, nil
}

// create creates the first pool of an embedded store, unless another process is first.
func (o *Options) create(ctx context.Context, s store.Store) (pool.Info, error) {
	info, err := pool.Create(ctx, s, o.Pool, &pool.Options{Layout: o.Layout, Outage: o.limit()})
	var exists *pool.ExistsError
	if errors.As(err, &exists) {
		return exists.Info, nil
	}
	return info, err
}

// limit is the longest outage budget that a pool is created with together with its store:
// the default, unless this process wants more. Others may want more than this one.
func (o *Options) limit() time.Duration {
	if o.Outage <= term.OutageDurable {
		return 0
	}
	return o.Outage
}
