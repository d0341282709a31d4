// Package leaseoptions makes the options of a lease: it brings what the settings say of a pool
// together with what the pool's record says.
package leaseoptions

import (
	"context"
	"errors"
	"os"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// Ready returns the options of the lease, once it has compared the pool's record with the
// range that the file says, and counted the host's number from the pool's first worker.
func Ready(ctx context.Context, s store.Store, l *config.Leasing, hostname func() (string, error)) (lease.Options, error) {
	if hostname == nil {
		hostname = os.Hostname
	}
	o := l.Options.Options
	if !l.Options.Ranged && !l.Options.Hostname {
		return o, nil
	}
	info, err := poolRecord(ctx, s, l)
	var missing *lease.MissingPoolError
	switch {
	case err != nil && o.GrantFile != "" && !errors.As(err, &missing):
		// A process with a grant file needs no store to start. It takes any other worker
		// if it loses the one of its grant.
		if l.Options.Hostname {
			o.Choice = lease.Choice{}
		}
		return o, nil
	case err != nil:
		return o, err
	}
	if err := SameRange(l, info); err != nil {
		return o, err
	}
	if l.Options.Hostname {
		n, err := HostWorker(info, hostname)
		if err != nil {
			return o, err
		}
		o.Choice = lease.Prefer(n)
	}
	return o, nil
}

// poolRecord returns the pool's record. The first pool of an embedded store is created with what
// the settings say of it.
func poolRecord(ctx context.Context, s store.Store, l *config.Leasing) (pool.Info, error) {
	info, err := pool.Show(ctx, s, l.Pool)
	var missing *lease.MissingPoolError
	if !errors.As(err, &missing) || len(missing.Pools) > 0 {
		return info, err
	}
	durability, asked := s.Durability(ctx)
	if asked != nil || !durability.NoticesLoss {
		return info, errors.Join(asked, err)
	}
	info, err = pool.Create(ctx, s, l.Pool, l.Options.Creating())
	var exists *pool.ExistsError
	if errors.As(err, &exists) { // another process was first
		return exists.Info, nil
	}
	return info, err
}
