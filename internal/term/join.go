package term

import (
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// joined: the pool's record was read, before seeking, after taking, or now and
// then while a worker is held.
func (s State) joined(r *Rules, now Now, rec store.Record) (State, Action) {
	if rec.Version == "" {
		if s.poolID != "" {
			return s.end(Forgotten, &store.ForgotError{Store: "pool " + r.Pool, What: "its record is missing"})
		}
		return s.end(Refused, &MissingPoolError{Pool: r.Pool})
	}
	p, err := ReadPool(rec)
	if err != nil {
		return s.end(Refused, err)
	}
	switch here := s.View.Durability.Identity; {
	case s.poolID != "" && p.ID != s.poolID:
		return s.end(Forgotten, &store.ForgotError{Store: "pool " + r.Pool, What: "it is another pool of that name"})
	case p.Elsewhere(here):
		return s.elsewhere(r, p, here)
	case p.Workers == "":
		return s.end(Refused, &MissingPoolError{Pool: r.Pool, Creating: p.Reserved != ""})
	case p.Layout != r.Layout.String():
		return s.end(Refused, &LayoutError{Pool: r.Pool, Have: p.Layout, Want: r.Layout.String()})
	}
	workers, err := p.Range(r.Layout)
	if err != nil {
		return s.end(Refused, &store.FormatError{Key: rec.Key, Reason: err.Error()})
	}
	s.Pool, s.poolID, s.at = p, p.ID, rec.Version
	judged := s.Lossy
	s.Lossy = s.Lossy || p.Lossy != ""
	switch s.Phase {
	case Confirming:
		switch {
		case s.Lossy && !judged:
			return s.end(Lost, &LostError{Worker: s.Worker, Err: errClass})
		case s.Lossy && s.Reach > p.LongestOutage(): // others work out from it how long to wait
			return s.end(Lost, &LostError{Worker: s.Worker, Err: errReach})
		case !workers.Has(s.Worker): // another pool may get it
			return s.end(Lost, &LostError{Worker: s.Worker, Err: errRange})
		}
		return s, Action{Op: Get, Key: keyStore}
	case Holding:
		return s.reread(r, now)
	}
	s.first, s.count = workers.First, workers.Count()
	switch r.Choice {
	case Insist, Prefer:
		if !workers.Has(r.Worker) {
			return s.end(Refused, &WorkerError{Pool: r.Pool, Worker: r.Worker, First: workers.First, Last: workers.Last})
		}
		if r.Choice == Insist {
			s.first, s.count = r.Worker, 1
		}
	}
	// Both readings are of the instant at which the record was asked for, or
	// earlier: so a slow answer is not taken for a clock that is ahead.
	if ahead := now.Wall.Add(s.asked - now.Boot).Sub(rec.Read); !r.LocalClock && !rec.Read.IsZero() && ahead > r.Skew {
		return s.end(Refused, &ClockError{Ahead: ahead, Skew: r.Skew})
	}
	if p := s.amended(r, now, p); p != s.Pool {
		s.Phase = Amending
		return s, s.amend(r, p)
	}
	s.blind, s.draw = rec.Read.IsZero(), s.random.Uint64()
	s.hear(now, rec)
	return s.seek(r, now)
}

// confirmed: the pool's record, and then the store's, were read again after the
// worker's was acknowledged. A restore raises the floors first and the workers'
// records after; so either it is seen here, or it finds our record and raises that.
// The pool alone does not tell: whoever created it may have read the store's floor before
// the recovery and written after it. Likewise a mark that the store can forget is in
// place before it forgets anything.
func (s State) confirmed(r *Rules, now Now, rec store.Record) (State, Action) {
	s.Base = max(s.Base, s.Pool.Floor)
	if rec.Version != "" {
		all, err := record.Read[Store](rec)
		if err != nil {
			return s.end(Refused, err)
		}
		s.Base = max(s.Base, r.tick(all.Floor))
	}
	wait := r.Wait
	if s.Lossy {
		s.Base = max(s.Base, r.tick(now.Wall.Add(r.Quarantine(s.Pool))))
		wait += r.Quarantine(s.Pool)
	}
	if r.Delay(s.Pool.Floor, now.Wall) > wait {
		return s.end(Refused, &NotYetError{Pool: r.Pool, StartsAt: r.start(s.Pool.Floor)})
	}
	if d := r.Delay(s.Base, now.Wall); d > wait {
		return s.end(Refused, s.fullError(r, now, []candidate{{worker: s.Worker, free: d}}))
	}
	s.Phase = Holding
	return s.hold(r, now)
}

// Delay is how long a clock that says wall has to wait for the first tick above base.
func (r *Rules) Delay(base firn.Tick, wall time.Time) time.Duration {
	return max(r.Layout.Time(base+1).Add(-r.Borrow).Sub(wall), 0)
}
