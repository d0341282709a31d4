package holder

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A Process is what a process knows of its lease of one worker. Make it by New.
type Process struct {
	Rules   *term.Rules
	Name    string        // of the process, for people
	Look    time.Duration // how often the clocks are looked at
	Foreign bool          // another program issues; see lease.Hold
	Filed   bool          // there is a grant file: nothing above the mark in it is issued

	Clock  term.Clock // the process's own
	View   term.View  // what the store promises, as last seen
	Known  Reading    // the store's clock, as last read
	PoolID string     // of the pool; empty: not known yet

	Term      term.State
	Event     term.Event  // the last that the machine was told
	Doing     term.Action // what it then asked for
	Begun     bool        // something was granted once
	TakenAt   time.Time   // when the first grant of this term was acknowledged
	FileErr   error       // why the mark cannot be raised
	OtherPool bool        // the term ended because the grant file is of another pool

	random   rand.ChaCha8
	granted  bool          // this term has granted something
	stopped  bool          // the world said stop
	leaving  bool          // the term is to end: the world said stop, or
	outside  error         // the clock has left the layout's life
	deadline time.Duration // boot time at which the time for a goodbye is over

	resume  *term.Saved // what the first term goes on with,
	base    firn.Tick   // and above which tick
	hearsay bool        // the pool's id is known from the grant file alone
	mark    firn.Tick   // in the grant file
	markOf  string      // owner of the grant that the file has
}

// A Reading is what the store's clock said at a boot time.
type Reading struct {
	Store time.Time // zero: it has none, or was not heard
	Boot  time.Duration
}

// New returns a process that has seen this of the store's durability. Its clock says now.
func New(r *term.Rules, name string, seed [32]byte, now term.Now, seen term.View) Process {
	return Process{
		Rules: r, Name: name, Look: 250 * time.Millisecond, View: seen,
		Clock: term.NewClock(now.Wall, now.Boot), random: *rand.NewChaCha8(seed),
	}
}

var errNoTime = errors.New("the store did not answer in time")

// begin begins a term, and reports whether the clock is within the layout's life.
func (p *Process) begin(now term.Now, seed [32]byte) bool {
	p.granted, p.leaving, p.outside, p.OtherPool = false, false, nil, false
	p.Doing, p.Event, p.TakenAt = term.Action{}, nil, time.Time{}
	if err := p.Rules.Layout.Check(now.Wall); err != nil {
		p.Term = term.State{Phase: term.Refused, Err: err}
		return false
	}
	if r := p.resume; r != nil {
		p.resume = nil
		p.Term = term.Resume(seed, p.Name, *r, p.base)
	} else {
		p.Term = term.Start(seed, p.Name, p.PoolID)
	}
	return true
}

// Step tells the machine what came of its action, and remembers what outlasts the term.
func (p *Process) Step(sys term.Now, e term.Event) {
	asked := p.Doing.For
	p.Event = e
	p.Term, p.Doing = p.Term.Step(p.Rules, p.Now(sys.Boot), e)
	p.deny(e)
	p.note(sys, e)
	p.disown(asked)
	if p.outside != nil && p.Term.Phase != term.Forgotten {
		p.Term.Err = p.outside
	}
}

// deny ends a term before the first worker was taken where an event says that this user
// lacks a right: nobody waits at a start for somebody to grant one. A process that has held a
// worker goes on asking, since rights may come back.
func (p *Process) deny(e term.Event) {
	unknown, ok := e.(term.Unknown)
	if ok && !p.Begun && !p.Term.Closed && errors.Is(unknown.Err, store.ErrDenied) {
		p.Term.Phase, p.Term.Err, p.Doing = term.Refused, unknown.Err, term.Action{}
	}
}

// note remembers what the store promises, its clock, and the pool's id.
func (p *Process) note(sys term.Now, e term.Event) {
	if p.Term.View.Known {
		p.View = p.Term.View
	}
	switch e := e.(type) {
	case term.Found:
		p.Known = Reading{e.Record.Read, sys.Boot}
	case term.Wrote:
		p.Known = Reading{e.Record.Read, sys.Boot}
	}
	if p.Term.Pool.ID != "" {
		p.PoolID, p.hearsay = p.Term.Pool.ID, false
	}
}

