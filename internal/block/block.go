// Package block is how a process takes blocks of numbers from a counter in a store, as
// pure values: no clock, no store, no goroutine. [State] is the machine, and [Driver] what
// a process knows beside it. Package sequence runs a Driver; so does a simulator.
//
//	d := block.Start(rules, limits, seed, durability, now)
//	d, do := d.Step(now, block.Take{Need: 100})
//	for do.Op != record.None {
//		d, do = d.Step(now, answer(do)) // of Get, Put, Ask or Sleep
//	}
//	use(do.Grant) // or say why not: do.Err
//
// What may be issued is the Grant of an Action, once, and nothing else.
//
// What an answer is for is said by the [Purpose] of the action. read.go has what follows
// from what was read and heard, write.go what is written. own.go is shared with package
// document, whose machine has a record for each date.
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
//     read, and when the store says again how durable it is.
//
// It rests on the store: it never loses a write that it acknowledged. No clock
// says how far a forgotten counter had gone, so on a lossy store a
// process takes numbers only where it accepts that. It then goes on only under the
// instance that it was begun with, which is looked at after a write was
// acknowledged and before its block is used: looked at before, another instance,
// which lacks the last blocks, could still carry out the write.
package block

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// Rules are what a process is told about a counter.
type Rules struct {
	Name   string // of the series, for errors
	Key    string
	Found  *Record // what is written where there is no record yet; nil: there has to be one
	Accept bool    // continue on a lossy store
	By     string  // name of this process, for people
}

// Now is what a process's clocks say. No decision about numbers rests on them.
type Now struct {
	Wall time.Time
	Boot time.Duration // since some fixed instant; never steps
}

// An Event is a wish of the caller's, or what came of the last action.
type Event interface{ event() }

// Events. Take, Look and Stop come when nothing is under way. Stop also comes instead of the
// Answer to a Sleep, or to a request that was not sent.
type (
	// Take asks for Need numbers and, where there are as many, Ahead more; for
	// none where there are not even Least. With Need 0 and Ahead 0 it only reads
	// the record, and compares it with the durability that was last heard.
	Take struct{ Need, Ahead, Least int64 }
	// Look asks the store how durable it is, to see whether the store is still the one that
	// granted. A store that does not answer says nothing.
	Look struct{}
	// Stop ends it: nothing that was granted can be issued any more, and the
	// highest number that was is Used; 0 if none.
	Stop struct{ Used int64 }
	// Answer is what came of the action under way. With an error other than
	// [store.ErrConflict] a Put may be carried out, now or later. That of a Sleep, which may
	// be ended early, is the zero Answer.
	Answer record.Answer
)

func (Take) event()   {}
func (Look) event()   {}
func (Stop) event()   {}
func (Answer) event() {}

// A Purpose is what an action is for, and so what its answer means.
type Purpose uint8

const (
	ToRest     Purpose = iota // nothing is under way
	ToRead                    // Get: the record is to be replaced
	ToSettle                  // Get: whether the write in doubt was carried out
	ToBegin                   // Put: the first record
	ToGrant                   // Put: grants a block
	ToProve                   // Ask: under which instance the block was granted that is to be used
	ToHeed                    // Ask: whether a lossy store may be asked for anything
	ToLook                    // Ask: whether the store is still the one that granted
	ToHandBack                // Put: hands back what was not used
)

// An Action is the one thing to do next.
type Action struct {
	record.Request
	For   Purpose       // of a Sleep, what comes after it
	Pause time.Duration // of a Sleep; it may be ended early

	// With None, what came of Take: numbers to use, fewer than were needed
	// where the counter's end is near, or why there are none.
	Grant Grant
	Err   error
}

// A Grant is Count numbers from First on, Stride apart.
type Grant struct{ First, Count, Stride int64 }

// Last is the highest number of the grant.
func (g Grant) Last() int64 { return g.First + (g.Count-1)*g.Stride }

// A State is what a process knows of a counter. It is a value: Step returns
// another and changes none.
type State struct {
	Have       Record           // as last read or acknowledged; zero before
	Durability store.Durability // as last heard
	Fails      int              // requests that failed since the store last did what it was asked
	Err        error            // the last failure; with Over, why
	Over       bool             // nothing more is granted
	Returned   int64            // how many numbers were handed back
	Doubtful   int64            // numbers thrown away because it is unknown whether they were granted

	random   rand.ChaCha8
	under    Action  // the action under way
	goal     Purpose // what the machine is at: what to do once the doubt, if any, is settled
	take     Take
	stop     *Stop
	tries    int           // conflicts in a row
	alone    bool          // nobody else seems to write
	promised time.Duration // boot time at which Durability was heard
	version  store.Version // of Have
	own      Own
	want     Record // what the write under way, or in doubt, makes of the record
	span     Span   // what it grants

	unwritten bool // a write of the Take under way failed, and none was acknowledged since
}

