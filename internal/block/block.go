// Package block is how a process takes blocks of numbers from a counter in a
// store, as a pure state machine: no clock, no store, no goroutine. Package
// segment drives it; so does a simulator.
//
//	s := block.Start(seed, promise)
//	s, do := s.Step(rules, now, block.Take{Need: 100})
//	for do.Op != block.None {
//		s, do = s.Step(rules, now, perform(do)) // Get, Put, Ask or Sleep
//	}
//	use(do.Grant) // or say why not: do.Err
//
// What may be issued is the Grant of an Action, once, and nothing else.
//
// # Why nothing repeats
//
// The record says up to which number the counter was granted.
//
//  1. A block lies above that number and below the one it is replaced by, in one
//     compare-and-set. So no two writes that were carried out grant one number.
//  2. A block is used only when its write was acknowledged, or when the record
//     was read back and bears the Version of that write. Anything else that is
//     found, be the value the same, is another's write, and the block is thrown
//     away: what is lost that way is numbers.
//  3. A block is handed back only after nothing of it can be issued any more, by
//     compare-and-set on the Version of the own latest grant: so nobody was
//     granted anything since. It goes down to the last number issued, and never
//     below the lowest of the unbroken run of own blocks that ends there.
//  4. A record that is gone, has another id, or says less than was acknowledged
//     or read before, is a store that has forgotten. Everything stops at once,
//     numbers in hand as well, since they may be granted again.
//  5. A record names the store that it was made in. If the store that answers calls
//     itself by another name, it is a copy, which grants the same numbers as the
//     original: everything stops, as in 4. The two are compared when the record is
//     read, and when the store makes its promise again.
//
// It rests on the store: it never forgets a write that it acknowledged. No clock
// says how far a forgotten counter had gone, so on a store that can forget a
// counter runs only where that is accepted. It then goes on only under the
// instance that it was begun with, which is looked at after a write was
// acknowledged and before its block is used: looked at before, another instance,
// which lacks the last blocks, could still carry out the write.
package block

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn/store"
)

// Rules are what a process is told about a counter.
type Rules struct {
	Name   string // of the series, for errors
	Key    string
	Found  *Record // what is written where there is no record yet; nil: there has to be one
	Accept bool    // go on on a store that can forget, even where the record does not say so
	By     string  // name of this process, for people
}

// Now is what a process's clocks say. No decision about numbers rests on them.
type Now struct {
	Wall time.Time
	Boot time.Duration // since some fixed instant; never steps
}

// An Event is a wish of the caller's, or what came of the last action.
type Event interface{ event() }

// Events. Take and Stop come when nothing is under way, and Stop also instead of
// Woke. Woke answers Sleep, be it early, Found Get, Wrote and Conflict Put,
// Promised Ask; Unknown and Forgot answer any of the three that ask the store.
type (
	// Take asks for Need numbers and, where there are as many, Ahead more; for
	// none where there are not even Least. With Need 0 and Ahead 0 it only reads
	// the record.
	Take struct{ Need, Ahead, Least int64 }
	// Stop ends it: nothing that was granted can be issued any more, and the
	// highest number that was is Used; 0 if none.
	Stop struct{ Used int64 }

	Found    struct{ Record store.Record }
	Wrote    struct{ Record store.Record } // acknowledged
	Conflict struct{}                      // not written, and never will be
	Promised struct{ Durability store.Durability }
	Woke     struct{}
	Forgot   struct{ Err error } // the store has forgotten what it acknowledged; at any time
	// Unknown: it failed, and a Put may be carried out, now or later. Tried is the
	// Version of that Put, or zero if nothing was sent.
	Unknown struct {
		Tried store.Version
		Err   error
	}
)

func (Take) event()     {}
func (Stop) event()     {}
func (Found) event()    {}
func (Wrote) event()    {}
func (Conflict) event() {}
func (Promised) event() {}
func (Woke) event()     {}
func (Unknown) event()  {}
func (Forgot) event()   {}

// An Action is the one thing to do next.
type Action struct {
	Op    Op
	Key   string // of Get and Put
	Value []byte
	Cond  store.Condition
	For   time.Duration // of Sleep; it may be ended early

	// With None, what came of Take: numbers to use, fewer than were needed
	// where the counter's end is near, or why there are none.
	Grant Grant
	Err   error
}

// An Op is a kind of action.
type Op uint8

const (
	None Op = iota // nothing, until the next Take or Stop
	Get
	Put
	Ask // for the store's promise
	Sleep
)

// A Grant is Count numbers from First on, Stride apart.
type Grant struct{ First, Count, Stride int64 }

// Last is the highest number of the grant.
func (g Grant) Last() int64 { return g.First + (g.Count-1)*g.Stride }

