package open

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// This file brings what the settings say of a pool together with what its record says.

// openLease leases a worker, or several.
func openLease(ctx context.Context, s store.Store, l *config.Leasing, opts *Options) (*lease.Lease, error) {
	o, err := ReadyLease(ctx, s, l, opts.Hostname)
	if err != nil {
		return nil, LearnCause(ctx, s, l, err)
	}
	o.Logger = opts.Logger
	ids, err := lease.Open(ctx, s, &o)
	return ids, LearnCause(ctx, s, l, err)
}

// A LostPoolError says that the store has records of workers of a pool that it does not
// have.
type LostPoolError struct {
	*lease.MissingPoolError
	Workers int
	Left    string // the workers that the other pools leave to it; "" where that is not known
}

// A LongOutageError says that a pool has no outage budget as long as the one that is asked for.
type LongOutageError struct {
	Err   error
	Limit time.Duration // the longest that the pool has
}

func (e *LongOutageError) Error() string { return e.Err.Error() }
func (e *LongOutageError) Unwrap() error { return e.Err }

func (e *LostPoolError) Unwrap() error { return e.MissingPoolError }

// LearnCause adds to an error what the store says of its cause: that a missing pool was lost, or
// which workers a pool can have.
func LearnCause(ctx context.Context, s store.Store, l *config.Leasing, err error) error {
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
		return roomFor(ctx, s, err)
	}
	remains, lost := s.List(ctx, term.KeyPool(l.Pool)+"/")
	if lost != nil || len(remains) == 0 {
		return Elsewhere(ctx, s, Crowded(ctx, s, err, &l.Options))
	}
	return &LostPoolError{missing, len(remains), LeftTo(ctx, s, l.Pool, l.Options.Layout)}
}

