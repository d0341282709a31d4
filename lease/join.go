package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/opening"
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

// join finds out whether the store can lose writes and which layout the pool has, and checks
// the options against it. A process that continues its old grant needs no store to start:
// its grant file says both.
func (o *Options) join(ctx context.Context, s store.Store, files grantFiles, begun term.Now) (term.View, error) {
	if o.Layout.IsValid() {
		if err := o.Layout.Check(begun.Wall); err != nil {
			return term.View{}, err
		}
	}
	asked := opening.Opening{
		Pool: o.Pool, Layout: o.Layout, Create: pool.Options{Layout: o.Layout, Outage: o.limit()},
		Saved: func() (store.Durability, firn.Layout, bool) { return files.saved(o) },
	}
	seen, info, err := asked.Open(ctx, s, begun.Boot)
	if err == nil {
		o.Choice, err = o.Choice.In(info.Layout)
	}
	if err == nil && seen.Known {
		err = o.fits(info)
	}
	var missing *MissingPoolError
	if errors.As(err, &missing) {
		missing.Outage = o.Outage // the processes of an earlier pool had what this one wants
	}
	if err != nil {
		return seen, err
	}
	o.Layout = info.Layout
	if err := o.Layout.Check(begun.Wall); err != nil {
		return seen, err
	}
	return seen, errors.Join(o.misfits(o.Layout)...)
}

// fits checks the options against what the store says of the pool.
func (o *Options) fits(info pool.Info) error {
	_, only := o.Choice.Only()
	switch {
	case o.Outage > info.OutageLimit:
		return &OptionError{"outage", fmt.Sprintf("outage %s: pool %q was created for at most %[3]s: set it to %[3]s or less", o.Outage, o.Pool, info.OutageLimit)}
	case !only && int64(o.Lanes) > info.Workers():
		return &OptionError{"lanes", fmt.Sprintf("lanes %d: pool %q has only %d workers", o.Lanes, o.Pool, info.Workers())}
	}
	return nil
}

// limit is the longest outage budget that a pool is created with together with its store:
// the default, unless this process wants more. Others may want more than this one.
func (o *Options) limit() time.Duration {
	if o.Outage <= term.OutageDurable {
		return 0
	}
	return o.Outage
}
