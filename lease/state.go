package lease

import (
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/holder"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A State is where a lease stands: what a person or a metric wants to know.
type State struct {
	Pool       string
	PoolID     string // random, made with the pool
	Layout     firn.Layout
	Durability store.Durability // of the store, as last asked: every minute
	// Durable says by whose rules the worker is held: false once any process of the pool has seen that the store is lossy.
	Durable bool
	Why     string // what was seen

	Phase   term.Phase // term.Holding: ids are issued
	Worker  int64
	Term    uint64        // number of this holding of the worker
	Horizon time.Time     // ids go on until then without the store
	Outage  time.Duration // for how long that is, counted from the last extension
	Budget  time.Duration // what Outage grows to while the worker is held

	Since   time.Time // when the worker was taken
	Renewed time.Time // when the grant was last extended
	// Ahead is how far this process's clock is ahead of the store's, as last
	// read; 0 where the store has none.
	Ahead time.Duration

	Borrowed time.Duration // how far the last id lies ahead of the clock
	Waits    int64         // how many times calls have slept until the clock allowed an id

	Degraded  bool      // the store does not answer
	AwaySince time.Time // when the first request was sent that it did not answer; zero where it answers
	Err       error     // why no ids can be had, or the last failure; nil while all is well

	// Offset is how far the system's clock is ahead of the one that ids are
	// made by, which follows it slowly.
	Offset time.Duration
}

// Left is how long ids go on from now without the store; 0 where none can be had.
func (s State) Left(now time.Time) time.Duration {
	if s.Phase != term.Holding {
		return 0
	}
	return max(s.Horizon.Sub(now), 0)
}

// differs reports whether a call that waits may fare otherwise now.
func (s *State) differs(t State) bool {
	return s.Phase != t.Phase || s.Worker != t.Worker || s.Term != t.Term || !s.Horizon.Equal(t.Horizon) ||
		s.Degraded != t.Degraded || (s.Err == nil) != (t.Err == nil)
}

// state is where the lane of a process stands.
func (k *keeper) state(p *holder.Process) State {
	s, sys := &p.Term, k.Clocks()
	own := p.Now(sys.Boot).Wall
	now := State{
		Pool: k.options.Pool, PoolID: s.Pool.ID, Layout: k.options.Layout, Durability: p.View.Durability,
		Durable: true, Why: s.Why(), Phase: s.Phase, Worker: s.Worker, Term: s.Have.Term, Outage: s.Reach,
		Budget:   p.Rules.Budget(s.Pool, s.Lossy),
		Degraded: s.Degraded(), Err: k.why(p), Offset: sys.Wall.Sub(own),
	}
	if s.Lossy || !s.View.Known && !now.Durability.Durable {
		now.Durable = false
	}
	if since, away := s.Mute(); away {
		now.AwaySince = p.Now(since).Wall
	}
	if now.Err == nil {
		now.Err = s.Unseen()
	}
	if p.FileErr != nil {
		now.Err = errors.Join(now.Err, p.FileErr)
	}
	if s.Have.Owner != "" {
		now.Horizon = k.options.Layout.Time(s.Have.Horizon + 1).Add(-1)
	}
	if at := p.StoreTime(sys.Boot); !at.IsZero() {
		now.Ahead = own.Sub(at)
	}
	if gen := k.lane.gen.Load(); gen != nil {
		now.Waits = k.waits + gen.Waits()
		if s.Phase == term.Holding {
			now.Since, now.Renewed = p.TakenAt, p.Now(s.Since).Wall
			now.Borrowed = gen.Borrowed()
		}
	}
	return now
}
