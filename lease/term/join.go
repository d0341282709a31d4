package term

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// joined: the pool's record was read, before seeking, after taking, or now and
// then while a worker is held.
func (s State) joined(r *Rules, now Now, rec store.Record) (State, Action) {
	if rec.Version == "" {
		if s.poolID != "" {
			return s.end(Forgotten, &store.ForgotError{Store: "pool " + r.Pool, What: "its record is missing"})
		}
		s.Phase = Founding
		return s, Action{Op: Get, Key: keyStore}
	}
	p, err := ReadPool(rec)
	if err != nil {
		return s.end(Refused, err)
	}
	first, count, err := parseWorkers(p.Workers, r.Layout)
	switch {
	case s.poolID != "" && p.ID != s.poolID:
		return s.end(Forgotten, &store.ForgotError{Store: "pool " + r.Pool, What: "it is another pool of that name"})
	case p.Layout != r.Layout.String():
		return s.end(Refused, &LayoutError{Pool: r.Pool, Have: p.Layout, Want: r.Layout.String()})
	case err != nil:
		return s.end(Refused, &FormatError{rec.Key, err.Error()})
	}
	s.Pool, s.poolID, s.at = p, p.ID, rec.Version
	judged := s.Lossy
	s.Lossy = s.Lossy || p.Lossy != ""
	switch s.Phase {
	case Confirming:
		switch {
		case s.Lossy && !judged:
			return s.end(Lost, &LostError{Worker: s.Worker, Err: errClass})
		case s.Lossy && s.Reach > p.outage(): // others work out from it how long to wait
			return s.end(Lost, &LostError{Worker: s.Worker, Err: errReach})
		}
		return s, Action{Op: Get, Key: keyStore}
	case Holding:
		return s.reread(r, now)
	}
	if s.first, s.count = r.First, r.Workers; r.Workers == 0 {
		s.first, s.count = first, count
	}
	if r.Choice == Insist {
		s.first, s.count = r.Worker, 1
	}
	// Both readings are of the instant at which the record was asked for, or
	// earlier: so a slow answer is not taken for a clock that is ahead.
	if ahead := now.Wall.Add(s.asked - now.Boot).Sub(rec.Read); !r.Embedded && !rec.Read.IsZero() && ahead > r.Skew {
		return s.end(Refused, &ClockError{Ahead: ahead, Skew: r.Skew})
	}
	if p := s.amended(r, now, p); p != s.Pool {
		s.Phase = Founding
		return s, s.amend(r, p)
	}
	s.blind, s.draw = rec.Read.IsZero(), s.random.Uint64()
	s.hear(now, rec)
	return s.seek(r, now)
}

// found: the store's record was read, because it has no record of the pool.
func (s State) found(r *Rules, now Now, rec store.Record) (State, Action) {
	p := s.amended(r, now, Pool{V: format, ID: s.token(), Layout: r.Layout.String(), Workers: r.workers()})
	if rec.Version != "" {
		all, err := decode[Store](rec)
		if err != nil {
			return s.end(Refused, err)
		}
		p.Floor = r.tick(all.Floor)
	}
	if !r.Embedded {
		// The pool may have been there and be forgotten. Start above all that
		// it may have granted.
		known := rec.Read.Add(r.Skew)
		if rec.Read.IsZero() { // that process's clock may have been wrong as well
			known = now.Wall.Add(2 * r.Skew)
		}
		p.Floor = max(p.Floor, r.tick(known.Add(p.outage())))
	}
	return s, Action{Op: Put, Key: keyPool(r.Pool), Value: encode(p)}
}

// confirmed: the pool's record, and then the store's, were read again after the
// worker's was acknowledged. A restore raises the floors first and the workers'
// records after; so either it is seen here, or it finds our record and raises that.
// The pool alone does not tell: who founded it may have read the store's floor before
// the restore and written after it. Likewise a mark that the store can forget is in
// place before it forgets anything.
func (s State) confirmed(r *Rules, now Now, rec store.Record) (State, Action) {
	s.Base = max(s.Base, s.Pool.Floor)
	if rec.Version != "" {
		all, err := decode[Store](rec)
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

// workers is the range of worker numbers, as a pool's record has it.
func (r *Rules) workers() string {
	first, count := r.First, r.Workers
	if count == 0 {
		first, count = 0, r.Layout.Workers()
	}
	return fmt.Sprintf("%d-%d", first, first+count-1)
}

func parseWorkers(s string, l firn.Layout) (first, count int64, err error) {
	from, to, _ := strings.Cut(s, "-")
	first, _ = strconv.ParseInt(from, 10, 64)
	last, _ := strconv.ParseInt(to, 10, 64)
	switch {
	case s != fmt.Sprintf("%d-%d", first, last) || first < 0 || last < first:
		return 0, 0, fmt.Errorf("workers %q are not a range such as 0-1023", s)
	case last >= l.Workers():
		return 0, 0, fmt.Errorf("workers %q: layout has 0-%d", s, l.Workers()-1)
	}
	return first, last - first + 1, nil
}
