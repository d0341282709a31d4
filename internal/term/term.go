// Package term is one term of one worker's lease, from looking for a free
// worker to its release or loss, as a pure state machine: no clock, no store, no
// goroutine. Package holder drives it, for package lease and for the simulation.
//
//	s, do := term.Start(seed, name, "").Step(rules, now, term.Begin{})
//	for !s.Over() {
//		event := perform(do) // Get, List, Put or Sleep
//		s, do = s.Step(rules, now, event)
//	}
//
// What may be issued is s.Grant(), after every step, and nothing else.
//
// # Why nothing repeats
//
// For one worker, let a term's interval be the ticks above its base, up to the
// highest horizon ever acknowledged to it.
//
//  1. A term's base is at least the record's horizon, read and replaced by one
//     compare-and-set. So intervals of different terms are disjoint.
//  2. A horizon counts only once the store has acknowledged it; so what a holder
//     may issue is never above what the record said when the next term began.
//  3. Extensions and releases are compare-and-set on the term's own version: one
//     that arrives late changes nothing.
//  4. A generator tests each id's own tick against its interval, after taking it;
//     so a pause of any length makes no stale id.
//  5. Only a release lowers a horizon, to the last tick issued and never below
//     the base, and it is sent after the generator is closed for good.
//
// No step rests on a clock, a rate or a delay: to take a worker whose holder is
// alive is rude, not wrong. It rests on the store: it never loses a write that
// it acknowledged. Where it can, Rules.Quarantine puts a bound on clocks instead.
package term