// disown says so where a term ends because the store's pool is not the one of the grant
// file: whoever starts again goes on with the file, and ends likewise, until it is removed.
func (p *Process) disown(asked term.Purpose) {
	switch asked {
	case term.JoinPool, term.ConfirmPool, term.WatchPool:
		p.OtherPool = p.hearsay && p.Term.Phase == term.Forgotten
	}
}

// first takes note of a term's first grant.
func (p *Process) first(now time.Time) {
	p.Begun, p.granted, p.TakenAt = true, true, now
}

// leave makes the term end: by a stop, or because the clock is outside the layout's life.
func (p *Process) leave(boot time.Duration, outside error) {
	if !p.leaving {
		p.leaving, p.deadline = true, boot+Ask
	}
	if outside != nil {
		p.outside, p.Term.Err = outside, outside
	}
}

// ended reports whether no other term is to follow.
func (p *Process) ended() bool {
	return p.stopped || p.Term.Phase == term.Forgotten || p.Term.Phase == term.Refused && !p.Begun || p.granted && p.Foreign
}

// kept returns why a worker was not given back; nil if it was, or none was held.
func (p *Process) kept(boot time.Duration) error {
	s := &p.Term
	if !s.Closed || s.Have.Owner == "" || s.Phase == term.Released || s.Phase == term.Lost {
		return nil
	}
	ttl := time.Duration(s.Have.TTL) * time.Millisecond
	past := p.Rules.Delay(s.Have.Horizon, p.Clock.At(boot)).Round(time.Second) // when its ids have passed
	return fmt.Errorf("lease: worker %d was not given back, and falls free in %s: %w", s.Worker, max(ttl, past), s.Err)
}

// lapse is how long to wait before the next term, after so many that granted nothing.
func (p *Process) lapse(failures int) time.Duration {
	most := min(100*time.Millisecond<<min(failures, 10), Lapse)
	return time.Duration(p.random.Uint64() % uint64(most))
}

// patience is how long to wait for an answer: a store that does not answer has to
// be known for that before the grant is used up. At the end it is the time that is left.
func (p *Process) patience(boot time.Duration) time.Duration {
	if p.Term.Closed {
		return min(Ask, p.deadline-boot)
	}
	grant, ok := p.Term.Grant()
	left := p.Rules.Layout.Time(grant.Horizon + 1).Sub(p.Clock.At(boot))
	if !ok || left <= 0 {
		return Ask
	}
	return min(Ask, max(left/3, p.Look))
}

// Now reads the process's own clock.
func (p *Process) Now(boot time.Duration) term.Now {
	return term.Now{Wall: p.Clock.At(boot), Boot: boot}
}

// StoreTime is what the store's clock says now; zero where that is not known.
func (p *Process) StoreTime(boot time.Duration) time.Time {
	if p.Known.Store.IsZero() {
		return time.Time{}
	}
	return p.Known.Store.Add(boot - p.Known.Boot)
}

// follow leads the process's own clock to the system's, and reads it.
func (p *Process) follow(sys term.Now) term.Now {
	var known time.Time
	if !p.Rules.LocalClock {
		known = p.StoreTime(sys.Boot)
	}
	p.Clock = p.Clock.Follow(sys.Wall, sys.Boot, known, p.Rules.Skew)
	return p.Now(sys.Boot)
}

// latest is the later one of the system's clock and our own. Where the system's
// was set back, our own still says until when the other program has issued: it is
// led back slowly, and never to before a time that it has shown.
func (p *Process) latest(sys term.Now) time.Time {
	if own := p.Clock.At(sys.Boot); own.After(sys.Wall) {
		return own
	}
	return sys.Wall
}

// StartsAt is when the first id of the grant can be issued.
func (p *Process) StartsAt() time.Time {
	return p.Rules.Layout.Time(p.Term.Base + 1).Add(-p.Rules.Borrow)
}

// Durable reports whether the rules for a store that cannot lose writes hold.
func (p *Process) Durable() bool {
	return !p.Term.Lossy && (p.Term.View.Known || p.View.Durability.Durable)
}
