package term

import (
	"fmt"
	"time"

	"github.com/firn-id/firn/store"
)

// This file has what follows from what the store promises, which may change, and
// which two processes may see differently. The pool's record settles it: who sees
// that the store is lossy says so there before it does anything else, and from
// then on the rules for such a store hold for all, whatever they see themselves.
//
//   - Who takes a worker reads the pool's record after the acknowledgement. On one
//     that is marked it issues nothing for Rules.Quarantine; and if it was
//     not marked when the worker was chosen, or says now that no grant reaches as
//     far as this one does, it lets go of the worker.
//   - An extension acknowledged later than the time to live of the record it
//     replaces counts only if the pool's record, read after it, is not marked. In
//     time, nobody can have had the worker in between and been forgotten.
//
// So ids are unique as long as clocks are right within Rules.Skew and the store
// forgets only what it acknowledged after the mark.

// A View is what a process has seen of the store's durability.
type View struct {
	Durability store.Durability
	Asked      time.Duration // boot time
	Known      bool          // false: it has not been asked
}

// A look is when and why to ask the store what it promises.
type look struct {
	at    time.Duration // boot time from which on it is asked
	why   string        // it is lossy
	err   error         // of the last time; nil: it answered
	fails int           // in a row
}

// see takes note of what the store promises.
func (s *State) see(r *Rules, v View) {
	if !v.Known {
		return
	}
	s.View = v
	s.look = look{at: v.Asked + r.Look, why: s.look.why}
	if !v.Durability.Durable {
		s.Lossy, s.look.why = true, v.Durability.Why
	}
}

// unseen: the store does not say what it promises. Ids go on, and extensions do:
// what it promised last holds.
func (s State) unseen(r *Rules, now Now, err error) (State, Action) {
	s.look.err = err
	s.look.fails++
	s.look.at = now.Boot + s.jitter(min(time.Second<<min(s.look.fails, 5), r.Look))
	return s.next(r, now)
}

// amended is the pool's record with what it has to say before this member may go
// on: that the store is lossy, that a grant may reach further, or which store it is in.
func (s *State) amended(r *Rules, now Now, p Pool) Pool {
	const ms = time.Millisecond
	if b := r.Budget(p, s.Lossy); b > p.LongestOutage() {
		p.Outage = int64((b + ms - 1) / ms)
	}
	if s.Lossy && p.Lossy == "" {
		p.Lossy = fmt.Sprintf("%s %s: %.500s", now.Wall.UTC().Format(time.RFC3339), s.name, s.look.why)
	}
	if p.Store == "" {
		p.Store = s.View.Durability.Identity
	}
	return p
}

// Why says why the rules for a lossy store hold, if they do; else what
// was seen of the durability.
func (s State) Why() string {
	switch {
	case !s.Lossy:
		return s.View.Durability.Why
	case s.look.why != "":
		return s.look.why
	}
	return "seen by another process: " + s.Pool.Lossy
}

// Unseen is why it is not known what the store promises now; nil: it is known.
func (s State) Unseen() error { return s.look.err }

// budget is how far ahead of the clock a grant goes at most.
func (s *State) budget(r *Rules) time.Duration { return r.Budget(s.Pool, s.Lossy) }
