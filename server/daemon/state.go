package daemon

import (
	"cmp"
	"errors"
	"math"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server"
)

// This file says what leases, sequences and documents are in the words of a server.

var errNoWorker = errors.New("no worker is held just now")

func leaseState(l *lease.Lease, at string) server.State {
	now := l.State()
	st := server.State{
		Kind: config.Flake, Store: at, Durable: &now.Durable, Why: now.Why,
		StoreAway: now.StoreAway, TroubleSince: now.AwaySince, Err: now.Err,
		StartsAt: now.StartsAt, EndsAt: now.EndsAt, Budget: now.Outage, UsedUpAt: now.Layout.End(),
		Lease: &server.Lease{
			Pool: now.Pool, Layout: now.Layout, RenewedAt: now.RenewedAt, Ahead: now.Ahead, Borrowed: now.Borrowed,
		},
	}
	if st.StartsAt.IsZero() { // no worker can be had before
		st.StartsAt = startOf(now.Err)
	}
	lanes := l.Lanes()
	st.Lease.Term, st.Lease.LeasedAt = lanes[0].Term, lanes[0].LeasedAt // now is of any lane
	for _, lane := range lanes {
		st.Waits += lane.Waits
		if !lane.LeasedAt.IsZero() {
			st.Lease.Workers = append(st.Lease.Workers, lane.Worker)
		}
	}
	if now.LeasedAt.IsZero() {
		st.StoreAway, st.EndsAt, st.TroubleSince = false, time.Time{}, time.Time{}
		var ended *lease.OutageError
		if errors.As(now.Err, &ended) {
			st.TroubleSince = ended.EndedAt
		}
		if st.Err == nil {
			st.Err = errNoWorker
		}
	}
	return st
}

// leaseIdle is why a lease gives no id now; nil if it does.
func leaseIdle(l *lease.Lease) error {
	now := l.State()
	switch {
	case time.Until(now.StartsAt) > callPatience:
		return &lease.NotYetError{Pool: now.Pool, StartsAt: now.StartsAt, Why: "this server leases another worker in place of one that it lost"}
	case now.Issuing:
		return nil
	}
	return cmp.Or(now.Err, errNoWorker)
}

// sequenceFacts are what a sequence's state does not say.
type sequenceFacts struct {
	kind, store string
	increment   int64
	lasts       time.Duration
}

func sequenceState(s *sequence.Series, of sequenceFacts) server.State {
	n := &server.Counter{Increment: of.increment}
	st := server.State{Kind: of.kind, Store: of.store, Budget: of.lasts, StoreAway: true, Counter: n}
	var rate float64
	for _, now := range s.States() {
		if st.Durable == nil || !now.Durability.Durable {
			st.Durable, st.Why = &now.Durability.Durable, now.Durability.Why
		}
		n.Next = max(n.Next, int64(now.Granted)+of.increment)
		n.Last = max(n.Last, int64(now.Max))
		n.Reserved += now.Left
		n.Wasted += now.Wasted
		st.Waits = now.Waits
		rate += now.Rate
		// Of several stores one that answers is enough.
		st.StoreAway = st.StoreAway && now.Degraded
		if st.TroubleSince.IsZero() || now.Away.Before(st.TroubleSince) {
			st.TroubleSince = now.Away
		}
		if now.Err != nil {
			st.Err = now.Err
		}
	}
	if !st.StoreAway {
		st.Err, st.TroubleSince = s.State().Err, time.Time{} // of the store that has most
	}
	var end *sequence.EndError
	st.Exhausted = errors.As(st.Err, &end)
	if rate > 0 {
		left := float64(n.Reserved) + float64(n.Last-min(n.Next, n.Last))/float64(of.increment)
		st.EndsAt = time.Now().Add(seconds(float64(n.Reserved) / rate))
		st.UsedUpAt = time.Now().Add(seconds(left / rate))
	}
	return st
}

// seconds is a duration, of a hundred years at most.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 100*365*24*3600) * float64(time.Second))
}

// documentState: h is whether its store answers, as was found without a call
// of anybody's. A failure of the last call counts where it will not pass.
func documentState(s *document.Series, at string, h *heard) server.State {
	now := s.State()
	n := &server.Counter{Reserved: now.Reserved}
	st := server.State{
		Kind: config.Document, Store: at, Durable: &now.Durable, Why: now.Why,
		UnreadyAlone: true, StoreAway: h.err != nil, TroubleSince: h.since, Err: h.err, Counter: n,
	}
	if now.Err != nil && !passes(now.Err) {
		st.StoreAway, st.TroubleSince, st.Err = false, time.Time{}, now.Err
		var full *document.EndError
		st.Exhausted = errors.As(now.Err, &full)
	}
	if now.Last.Count > 0 && now.Last.Count < math.MaxInt64 {
		n.Next = max(now.Last.Count, int64(now.Last.ID)) + 1
	}
	return st
}