// A State is what a process knows of a counter. It is a value: Step returns
// another and changes none.
type State struct {
	Have       Record           // as last read or acknowledged; zero before
	Durability store.Durability // as last heard
	Fails      int              // requests in a row that the store did not answer
	Err        error            // the last failure; with Over, why
	Over       bool             // nothing more is granted
	Returned   int64            // how many numbers were handed back
	Doubtful   int64            // numbers thrown away because it is unknown whether they were granted

	random   rand.ChaCha8
	phase    phase
	op       Op // under way
	take     Take
	stop     *Stop
	tries    int           // conflicts in a row
	alone    bool          // nobody else seems to write
	promised time.Duration // boot time at which Durability was heard
	version  store.Version // of Have
	top      int64         // highest number ever granted to this process
	from     int64         // the unbroken run of own blocks that ends at top begins above
	mine     store.Version // of the own latest grant

	// The write under way, or in doubt.
	want  Record
	base  int64 // it grants what lies above
	tried store.Version
	doubt bool
}

// A phase is what the machine is at.
type phase uint8

const (
	idle      phase = iota
	reading         // the record, to replace it
	founding        // writing the first record
	taking          // a write that grants is under way or in doubt
	checking        // it was acknowledged; hearing under which instance
	heeding         // hearing the promise before anything is asked of a store that can forget
	returning       // handing back
)

// Start returns the state before the first event. The seed spreads contenders;
// p is the store's promise as it was just heard.
func Start(seed [32]byte, p store.Durability, now Now) State {
	return State{random: *rand.NewChaCha8(seed), Durability: p, promised: now.Boot}
}

// Known returns the state of a process that has known a counter before: one that
// is not the same, or says less, has been forgotten.
func (s State) Known(r Record, v store.Version) State {
	s.Have, s.version = r, v
	return s
}

// Version is the Version of Have.
func (s State) Version() store.Version { return s.version }

// Crowded reports whether the record that Step has just asked for is to be
// replaced as soon as it was read, and others replace it as well. A driver may then
// do both at once, where the store can: see [store.Updater].
func (s State) Crowded() bool {
	return s.op == Get && s.phase == reading && !s.doubt && !s.alone && s.stop == nil && s.version != "" && s.take.Need > 0
}

// Step returns the state after an event, and what to do next.
func (s State) Step(r *Rules, now Now, e Event) (State, Action) {
	s, do := s.step(r, now, e)
	s.op = do.Op
	return s, do
}

func (s State) step(r *Rules, now Now, e Event) (State, Action) {
	if s.Over {
		return s, Action{Err: s.Err}
	}
	switch e := e.(type) {
	case Take:
		s.take = e
		return s.begin(r, now)
	case Stop:
		s.stop = &e
		return s.next(r, now)
	case Woke:
		return s.next(r, now)
	case Forgot:
		return s.end(e.Err)
	case Unknown:
		return s.unanswered(e)
	}
	s.Fails, s.Err = 0, nil
	switch e := e.(type) {
	case Found:
		return s.found(r, now, e.Record)
	case Wrote:
		return s.acknowledged(r, now, e.Record.Version)
	case Conflict:
		return s.conflicted(r, now)
	case Promised:
		return s.heard(r, now, e.Durability)
	}
	panic("block: unknown event")
}

// begin starts a Take. Where the record is most likely as this process knows it,
// it is replaced without being read first.
func (s State) begin(r *Rules, now Now) (State, Action) {
	s.phase = reading
	if !s.Durability.Durable && !r.Accept && !s.Have.Lossy && s.Have.ID != "" {
		s.phase = heeding
	}
	if s.phase == reading && s.alone && s.take.Need+s.take.Ahead > 0 && s.Have.Left() > 0 {
		return s.put(r, now)
	}
	return s.next(r, now)
}

// next is what to do when nothing is under way.
func (s State) next(r *Rules, now Now) (State, Action) {
	switch {
	case s.doubt:
		return s, Action{Op: Get, Key: r.Key}
	case s.stop != nil:
		return s.handBack(r)
	}
	switch s.phase {
	case idle:
		return s, Action{Err: s.Err}
	case checking, heeding:
		return s, Action{Op: Ask}
	default:
		return s, Action{Op: Get, Key: r.Key}
	}
}

// unanswered: the action under way failed. A Put may have been carried out, or
// may yet be.
func (s State) unanswered(e Unknown) (State, Action) {
	s.Fails++
	s.Err = e.Err
	if s.phase == returning {
		return s.end(e.Err) // it is left at that: were it tried again, numbers of others might be handed back
	}
	if s.op == Put && e.Tried != "" {
		s.doubt, s.tried = true, e.Tried
	}
	pause := min(50*time.Millisecond<<min(s.Fails-1, 6), 2*time.Second)
	wait := s.jitter(pause)
	return s, Action{Op: Sleep, For: wait}
}

// jitter returns a random duration between half of d and d. It changes the state: call it
// in a statement of its own, not in one that copies the state.
func (s *State) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(s.random.Uint64()%uint64(d/2+1))
}

// done ends a Take.
func (s State) done(g Grant, err error) (State, Action) {
	s.phase, s.take, s.tries = idle, Take{}, 0
	return s, Action{Grant: g, Err: err}
}

// end is final.
func (s State) end(err error) (State, Action) {
	s.Over, s.Err, s.phase = true, err, idle
	return s, Action{Err: err}
}

// rate is the rate of the record that want replaces, with n numbers more.
func (s *State) rate(now time.Time, n int64) float64 {
	rate := s.Have.RateAt(now) + float64(n)/spell.Seconds()
	if math.IsNaN(rate) || math.IsInf(rate, 0) {
		return 0
	}
	return rate
}