// ReadyLease returns the options of the lease, once it has compared the pool's record with the
// range that the file says, and counted the host's number from the pool's first worker.
func ReadyLease(ctx context.Context, s store.Store, l *config.Leasing, hostname func() (string, error)) (lease.Options, error) {
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

// show returns the pool's record. The first pool of an embedded store is created with what
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

// creates reports whether to open the lease is to create the pool, as the first pool of a
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

// SameRange reports that the pool has other workers than the file says.
func SameRange(l *config.Leasing, info pool.Info) error {
	have, want := term.Range{First: info.First, Last: info.Last}, l.Options.Workers
	if !l.Options.Ranged || have == want || want.String() == info.GivingUp {
		return nil
	}
	return &RangeError{Pool: l.Pool, From: l.From["workers"], Have: have.String(), Want: want.String(), faults: config.Blame(l.From, "workers", fmt.Sprintf("workers %s: pool %q has workers %s", want, l.Pool, have))}
}

// A RangeError says that a pool has other workers than the settings say.
type RangeError struct {
	Pool       string
	From       string // where the settings say so
	Have, Want string // workers of the pool and of the settings, such as 0-511

	faults string
}

func (e *RangeError) Error() string { return e.faults }

// Retryable is false; see firn.Retryable.
func (*RangeError) Retryable() bool { return false }

// HostWorker is the worker that the host's name says: its number counts from the pool's
// first worker, so that web-0 has the first of 512-1023.
func HostWorker(info pool.Info, hostname func() (string, error)) (int64, error) {
	host, err := hostname()
	if err != nil {
		return 0, &HostNameError{err}
	}
	n, err := ordinal(host)
	if err != nil {
		return 0, &HostNameError{err}
	}
	n += info.First
	if n > info.Last {
		return 0, &HostError{host, lease.WorkerError{Pool: info.Name, Worker: n, First: info.First, Last: info.Last}}
	}
	return n, nil
}

// ordinal returns the number that a host's name ends in: 7 for web-7, as the pods of a
// StatefulSet are called.
func ordinal(host string) (int64, error) {
	host, _, _ = strings.Cut(host, ".")
	digits := host[len(strings.TrimRight(host, "0123456789")):]
	n, err := strconv.ParseInt(digits, 10, 62) // with a first worker added it is still a number
	if err != nil {
		return 0, fmt.Errorf("the host's name is %q, which does not end in a number", host)
	}
	return n, nil
}

// A HostNameError says that the host's name has no number for a worker.
type HostNameError struct{ Err error }

func (e *HostNameError) Error() string { return "worker hostname: " + e.Err.Error() }
func (e *HostNameError) Unwrap() error { return e.Err }

// Retryable is false; see firn.Retryable.
func (*HostNameError) Retryable() bool { return false }

// A HostError says that the host's name asks for a worker that the pool does not have.
type HostError struct {
	host string
	lease.WorkerError
}

func (e *HostError) Error() string {
	return fmt.Sprintf("host %s asks for worker %d, which is outside pool %q, which has workers %d-%d", e.host, e.Worker, e.Pool, e.First, e.Last)
}
func (e *HostError) Unwrap() error  { return &e.WorkerError }
func (e *HostError) Reason() string { return e.Error() } // not that of WorkerError

// LeftTo returns the workers that the other pools leave to a pool that was lost: the range
// without theirs that has all its worker records. It returns "" where there are no such
// records, where another pool has one of these workers, and where the other pools leave all.
func LeftTo(ctx context.Context, s store.Store, name string, l firn.Layout) string {
	if !l.IsValid() {
		l = firn.Default()
	}
	recs, failed := s.List(ctx, term.KeyWorkers(name))
	others, unlisted := pool.List(ctx, s)
	if failed != nil || unlisted != nil || len(recs) == 0 {
		return ""
	}
	all := term.Range{First: 0, Last: l.Workers() - 1}
	had := term.Range{First: all.Last, Last: 0}
	for _, rec := range recs {
		n, ok := term.WorkerOf(name, rec.Key)
		if !ok || n > all.Last {
			return ""
		}
		had = term.Range{First: min(had.First, n), Last: max(had.Last, n)}
	}
	left := all
	for _, other := range others {
		if other.Name == name || !term.SameWorkerBits(l, other.Layout) {
			continue
		}
		theirs := term.Range{First: other.First, Last: other.Last}
		if r, err := term.ParseRange(other.GivingUp, other.Layout); err == nil {
			theirs = term.Range{First: min(theirs.First, r.First), Last: max(theirs.Last, r.Last)}
		}
		switch {
		case theirs.Last < had.First:
			left.First = max(left.First, theirs.Last+1)
		case theirs.First > had.Last:
			left.Last = min(left.Last, theirs.First-1)
		default:
			return ""
		}
	}
	if left == all {
		return ""
	}
	return left.String()
}

// A RoomError says how a pool gets a worker that it does not have, as its store allows.
type RoomError struct {
	error
	Worker    int64
	Most      int64     // the last worker that the layout has
	Other     pool.Info // that has the worker, or those between the worker and the pool; without a name: none
	Between   bool      // it has those between
	Low, High int64     // the range that would have the worker
}

func (e *RoomError) Unwrap() error { return e.error }

// roomFor adds to the error for a worker that the pool does not have how it gets that
// worker, if it can.
func roomFor(ctx context.Context, s store.Store, err error) error {
	var e *lease.WorkerError
	if !errors.As(err, &e) {
		return err
	}
	all, failed := pool.List(ctx, s)
	i := slices.IndexFunc(all, func(p pool.Info) bool { return p.Name == e.Pool })
	if failed != nil || i < 0 {
		return err
	}
	own := all[i]
	most := own.Layout.Workers() - 1
	if e.Worker > most {
		return &RoomError{error: err, Worker: e.Worker, Most: most}
	}
	low, high := min(e.Worker, own.First), max(min(widened(e.Worker), most), own.Last)
	for _, other := range all {
		switch {
		case other.Name == e.Pool || slices.Contains(own.MayRepeat, other.Name) || slices.Contains(other.MayRepeat, own.Name):
		case other.First <= e.Worker && e.Worker <= other.Last:
			return &RoomError{error: err, Worker: e.Worker, Most: most, Other: other}
		case other.First > own.Last && other.Last < e.Worker, other.Last < own.First && other.First > e.Worker:
			return &RoomError{error: err, Worker: e.Worker, Most: most, Other: other, Between: true}
		case other.First > max(e.Worker, own.Last):
			high = min(high, other.First-1)
		}
	}
	return &RoomError{error: err, Worker: e.Worker, Most: most, Low: low, High: high}
}

// widened is the last worker of the smallest range of a whole number of bits that has n.
func widened(n int64) int64 { return 1<<bits.Len64(uint64(n)) - 1 }