// NewState returns the state before the first event. The seed spreads contenders;
// p is the store's durability as it was just heard.
func NewState(seed [32]byte, p store.Durability, now Now) State {
	return State{random: *rand.NewChaCha8(seed), Durability: p, promised: now.Boot}
}

// Known returns the state of a process that has known a counter before: one that
// is not the same, or says less, has been forgotten.
func (s State) Known(r Record, v store.Version) State {
	s.Have, s.version = r, v
	return s
}

// Crowded reports whether the record that Step has just asked for is to be
// replaced as soon as it was read, and others replace it as well. A driver may then
// do both at once, where the store can: see [store.Updater].
func (s State) Crowded() bool {
	return s.under.For == ToRead && s.under.Op == record.Get && !s.alone && s.stop == nil && s.version != "" && s.take.Need > 0
}

// Step returns the state after an event, and what to do next.
func (s State) Step(r *Rules, now Now, e Event) (State, Action) {
	s, do := s.step(r, now, e)
	s.under = do
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
	case Look:
		return s, ask(ToLook)
	case Stop:
		s.stop = &e
		return s.next(r)
	case Answer:
		return s.answered(r, now, e)
	}
	panic("block: unknown event")
}

// answered: this came of the action under way, which says what it is for.
func (s State) answered(r *Rules, now Now, a Answer) (State, Action) {
	var forgot *store.ForgotError
	switch {
	case s.under.Op == record.Sleep:
		return s.next(r)
	case errors.As(a.Err, &forgot):
		return s.end(a.Err)
	case a.Err != nil && s.under.For == ToLook:
		return s, Action{}
	case a.Err != nil && !errors.Is(a.Err, store.ErrConflict):
		return s.unanswered(a)
	}
	s = s.heeded()
	if a.Err != nil {
		return s.conflicted(r)
	}
	switch s.under.For {
	case ToRead:
		return s.read(r, now, a.Record)
	case ToSettle:
		return s.settle(r, now, a.Record)
	case ToBegin, ToGrant:
		return s.acknowledged(r, now, a.Record.Version)
	case ToHandBack:
		return s.handedBack()
	case ToProve, ToHeed, ToLook:
		return s.heard(r, now, a.Durability)
	}
	panic("block: an answer, and nothing was asked")
}

// heeded takes note that the store answers. That a record can be read does not show that it
// can be written: after a write has failed, nothing counts before one is acknowledged.
func (s State) heeded() State {
	if !s.unwritten {
		s.Fails, s.Err = 0, nil
	}
	return s
}

// written takes note that the store carried out a write, or that none is wanted any more.
func (s State) written() State {
	s.unwritten = false
	return s.heeded()
}

// begin starts a Take. Where the record is most likely as this process knows it,
// it is replaced without being read first.
func (s State) begin(r *Rules, now Now) (State, Action) {
	s.goal = ToRead
	if !s.accepts(r) && s.Have.ID != "" {
		s.goal = ToHeed
	}
	if s.goal == ToRead && s.alone && !s.own.InDoubt() && s.take.Need+s.take.Ahead > 0 && s.Have.Left() > 0 {
		return s.put(r, now)
	}
	return s.next(r)
}

// next is what to do when nothing is under way.
func (s State) next(r *Rules) (State, Action) {
	switch {
	case s.own.InDoubt():
		return s, get(ToSettle, r)
	case s.stop != nil:
		return s.handBack(r)
	}
	switch s.goal {
	case ToProve, ToHeed:
		return s, ask(s.goal)
	default:
		return s, get(ToRead, r)
	}
}

func get(p Purpose, r *Rules) Action {
	return Action{Request: record.Request{Op: record.Get, Key: r.Key}, For: p}
}

func ask(p Purpose) Action {
	return Action{Request: record.Request{Op: record.Ask}, For: p}
}

// sleep waits between half of d and d.
func (s State) sleep(d time.Duration) (State, Action) {
	wait := d/2 + time.Duration(s.random.Uint64()%uint64(d/2+1))
	return s, Action{Request: record.Request{Op: record.Sleep}, For: s.goal, Pause: wait}
}

// done ends a Take.
func (s State) done(g Grant, err error) (State, Action) {
	s.goal, s.take, s.tries = ToRest, Take{}, 0
	return s.written(), Action{Grant: g, Err: err}
}

// end is final.
func (s State) end(err error) (State, Action) {
	s.Over, s.Err, s.goal = true, err, ToRest
	return s, Action{Err: err}
}
