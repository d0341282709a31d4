package lease

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/holder"
	"github.com/firn-id/firn/internal/term"
)

// A State says where a lease stands, for people, metrics and JSON. A time is zero where
// there is none. In JSON durations are seconds, and zero times and empty texts are left out.
type State struct {
	Pool    string      `json:"pool"`
	PoolID  string      `json:"pool_id,omitempty"` // random, made with the pool
	Layout  firn.Layout `json:"layout"`            // its spec
	Durable bool        `json:"durable"`           // false: a process of the pool has seen that the store can lose writes
	Why     string      `json:"why,omitempty"`     // what was seen of the store

	// Issuing reports whether a worker is held and its grant is not used up. Ids may still
	// have to wait for StartsAt.
	Issuing   bool      `json:"issuing"`
	Worker    int64     `json:"worker"`
	Term      uint64    `json:"term"`                // of the worker; each lease of it has a higher one
	LeasedAt  time.Time `json:"leased_at,omitzero"`  // when the worker was leased; zero while none is held
	RenewedAt time.Time `json:"renewed_at,omitzero"` // when the lease was last extended
	StartsAt  time.Time `json:"starts_at,omitzero"`  // when the first id can be issued; zero once one could be
	EndsAt    time.Time `json:"ends_at,omitzero"`    // until when ids continue without the store

	Outage time.Duration `json:"-"` // outage_seconds: for how long that is, counted from RenewedAt
	Budget time.Duration `json:"-"` // budget_seconds: what Outage grows to while the worker is held

	StoreAway bool      `json:"store_away"`          // the store does not answer
	AwaySince time.Time `json:"away_since,omitzero"` // when the first request was sent that it did not answer
	Err       error     `json:"-"`                   // error: why no ids can be issued, or the last failure; nil while all is well

	// Ahead is how far this process's clock is ahead of the store's, as last read; zero
	// where the store has no clock. In JSON it is ahead_seconds.
	Ahead time.Duration `json:"-"`

	// Offset is how far the system's clock is ahead of the one that ids are made by, which
	// follows it slowly. In JSON it is clock_offset_seconds.
	Offset time.Duration `json:"-"`

	Borrowed time.Duration `json:"-"`     // borrowed_seconds: how far the last id lies ahead of the clock
	Waits    int64         `json:"waits"` // how many times calls have slept until the clock allowed an id

	phase term.Phase
	waits string // why StartsAt lies ahead
}

// MarshalJSON returns the state as JSON.
func (s State) MarshalJSON() ([]byte, error) {
	type plain State // without this method
	all := struct {
		plain
		Outage   float64 `json:"outage_seconds,omitzero"`
		Budget   float64 `json:"budget_seconds,omitzero"`
		Ahead    float64 `json:"ahead_seconds,omitzero"`
		Offset   float64 `json:"clock_offset_seconds,omitzero"`
		Borrowed float64 `json:"borrowed_seconds,omitzero"`
		Error    string  `json:"error,omitempty"`
	}{
		plain: plain(s), Outage: s.Outage.Seconds(), Budget: s.Budget.Seconds(),
		Ahead: s.Ahead.Seconds(), Offset: s.Offset.Seconds(), Borrowed: s.Borrowed.Seconds(),
	}
	if s.Err != nil {
		all.Error = s.Err.Error()
	}
	return json.Marshal(all)
}

// Left returns for how long ids continue from now without the store; zero where no worker
// is held.
func (s State) Left(now time.Time) time.Duration {
	if !s.held() {
		return 0
	}
	return max(s.EndsAt.Sub(now), 0)
}

// held reports whether a worker is held.
func (s *State) held() bool { return s.phase == term.Holding }

// better reports whether a call waits rather at a lane of state s than at one of state t.
func (s *State) better(t *State) bool {
	switch {
	case s.held() != t.held():
		return s.held()
	case !s.StartsAt.Equal(t.StartsAt):
		return s.StartsAt.Before(t.StartsAt)
	}
	return s.EndsAt.After(t.EndsAt)
}

// differs reports whether a call that waits may fare otherwise now.
func (s *State) differs(t State) bool {
	return s.phase != t.phase || s.Worker != t.Worker || s.Term != t.Term || !s.EndsAt.Equal(t.EndsAt) ||
		s.StoreAway != t.StoreAway || (s.Err == nil) != (t.Err == nil)
}

// state is where the lane of a process stands.
func (k *keeper) state(p *holder.Process) State {
	s, sys := &p.Term, k.Clocks()
	own := p.Now(sys.Boot).Wall
	now := State{
		Pool: k.options.Pool, PoolID: s.Pool.ID, Layout: k.options.Layout, Durable: p.Durable(), Why: s.Why(),
		phase: s.Phase, Worker: s.Worker, Term: s.Have.Term, Outage: s.Reach, Budget: p.Rules.Budget(s.Pool, s.Lossy),
		StoreAway: s.Degraded(), Err: k.why(p), Offset: sys.Wall.Sub(own),
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
		now.EndsAt = k.options.Layout.Time(s.Have.Horizon + 1).Add(-1)
	}
	if at := p.StoreTime(sys.Boot); !at.IsZero() {
		now.Ahead = own.Sub(at)
	}
	k.measure(&now, p, own)
	return now
}

// measure adds what the generator tells, and when it may issue.
func (k *keeper) measure(now *State, p *holder.Process, own time.Time) {
	if k.gen != nil {
		now.Waits = k.waits + k.gen.Waits()
	}
	if !now.held() {
		return
	}
	if at := p.StartsAt(); at.After(own) {
		now.StartsAt, now.waits = at, waitReason(&p.Term, at)
	}
	if p.TakenAt.IsZero() { // nothing is granted yet
		return
	}
	now.Issuing = !own.After(now.EndsAt)
	now.LeasedAt, now.RenewedAt = p.TakenAt, p.Now(p.Term.Since).Wall
	now.Borrowed = k.gen.Borrowed()
}

// waitReason says why a worker that is held has no ids before a time.
func waitReason(s *term.State, at time.Time) string {
	if s.Lossy {
		return "the store can lose writes: " + s.Why()
	}
	until := at.UTC().Format(time.RFC3339)
	if s.Base <= s.Pool.Floor { // another worker would have to wait as long
		return "no worker of the pool has ids before " + until + ": the pool was created not long ago, or its store was recovered"
	}
	return "an earlier holder of the worker may have issued ids up to " + until
}
