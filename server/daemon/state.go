package daemon

import (
	"errors"
	"math"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/store"
)

// This file says what leases, segments and serials are in the words of a server.

var errNoWorker = errors.New("no worker is held just now")

func leaseState(l *lease.Lease, at string) server.State {
	now := l.State()
	st := server.State{
		Kind: config.Flake, Store: at, Class: classOf(now.Durable), Why: now.Why,
		Degraded: now.StoreAway, Err: now.Err, Until: now.EndsAt, Budget: now.Outage,
		Pool: now.Pool, Term: now.Term, Since: now.LeasedAt, Renewed: now.RenewedAt,
		ClockOffset: now.Ahead, Borrowed: now.Borrowed, Ended: now.Layout.End(),
	}
	if now.StoreAway {
		st.Away = now.RenewedAt
	}
	for _, lane := range l.Lanes() {
		st.Worker = append(st.Worker, lane.Worker)
		st.Waits += lane.Waits
	}
	if now.LeasedAt.IsZero() {
		st.Degraded, st.Until, st.Away = false, time.Time{}, time.Time{}
		var ended *lease.OutageError
		if errors.As(now.Err, &ended) {
			st.Away = ended.EndedAt
		}
		if st.Err == nil {
			st.Err = errNoWorker
		}
	}
	return st
}

// segmentFacts are what a segment's state does not say.
type segmentFacts struct {
	kind, store string
	increment   int64
	lasts       time.Duration
}

func segmentState(s *sequence.Series, of segmentFacts) server.State {
	st := server.State{Kind: of.kind, Store: of.store, Class: classOf(true), Budget: of.lasts, Increment: of.increment, Degraded: true}
	var rate float64
	for _, now := range s.States() {
		if st.Why == "" || !now.Durability.Durable {
			st.Class, st.Why = now.Durability.String(), now.Durability.Why
		}
		st.Next = max(st.Next, int64(now.Granted)+of.increment)
		st.Last = max(st.Last, int64(now.Max))
		st.Left += now.Left
		st.Waits = now.Waits
		st.Waste += now.Wasted
		rate += now.Rate
		// Of several stores one that answers is enough.
		st.Degraded = st.Degraded && now.Degraded
		if st.Away.IsZero() || now.Away.Before(st.Away) {
			st.Away = now.Away
		}
		if now.Err != nil {
			st.Err = now.Err
		}
	}
	if !st.Degraded {
		st.Err, st.Away = s.State().Err, time.Time{} // of the store that has most
	}
	var end *sequence.EndError
	st.Over = errors.As(st.Err, &end)
	if rate > 0 {
		left := float64(st.Left) + float64(st.Last-min(st.Next, st.Last))/float64(of.increment)
		st.Until = time.Now().Add(seconds(float64(st.Left) / rate))
		st.Ended = time.Now().Add(seconds(left / rate))
	}
	return st
}

// seconds is a duration, of a hundred years at most.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 100*365*24*3600) * float64(time.Second))
}

// serialState: heard is why its store does not answer, as was found without a call
// of anybody's. A failure of the last call counts where it will not pass.
func serialState(s *document.Series, at string, heard error) server.State {
	now := s.State()
	st := server.State{
		Kind: config.Serial, Store: at, Class: classOf(now.Durable), Why: now.Why, Left: now.Reserved,
		Degraded: heard != nil, Err: heard,
	}
	if now.Err != nil && !passes(now.Err) {
		st.Degraded, st.Err = false, now.Err
		var full *document.EndError
		st.Over = errors.As(now.Err, &full)
	}
	if now.Last.Count > 0 && now.Last.Count < math.MaxInt64 {
		st.Next = now.Last.Count + 1
	}
	return st
}

// classOf is how the server names what a store does with what it acknowledged.
func classOf(durable bool) string { return store.Durability{Durable: durable}.String() }
