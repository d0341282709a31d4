package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// This file brings what the settings say of a pool together with what its record says.

// check returns what is wrong with the options in themselves.
func (o *poolOptions) check() error {
	var errs []error
	bad := func(option, format string, args ...any) {
		errs = append(errs, &lease.OptionError{Option: option, Reason: option + " " + fmt.Sprintf(format, args...)})
	}
	if o.ranged {
		if l := o.Layout; l.IsValid() && o.workers.Last >= l.Workers() {
			bad("workers", "%s: layout %s has 0-%d", o.workers, layoutName(l), l.Workers()-1)
		}
		if n, only := o.Choice.Only(); only && !o.workers.Has(n) {
			bad("worker", "%d: workers says %s", n, o.workers)
		}
		if int64(o.Lanes) > o.workers.Count() {
			bad("lanes", "%d: workers says %s, which are %d", o.Lanes, o.workers, o.workers.Count())
		}
	}
	return errors.Join(o.Check(), errors.Join(errs...))
}

// open leases a worker, or several.
func (l *leasing) open(ctx context.Context, s store.Store, log *slog.Logger) (*lease.Lease, error) {
	o, err := l.ready(ctx, s)
	if err != nil {
		return nil, l.learn(ctx, s, err)
	}
	o.Logger = log
	ids, err := lease.Open(ctx, s, &o)
	return ids, l.learn(ctx, s, err)
}

// A lostPoolError says that the store has records of workers of a pool that it does not
// have.
type lostPoolError struct {
	*lease.MissingPoolError
	workers int
	left    string // the workers that the other pools leave to it; "" where that is not known
}

// An outageError says that a pool has no outage budget as long as the one that is asked for.
type outageError struct {
	error
	limit time.Duration
}

func (e *outageError) Unwrap() error { return e.error }

func (e *lostPoolError) Unwrap() error { return e.MissingPoolError }

// learn adds to an error what the store says of its cause: that a missing pool was lost, or
// which workers a pool can have.
func (l *leasing) learn(ctx context.Context, s store.Store, err error) error {
	var missing *lease.MissingPoolError
	var option *lease.OptionError
	switch {
	case errors.As(err, &option) && option.Option == "outage":
		info, failed := pool.Show(ctx, s, l.pool)
		if failed == nil && l.options.Outage > info.OutageLimit {
			return &outageError{err, info.OutageLimit}
		}
		return err
	case !errors.As(err, &missing):
		return roomFor(ctx, s, err)
	}
	remains, lost := s.List(ctx, term.KeyPool(l.pool)+"/")
	if lost != nil || len(remains) == 0 {
		return elsewhere(ctx, s, crowded(ctx, s, err, &l.options))
	}
	return &lostPoolError{missing, len(remains), leftTo(ctx, s, l.pool, l.options.Layout)}
}

// shorterOutage says what to do about an outage budget that is longer than the pool's limit.
func (l *leasing) shorterOutage(limit time.Duration) string {
	return fmt.Sprintf("set %s to %s or less: a pool never gets a longer outage than it was created with", poolPlace{from: l.from}.setting("outage"), phrase.Duration(limit))
}

// ready returns the options of the lease, once it has compared the pool's record with the
// range that the file says, and counted the host's number from the pool's first worker.
func (l *leasing) ready(ctx context.Context, s store.Store) (lease.Options, error) {
	o := l.options.Options
	if !l.options.ranged && !l.options.hostname {
		return o, nil
	}
	info, err := l.show(ctx, s)
	var missing *lease.MissingPoolError
	switch {
	case err != nil && o.GrantFile != "" && !errors.As(err, &missing):
		// A process with a grant file needs no store to start. It takes any other worker
		// if it loses the one of its grant.
		if l.options.hostname {
			o.Choice = lease.Choice{}
		}
		return o, nil
	case err != nil:
		return o, err
	}
	if err := l.sameRange(info); err != nil {
		return o, err
	}
	if l.options.hostname {
		n, err := hostWorker(info, hostname)
		if err != nil {
			return o, err
		}
		o.Choice = lease.Prefer(n)
	}
	return o, nil
}