import (
	"encoding/hex"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// Now is what a process's clocks say.
type Now struct {
	Wall time.Time     // the process's own wall clock, see [Clock]
	Boot time.Duration // since some fixed instant; counts on through suspend, never steps
}

// An Event is what came of the last action, or a wish of the caller's.
type Event interface{ event() }

// Events. Begin comes first. Woke answers Sleep, be it early, Listed List, Found Get, Wrote
// and Conflict Put, Promised Ask; Unknown and Forgot answer any of the four that ask the store.
type (
	Begin    struct{ View }
	Woke     struct{}
	Promised struct{ Durability store.Durability }
	Listed   struct{ Records []store.Record }
	Found    struct{ Record store.Record }
	Wrote    struct{ Record store.Record } // acknowledged
	Conflict struct{}                      // not written, and never will be
	Unknown  struct{ Err error }           // failed; a Put may be carried out, now or later
	Forgot   struct{ Err error }           // the store has forgotten what it acknowledged; at any time
	Stop     struct{ Last firn.Tick }      // the generator is closed for good, Last the tick above which it has issued nothing; at any time no action is under way, or instead of Woke
)

func (Begin) event()    {}
func (Woke) event()     {}
func (Promised) event() {}
func (Listed) event()   {}
func (Found) event()    {}
func (Wrote) event()    {}
func (Conflict) event() {}
func (Unknown) event()  {}
func (Forgot) event()   {}
func (Stop) event()     {}

// A Phase is where a term stands.
type Phase uint8

const (
	Joining    Phase = iota // reading the pool's record
	Amending                // it lacks something: writing that
	Seeking                 // looking for a free worker
	Taking                  // a write that acquires one is under way or in doubt
	Noting                  // acquired a fresh one; leaving word where the next may be
	Confirming              // acquired; reading the floors again, of the pool and of the store
	Holding                 // ids may be issued
	Releasing               // closed for good, and saying so
	Released                // over: the worker is free, or was never held
	Lost                    // over: somebody else has the worker, or may have
	Refused                 // over: it never began; Err says why
	Forgotten               // over: the store has forgotten; Err says what. No other term may follow
)

var phases = [...]string{
	"joining", "amending", "seeking", "taking", "noting", "confirming", "holding", "releasing",
	"released", "lost", "refused", "forgotten",
}

func (p Phase) String() string { return phases[p] }

// A State is a term so far. It is a value: Step returns another and changes none.
type State struct {
	Phase  Phase
	Pool   Pool          // as last read
	Worker int64         // from Taking on
	Have   Record        // as last acknowledged; zero before
	Base   firn.Tick     // issue only above
	Since  time.Duration // boot time at which Have was asked for
	Reach  time.Duration // how far ahead of the clock Have goes
	Fails  int           // requests in a row that the store did not answer
	View   View          // the last
	Lossy  bool          // the rules for a lossy store hold, to the end of the term
	Closed bool          // Stop came
	Err    error         // the last failure, or why the term is over

	name   string
	heir   bool   // of a grant that another process left, which may have sent a write before it died
	poolID string // as earlier terms of this process knew it; empty: none
	random rand.ChaCha8
	doing  Purpose       // what the action under way is for
	until  time.Duration // of the last Pause
	began  time.Duration // boot time of Begin
	mute   time.Duration // boot time at which the first of Fails was asked for
	asked  time.Duration // boot time at which the last request was made
	last   firn.Tick     // of Stop
	first  int64         // workers of the pool: first to first+count-1
	count  int64
	tries  int           // candidates that somebody else took first, in a row
	probes int           // left in this round
	draw   uint64        // where those begin that are looked up every round
	blind  bool          // the store has no clock, or one that was set back
	hint   store.Version // of the record of fresh workers
	at     store.Version // of Pool
	look   look
	seen   map[string]sighting // of others' records

	write   write
	version store.Version // of Have
	read    time.Time     // the store's clock when the boot clock said 0, or earlier; zero where it has none
	heard   time.Duration // boot time at which that was learned, or earlier
}

// A write is the Put under way or in doubt. One in doubt is repeated word for
// word until it is settled, so that it does not matter which copy arrived.
type write struct {
	purpose Purpose // TakeWorker, ExtendWorker or ReleaseWorker
	want    Record
	version store.Version // that it replaces
	reach   time.Duration
	copies  int           // so many were sent
	since   time.Duration // boot time at which the first copy was asked for
	doubt   bool
	refused bool          // the last copy met a conflict
	late    *store.Record // acknowledged late: it counts when the pool was read again
}

// A sighting is when a version of a record was first seen, on the boot clock.
type sighting struct {
	version store.Version
	since   time.Duration
}

// Start returns the state before Begin. The seed is random: it makes the owner
// tokens and spreads contenders. The name is for people, and a process that
// comes back under it prefers the worker it had. poolID is the pool's id as an
// earlier term of this process knew it, or empty.
func Start(seed [32]byte, name, poolID string) State {
	return State{name: name, poolID: poolID, random: *rand.NewChaCha8(seed)}
}

// Over reports whether the term has ended.
func (s State) Over() bool { return s.Phase >= Released }

// Grant returns what may be issued: all that the store has acknowledged, and
// nothing once Stop was given.
func (s State) Grant() (g firn.Grant, ok bool) {
	g = firn.Grant{Worker: s.Worker, Base: s.Base, Horizon: s.Have.Horizon}
	return g, s.Phase == Holding && !s.Closed && g.Horizon > g.Base
}

// Degraded reports whether the term holds a worker and the store does not answer.
func (s State) Degraded() bool { return s.Phase == Holding && (s.Fails > 0 || s.look.err != nil) }

// Mute returns the boot time at which the first of the requests was sent that the store
// has not answered, if there are any.
func (s State) Mute() (since time.Duration, ok bool) { return s.mute, s.Fails > 0 }

// Step returns the state after an event, and what to do next.
func (s State) Step(r *Rules, now Now, e Event) (State, Action) {
	s, do := s.step(r, now, e)
	s.doing = do.For
	if do.Op == Sleep {
		s.until = do.Until
	} else {
		s.asked = now.Boot
	}
	return s, do
}

func (s State) step(r *Rules, now Now, e Event) (State, Action) {
	switch e := e.(type) {
	case Begin:
		return s.begin(r, now, e.View)
	case Woke:
		if now.Boot < s.until && (s.Phase != Holding || s.Fails > 0) {
			return s, sleep(s.until) // a store that is busy or away is not asked more often
		}
		return s.next(r, now)
	case Stop:
		s.Closed, s.last = true, e.Last
		return s.next(r, now)
	case Forgot:
		return s.end(Forgotten, e.Err)
	case Unknown:
		return s.unanswered(r, now, e.Err)
	}
	s.answered()
	switch e := e.(type) {
	case Promised:
		return s.promised(r, now, e.Durability)
	case Listed:
		return s.listed(r, now, e.Records)
	case Found:
		return s.found(r, now, e.Record)
	case Wrote:
		return s.wrote(r, now, e.Record)
	case Conflict:
		return s.conflicted(r, now)
	}
	panic("term: unknown event")
}

func (s State) begin(r *Rules, now Now, v View) (State, Action) {
	s.began = now.Boot
	s.see(r, v)
	if ahead := now.Wall.Sub(s.wall(r, now, 0)); ahead > s.budget(r) { // of a grant that is gone on with
		return s.end(Refused, &ClockError{Host: now.Wall, Store: now.Wall.Add(-ahead - r.Skew), Skew: r.Skew})
	}
	return s.next(r, now)
}

// next is what to do when nothing is under way.
func (s State) next(r *Rules, now Now) (State, Action) {
	if s.Phase == Amending { // whatever came of that, the pool's record is read again
		s.Phase = Joining
	}
	switch {
	case s.Over():
		return s, Action{}
	case s.write.doubt:
		return s, get(SettleWorker, KeyWorker(r.Pool, s.Worker))
	case s.Closed && s.Phase < Noting:
		return s.end(Released, s.Err)
	case s.Closed:
		return s.release(r)
	}
	switch s.Phase {
	case Joining:
		if s.look.at <= now.Boot {
			return s, ask(AskDurability)
		}
		return s, get(JoinPool, KeyPool(r.Pool))
	case Seeking, Taking:
		return s.seek(r, now)
	case Noting:
		return s.note(r)
	case Confirming:
		if s.View.Asked < s.Since { // it may have been another store since
			return s, ask(ConfirmDurability)
		}
		return s, get(ConfirmPool, KeyPool(r.Pool))
	default:
		return s.hold(r, now)
	}
}

// answered takes note that the store answers. That a record can be read does not show
// that it can be written: nothing that is read while a worker is held counts.
func (s *State) answered() {
	if s.write.doubt || s.doing == WatchPool || s.doing == WatchDurability {
		return
	}
	s.Fails, s.Err = 0, nil
}

// unanswered: the action under way failed. A Put may have been carried out, or
// may yet be.
func (s State) unanswered(r *Rules, now Now, err error) (State, Action) {
	if s.doing == WatchDurability {
		return s.unseen(r, now, err)
	}
	if s.Fails == 0 {
		s.mute = s.asked
	}
	s.Fails++
	s.Err = err
	switch s.doing {
	case WriteHint:
		s.Phase = Confirming // the hint is only that
	case TakeWorker, ExtendWorker, ReleaseWorker:
		s.write.doubt = true
	}
	// A worker may be sought for longer than a store is waited for.
	if s.Phase < Holding && (now.Boot-s.began >= s.patience(r) || now.Boot-s.mute >= r.Wait) {
		return s.end(Refused, &AwayError{Wait: r.Wait, Err: err})
	}
	pause := min(100*time.Millisecond<<min(s.Fails, 6), 4*time.Second)
	until := now.Boot + s.jitter(pause)
	return s, sleep(until)
}

// jitter returns a random duration between half of d and d. As token does, it changes the
// state: call it in a statement of its own, not in one that copies the state.
func (s *State) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(s.random.Uint64()%uint64(d/2+1))
}

// token returns 128 random bits in hexadecimal.
func (s *State) token() string {
	var b [16]byte
	s.random.Read(b[:])
	return hex.EncodeToString(b[:])
}

func (s State) end(p Phase, err error) (State, Action) {
	s.Phase, s.Err = p, err
	return s, Action{}
}
