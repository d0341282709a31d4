package open

import (
	"context"
	"errors"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/cause"
	"github.com/firn-id/firn/internal/leaseoptions"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// This file brings what the settings say of a pool together with what its record says.

// openLease leases a worker, or several.
func openLease(ctx context.Context, s store.Store, l *config.Leasing, opts *Options) (*lease.Lease, error) {
	o, err := leaseoptions.Ready(ctx, s, l, opts.Hostname)
	if err != nil {
		return nil, cause.Learn(ctx, s, l, err)
	}
	o.Logger, o.NextWait, o.Waiting = opts.Logger, opts.NextWait, opts.Waiting
	ids, err := lease.Open(ctx, s, &o)
	return ids, cause.Learn(ctx, s, l, err)
}

// createsPool reports whether to open the lease is to create the pool, as the first pool of a
// file of this host. Where the store does not answer, opening the lease says why.
func createsPool(ctx context.Context, s store.Store, l *config.Leasing) bool {
	durability, err := s.Durability(ctx)
	if err != nil || !durability.NoticesLoss {
		return false
	}
	_, err = pool.Show(ctx, s, l.Pool)
	var missing *lease.MissingPoolError
	return errors.As(err, &missing) && len(missing.Pools) == 0
}