// show returns the pool's record. The first pool of an embedded store is created with what
// the settings say of it.
func (l *leasing) show(ctx context.Context, s store.Store) (pool.Info, error) {
	info, err := pool.Show(ctx, s, l.pool)
	var missing *lease.MissingPoolError
	if !errors.As(err, &missing) || len(missing.Pools) > 0 {
		return info, err
	}
	durability, asked := s.Durability(ctx)
	if asked != nil || !durability.NoticesLoss {
		return info, errors.Join(asked, err)
	}
	info, err = pool.Create(ctx, s, l.pool, l.options.creating())
	var exists *pool.ExistsError
	if errors.As(err, &exists) { // another process was first
		return exists.Info, nil
	}
	return info, err
}

// creates reports whether to open the lease is to create the pool, as the first pool of a
// file of this host. Where the store does not answer, opening the lease says why.
func (l *leasing) creates(ctx context.Context, s store.Store) bool {
	durability, err := s.Durability(ctx)
	if err != nil || !durability.NoticesLoss {
		return false
	}
	_, err = pool.Show(ctx, s, l.pool)
	var missing *lease.MissingPoolError
	return errors.As(err, &missing) && len(missing.Pools) == 0
}

// creating are the options of a pool that is created by these settings.
func (o *poolOptions) creating() *pool.Options {
	c := &pool.Options{Layout: o.Layout}
	if o.Outage > term.OutageDurable { // less is what a process asks for, and others may ask for more
		c.Outage = o.Outage
	}
	if o.ranged {
		c.First, c.Workers = o.workers.First, o.workers.Count()
	}
	return c
}

// sameRange reports that the pool has other workers than the file says.
func (l *leasing) sameRange(info pool.Info) error {
	have, want := term.Range{First: info.First, Last: info.Last}, l.options.workers
	if !l.options.ranged || have == want || want.String() == info.GivingUp {
		return nil
	}
	return ui.Bad("%s", l.blame("workers", fmt.Sprintf("workers %s: pool %q has workers %s", want, l.pool, have))).
		Hint("to change the pool: firn pool set %s --workers %s. To keep it: workers: %s in firn.yaml", phrase.ShellWord(l.pool), want, have)
}

// hostname is the name of this host. A test replaces it.
var hostname = os.Hostname

// hostWorker is the worker that the host's name says: its number counts from the pool's
// first worker, so that web-0 has the first of 512-1023.
func hostWorker(info pool.Info, hostname func() (string, error)) (int64, error) {
	host, err := hostname()
	if err != nil {
		return 0, ui.Failed("worker hostname: %w", err).Hint("--worker recycle takes any free one")
	}
	n, err := ordinal(host)
	if err != nil {
		return 0, ui.Failed("worker hostname: %w", err).Hint("--worker recycle takes any free one")
	}
	n += info.First
	if n > info.Last {
		return 0, &hostError{host, lease.WorkerError{Pool: info.Name, Worker: n, First: info.First, Last: info.Last}}
	}
	return n, nil
}

// A hostError says that the host's name asks for a worker that the pool does not have.
type hostError struct {
	host string
	lease.WorkerError
}

func (e *hostError) Error() string { return outside(e, &e.WorkerError) }
func (e *hostError) Unwrap() error { return &e.WorkerError }

// explain adds to an error of a lease what can be done about it.
func (l *leasing) explain(err error) error {
	var f *ui.Failure
	var option *lease.OptionError
	var outage *outageError
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.As(err, &outage):
		return l.faults(outage.error).Hint("%s", l.shorterOutage(outage.limit))
	case errors.As(err, &option):
		return l.faults(err)
	}
	if f := poolFailure(err, poolPlace{url: storeText(l.url), from: l.from, file: l.file, serves: l.serves}); f != nil {
		return f
	}
	return err
}
