// Package holder drives the lease of one worker, term after term. Package lease runs it
// with the system's clocks, a store, a grant file and goroutines; the simulation runs the
// same code in a world of its own.
//
// The machine of package term decides about one term. What outlasts a term, or lies beside
// it, is in a [Process]: a value, with methods that change nothing else. [Run] is the one
// loop: it does what the machine asks, and looks after the generator meanwhile. Whatever
// is outside of both, it asks of a [World].
//
// It is a package of its own, and not part of term, so that a machine that is proven for
// any driver stays free of this one.
package holder

import (
	"cmp"
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// A World is what a holder asks of the outside. Only Wait takes time, and Forgotten and
// Mark little; all are called from the goroutine that called [Run].
type World interface {
	// Clocks reads the system's wall clock and boot clock.
	Clocks() term.Now

	// Seed returns random bytes from outside of the process: a copy of it, as in a virtual machine
	// that was cloned, gets others.
	Seed() [32]byte

	// Send asks the store, and gives up after patience. The answer comes from Wait; that
	// to an earlier request does not come any more.
	Send(do term.Action, patience time.Duration)

	// Cancel breaks off the request under way. An answer may come nevertheless.
	Cancel()

	// Wait returns when something happened, or when the boot clock says until.
	Wait(until time.Duration) Signal

	// Forgotten returns why the store is known to have forgotten what it acknowledged, as
	// far as that is seen without a request of the machine's; nil: it has not.
	Forgotten() error

	// NewGenerator makes the generator of a term. Its clock says now. An error says that
	// this is outside of the layout's life.
	NewGenerator(grant firn.Grant, now time.Time) (Generator, error)

	// Mark leaves a handover in the grant file. After an error the file may be as it was, hold the
	// handover, or be of no use.
	Mark(Handover) error

	// Show is called whenever something has changed, for reports. It may read the process.
	Show(*Process)
}

// A Signal says what happened while a holder waited.
type Signal struct {
	Answer term.Event // to the request under way; nil: it was not answered yet
	Nudged bool       // a caller found the grant used up
	Stop   bool       // the holder is to end; said once
}

// A Generator issues the ids of one term. It is a [firn.Generator].
type Generator interface {
	Extend(horizon firn.Tick)
	SetClock(wall time.Time)
	Close() firn.Tick
}

const (
	// Ask is how long one request to the store may take, and the release at the end.
	Ask = 5 * time.Second

	// Lapse is how long a holder waits between two terms when no worker could be had, at most.
	Lapse = 10 * time.Second
)

// A driver is a loop under way.
type driver struct {
	*Process
	World
	gen    Generator // of this term; nil: nothing was granted yet
	nudged bool
}

// Run holds a worker until the world says stop, or until no other term may follow. It
// returns why the last worker was not given back, or nil.
func Run(p *Process, w World) (kept error) {
	d := &driver{Process: p, World: w}
	for failures := 0; ; failures++ {
		kept = d.term()
		if p.granted {
			failures = 0
		}
		if p.ended() {
			return kept
		}
		d.pause(p.lapse(failures))
		if p.stopped {
			return kept
		}
	}
}

// term runs one term to its end. A term makes one generator, and the generator
// dies with it.
//
// While this process's own clock is outside the layout's life, a term ends with that
// error. A worker that was taken by then is given back.
func (d *driver) term() (kept error) {
	d.gen = nil
	now := d.follow(d.Clocks()) // while no worker can be had, too: it may be for a clock that is ahead
	if !d.begin(now, d.Seed()) {
		d.Show(d.Process)
		return nil
	}
	var e term.Event = term.Begin{View: d.View}
	for {
		d.step(e)
		if d.Term.Over() {
			return d.kept(d.Clocks().Boot)
		}
		if !d.leaving || d.Term.Closed {
			e = d.perform(d.Doing)
			if e == nil { // no more time to say goodbye: the horizon stands
				d.Term.Err = errNoTime
				return d.kept(d.Clocks().Boot)
			}
			if d.leaving && !d.Term.Closed && d.Doing.Op != term.Sleep {
				d.Step(d.Clocks(), e) // what came of the action in flight comes first
			}
		}
		if d.leaving && !d.Term.Closed {
			last, err := d.close()
			if err != nil { // keep the worker: somebody may yet go on with the grant
				d.Term.Closed, d.Term.Err = true, err
				return cmp.Or(d.kept(d.Clocks().Boot), err)
			}
			e = term.Stop{Last: last}
		}
	}
}

// step tells the machine what came of its last action, and lets the generator issue what
// is granted now.
func (d *driver) step(e term.Event) {
	d.Step(d.Clocks(), e)
	d.allow()
	if d.gen != nil && d.Term.Over() {
		d.gen.Close()
	}
	d.Show(d.Process)
}

// allow lets the generator issue what the machine grants, and with a grant file no more
// than has been marked there. It makes the generator of a term's first grant.
func (d *driver) allow() {
	grant, ok := d.Term.Grant()
	if !ok {
		return
	}
	now := d.Now(d.Clocks().Boot)
	if d.Filed {
		if next, due := d.handover(now.Wall, grant); due {
			d.marked(next, d.Mark(next))
		}
		grant.Horizon = d.mark
	}
	if d.gen != nil {
		d.gen.Extend(grant.Horizon)
		return
	}
	gen, err := d.NewGenerator(grant, now.Wall)
	if err != nil {
		d.leave(now.Boot, err)
		return
	}
	d.gen = gen
	d.first(now.Wall)
}

// close closes the generator for good, and makes the grant file void, before a release is
// sent: a release that arrives late must find nobody who has gone on with the grant.
func (d *driver) close() (last firn.Tick, err error) {
	if d.gen != nil {
		last = d.gen.Close()
	}
	if d.Foreign { // what another program has issued is known by the clock only
		last = d.Rules.Layout.Tick(d.latest(d.Clocks()).Add(d.Rules.Skew))
	}
	if d.Filed {
		void := Handover{Void: true}
		err = d.Mark(void)
		d.marked(void, err)
	}
	return last, err
}

// perform does what the machine asks, and returns what came of it. A store that takes its
// time does not keep it from looking after the generator. It returns nil where the time
// for a goodbye is over.
func (d *driver) perform(do term.Action) term.Event {
	if do.Op == term.Sleep {
		return d.sleep(do.Until)
	}
	now := d.Clocks().Boot
	end := now + d.patience(now)
	if end <= now {
		return nil
	}
	d.Send(do, end-now)
	for {
		// A store returns soon after its time is over. One that does not is not waited for.
		s := d.wait(min(now+d.Look, end+d.Look))
		if s.Answer != nil {
			return s.Answer
		}
		if now = d.Clocks().Boot; d.leaving {
			end = min(end, d.deadline)
		}
		switch {
		case now < end+d.Look:
			d.tend()
		case d.Term.Closed:
			return nil
		default:
			return term.Unknown{Err: errNoTime}
		}
	}
}

// sleep waits until a boot time, or a nudge. On the way it tends the generator, and looks
// whether the store is still the one that was opened.
func (d *driver) sleep(until time.Duration) term.Event {
	if d.Term.Closed {
		until = min(until, d.deadline)
	}
	for {
		now := d.Clocks().Boot
		switch {
		case d.Term.Closed && now >= d.deadline:
			return nil
		case now >= until:
			return term.Woke{}
		}
		if !d.nudged {
			d.wait(min(until, now+d.Look))
		}
		if d.leaving && !d.Term.Closed {
			return term.Woke{}
		}
		d.tend()
		if err := d.Forgotten(); err != nil {
			return term.Forgot{Err: err}
		}
		if d.nudged {
			d.nudged = false
			return term.Woke{}
		}
	}
}

// pause lets time pass between two terms.
func (d *driver) pause(lapse time.Duration) {
	now := d.Clocks().Boot
	for until := now + lapse; now < until && !d.stopped; now = d.Clocks().Boot {
		d.wait(until)
	}
}

// wait waits, and remembers what is not an answer.
func (d *driver) wait(until time.Duration) Signal {
	s := d.Wait(until)
	d.nudged = d.nudged || s.Nudged
	if s.Stop {
		d.stopped = true
		d.leave(d.Clocks().Boot, nil)
		d.Cancel()
	}
	return s
}

// tend sets the generator's clock and raises its mark.
func (d *driver) tend() {
	now := d.follow(d.Clocks())
	if d.gen != nil {
		d.gen.SetClock(now.Wall)
		d.allow()
		d.Show(d.Process)
	}
}

// Failed is what the machine is told of a request that failed.
func Failed(err error) term.Event {
	var forgot *store.ForgotError
	switch {
	case errors.Is(err, store.ErrConflict):
		return term.Conflict{}
	case errors.As(err, &forgot):
		return term.Forgot{Err: err}
	}
	return term.Unknown{Err: err}
}
