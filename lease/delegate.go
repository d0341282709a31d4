package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/pagefile"
)

// Delegate is for package page: from now on another one issues the ids of this lease, which keeps the worker. begin is
// called in each term, and makes what issues its ids. The lease extends it with confirmed horizons only, and closes
// it before it gives the worker back. Next and Append of the lease return an error from then on, also if begin fails.
// The channel is closed when Close of the lease is called.
//
// Delegate refuses a lease with several lanes, one with a grant file (the process that continued the file's grant
// would issue beside the other one), and a lease that is delegated already.
func (l *Lease) Delegate(begin func(pagefile.Term) (pagefile.Issuer, error)) (ended <-chan struct{}, err error) {
	switch {
	case l.filed:
		return nil, &OptionError{"grant-file", "grant-file: a lease that has one cannot serve a page; leave it out"}
	case len(l.lanes) > 1:
		return nil, &OptionError{"lanes", fmt.Sprintf("lanes %d: a page has one worker; leave it out", len(l.lanes))}
	case l.closed.Load():
		return nil, firn.ErrClosed
	case !l.delegated.CompareAndSwap(nil, &begin):
		return nil, errors.New("lease: it serves a page already")
	}
	select {
	case l.lanes[0].nudge <- struct{}{}:
	default:
	}
	l.change()
	return l.ended, nil
}

// A delegatedError says that a lease gives no ids by itself any more.
type delegatedError struct{}

func (delegatedError) Error() string {
	return "lease: its ids come from the page that it serves; take them there, with page.Open"
}

func (delegatedError) Retryable() bool { return false }

// An issuer issues the ids of one term: by a generator, until the lease is delegated. All of it runs in the keeper's
// goroutine.
type issuer struct {
	k     *keeper
	gen   *firn.Generator
	grant firn.Grant      // its horizon is the highest that was confirmed
	other pagefile.Issuer // instead of gen; nil: none
	begun bool            // begin was called
}

// Extend raises the horizon to one that the store has confirmed.
func (i *issuer) Extend(horizon firn.Tick) {
	i.grant.Horizon = max(i.grant.Horizon, horizon)
	if i.other != nil {
		i.other.Extend(horizon)
		return
	}
	i.gen.Extend(horizon)
}

// SetClock makes it now.
func (i *issuer) SetClock(now time.Time) {
	i.gen.SetClock(now)
	i.delegate(now)
	if i.other != nil {
		i.other.SetClock(now)
	}
}

// Close ends issuing permanently and returns a tick above which nothing was issued.
func (i *issuer) Close() firn.Tick {
	i.begun = true
	last := i.gen.Close()
	if i.other != nil {
		last = max(last, i.other.Close())
	}
	return last
}

// delegate hands over what the generator has not issued, if the lease is delegated. The generator is closed first.
// Nothing is issued in this term if begin fails.
func (i *issuer) delegate(now time.Time) {
	begin := i.k.lease.delegated.Load()
	if begin == nil || i.begun {
		return
	}
	i.begun = true
	grant := i.grant
	grant.Base = i.gen.Close()
	o := &i.k.options
	other, err := (*begin)(pagefile.Term{
		Pool: o.Pool, PoolID: i.k.process.PoolID, Layout: o.Layout, Shard: o.Shard,
		Number: i.k.process.Term.Have.Term, Grant: grant, Ahead: max(o.MaxAhead, 0), Now: now,
	})
	if err != nil {
		i.k.log.Error("cannot serve a page", "err", err)
		return
	}
	i.other = other
}
