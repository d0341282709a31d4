package term

import (
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// This file has what follows from each answer to a question: what the store promises, and
// what its records say. Answers to writes are in write.go.

// promised: the store says how durable it is, and which it is.
func (s State) promised(r *Rules, now Now, d store.Durability) (State, Action) {
	judged := s.Lossy
	s.see(r, View{Durability: d, Asked: s.asked, Known: true})
	switch {
	case s.Pool.Elsewhere(d.Identity):
		return s.elsewhere(r, s.Pool, d.Identity)
	case s.doing == ConfirmDurability && s.Lossy && !judged:
		return s.end(Lost, &LostError{Worker: s.Worker, Err: errClass})
	}
	return s.next(r, now)
}

// found: a record was read.
func (s State) found(r *Rules, now Now, rec store.Record) (State, Action) {
	switch s.doing {
	case JoinPool, ConfirmPool, WatchPool:
		return s.readPool(r, now, rec)
	case ConfirmStore:
		return s.confirmed(r, now, rec)
	case ReadHint:
		return s.hinted(r, now, rec)
	case ReadWorker:
		return s.probed(r, now, rec)
	case SettleWorker:
		return s.settle(r, now, rec)
	}
	panic("term: a record that nobody asked for")
}

// readPool: the pool's record was read. It may be such that nobody can lease from it, or
// not this process.
func (s State) readPool(r *Rules, now Now, rec store.Record) (State, Action) {
	if rec.Version == "" {
		if s.poolID != "" {
			return s.end(Forgotten, &store.ForgotError{Store: "pool " + r.Pool, What: "its record is missing"})
		}
		return s.end(Refused, &MissingPoolError{Pool: r.Pool, Outage: r.Outage})
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
		return s.end(Refused, &MissingPoolError{Pool: r.Pool, Creating: p.Reserved != "", Outage: r.Outage})
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
	switch s.doing {
	case ConfirmPool:
		return s.confirmedPool(workers, judged)
	case WatchPool:
		return s.watched(r, now)
	}
	return s.joined(r, now, rec, workers)
}

// elsewhere: the pool's record was made in another store. A process that has leased from
// it stops for good: others may go on in the store that it knew.
func (s State) elsewhere(r *Rules, p Pool, here string) (State, Action) {
	err := &store.OtherStoreError{What: fmt.Sprintf("pool %q", r.Pool), Have: here, Want: p.Store}
	if s.poolID != "" {
		return s.end(Forgotten, err)
	}
	return s.end(Refused, err)
}

// joined: the pool's record was read before a worker is sought, for the first time or again.
func (s State) joined(r *Rules, now Now, rec store.Record, workers Range) (State, Action) {
	s.first, s.count = workers.First, workers.Count()
	switch r.Choice {
	case Insist, Prefer:
		if !workers.Has(r.Worker) {
			return s.end(Refused, &WorkerError{Pool: r.Pool, Layout: r.Layout, Worker: r.Worker, First: workers.First, Last: workers.Last})
		}
		if r.Choice == Insist {
			s.first, s.count = r.Worker, 1
		}
	}
	// Both readings are of the instant at which the record was asked for, or
	// earlier: so a slow answer is not taken for a clock that is ahead.
	if host := now.Wall.Add(s.asked - now.Boot); !r.LocalClock && !rec.Read.IsZero() && host.Sub(rec.Read) > r.Skew {
		return s.end(Refused, &ClockError{Host: host, Store: rec.Read, Skew: r.Skew})
	}
	if p := s.amended(r, now, s.Pool); p != s.Pool {
		s.Phase = Amending
		return s.amend(r, p)
	}
	if s.seen == nil { // else it is known, and seek has learned more
		s.blind, s.draw = rec.Read.IsZero(), s.random.Uint64()
	}
	s.hear(now, rec)
	return s.seek(r, now)
}

// confirmedPool: the pool's record was read again after the worker's was acknowledged.
// judged says by which rules the worker was chosen.
func (s State) confirmedPool(workers Range, judged bool) (State, Action) {
	switch {
	case s.Lossy && !judged:
		return s.end(Lost, &LostError{Worker: s.Worker, Err: errClass})
	case s.Lossy && s.Reach > s.Pool.LongestOutage(): // others work out from it how long to wait
		return s.end(Lost, &LostError{Worker: s.Worker, Err: errReach})
	case !workers.Has(s.Worker): // another pool may get it
		return s.end(Lost, &LostError{Worker: s.Worker, Err: errRange})
	}
	return s, get(ConfirmStore, KeyStore)
}

// confirmed: the pool's record, and then the store's, were read again after the
// worker's was acknowledged. A restore raises the floors first and the workers'
// records after; so either it is seen here, or it finds our record and raises that.
// The pool alone does not tell: whoever created it may have read the store's floor before
// the recovery and written after it. Likewise a mark that the store is lossy is in
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
		return s.end(Refused, s.notYet(r, now))
	}
	if d := r.Delay(s.Base, now.Wall); d > wait {
		return s.end(Refused, s.fullError(r, now, []candidate{{worker: s.Worker, free: d}}))
	}
	s.Phase = Holding
	return s.hold(r, now)
}

// watched: the pool's record was read while a worker is held.
func (s State) watched(r *Rules, now Now) (State, Action) {
	if p := s.amended(r, now, s.Pool); p != s.Pool {
		return s.amend(r, p)
	}
	s.Fails, s.Err = 0, nil
	switch rec := s.write.late; {
	case rec == nil:
		return s.hold(r, now)
	case s.Lossy:
		return s.late(r, now)
	default:
		return s.granted(r, now, *rec)
	}
}

// hear remembers what the store's clock said.
func (s *State) hear(now Now, rec store.Record) {
	if s.read = rec.Read; !s.read.IsZero() {
		s.read = s.read.Add(-now.Boot)
	}
	s.heard = now.Boot
}

// Delay is how long a clock that says wall has to wait for the first tick above base.
func (r *Rules) Delay(base firn.Tick, wall time.Time) time.Duration {
	return max(r.Layout.Time(base+1).Add(-r.Borrow).Sub(wall), 0)
}

// start is when the first tick above a floor begins.
func (r *Rules) start(floor firn.Tick) time.Time { return r.Layout.Time(floor + 1) }
