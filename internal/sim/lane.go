package sim

import (
	"errors"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/internal/supply"
	"github.com/firn-id/firn/store"
)

// A lane is the world of a lane of package supply.
type lane struct {
	*drawer
	block.Driver // as of the last step
	place        int
	of           *supply.Lane

	loop    coroutine
	doing   block.Action  // what the machine has asked for
	grace   time.Duration // for how long that goes on once the series is closed
	answer  block.Answer  // what came of it
	tried   store.Version // of the last Put
	resting bool
	nudged  bool  // woken, and not told yet
	passed  bool  // the Rest under way has lasted for long enough
	naps    int   // waits in a row that ended at once
	failed  error // nothing is issued any more
	top     int64 // highest number that was granted to it
}

// start runs the loop, once the lane is open.
func (l *lane) start() {
	l.loop.begin(l.w.threads, func() {
		if l.open() {
			kept := l.of.Run()
			l.w.logf("p%d: counter: closed: %v", l.id, kept)
		}
	})
	l.resume()
}

// resume goes on with the loop, until it waits again or ends.
func (l *lane) resume() {
	if !l.loop.resume() {
		l.ended()
	}
}

// stand waits until the world goes on.
func (l *lane) stand() {
	l.naps = 0
	l.loop.stand()
}

// later goes on with the wait under way after d, unless it has ended by then.
func (l *lane) later(d time.Duration, do func()) {
	turn := l.loop.turn
	l.after(d, func() {
		if turn == l.loop.turn && l.loop.lives() {
			do()
			l.resume()
		}
	})
}

// open reads the record as sequence.Open does, and insists. It reports whether it is one to draw
// from.
func (l *lane) open() bool {
	w := l.w
	if w.lanes > 1 {
		l.of.Away()
	}
	ask := block.Action{Request: record.Request{Op: record.Ask}}
	heard := l.first(ask)
	for heard.Err != nil && !errors.As(heard.Err, new(*store.ForgotError)) && !l.shut {
		l.first(block.Action{Request: record.Request{Op: record.Sleep}, Pause: 250 * time.Millisecond})
		heard = l.first(ask)
	}
	err := heard.Err
	if err == nil && !l.shut {
		err = l.join(heard.Durability)
	}
	if l.shut || err != nil {
		l.giveUp(0)
		return false
	}
	l.of.Open(l.Driver, w.updates)
	l.begin()
	return true
}

// first does one thing on the way to an open lane.
func (l *lane) first(do block.Action) block.Answer {
	l.doing = do
	return l.Do(do, l.w.patience, 0)
}

// join reads the record, and returns why it is not one to draw from.
func (l *lane) join(seen store.Durability) error {
	w := l.w
	l.Driver = block.Start(l.rules(), block.Limits{MaxUnused: 30, CacheFor: 2 * w.think}, "", w.bits(), seen, l.Clocks())
	var e block.Event = block.Take{}
	for !l.shut {
		var do block.Action
		if l.Driver, do = l.Driver.Step(l.Clocks(), e); do.Op == record.None {
			l.doing = do
			break
		}
		e = l.first(do)
	}
	no := new(block.Refusal)
	switch lossy := errors.As(l.doing.Err, &no) && no.Why == block.Lossy; {
	case l.State.Over:
		return l.State.Err
	// Now and then the process goes on as one does whose store has become such a one later.
	case (lossy || !seen.Durable && !l.accepts) && w.chance(0.5):
		return nil
	case !seen.Durable && !l.accepts:
		return errUnaccepted
	}
	return l.doing.Err
}

var errUnaccepted = errors.New("the store can forget")

func (l *lane) rules() block.Rules {
	rules := block.Rules{Name: "world", Key: counters[l.place], Accept: l.accepts, By: l.name}
	if l.w.begins {
		r := l.w.newCounter(l.store)
		r.ID += l.name // each process would create another one
		rules.Found = &r
	}
	return rules
}

// Clocks are right: no decision about numbers rests on them.
func (l *lane) Clocks() block.Now {
	return block.Now{Wall: l.host.wall(), Boot: l.host.boot()}
}

// Do does what the machine asks. Of what comes back from the store the first counts.
func (l *lane) Do(do block.Action, patience, grace time.Duration) block.Answer {
	l.grace, l.answer = grace, block.Answer{}
	l.loop.turn++
	if do.Op == record.Sleep {
		l.later(min(do.Pause, patience), func() {})
	} else {
		l.ask(request{kind: kindsOfCounter[do.Op], key: do.Key, value: do.Value, cond: do.Cond}, patience)
	}
	l.stand()
	return l.answer
}

// Update lets the store call f with the record, if this process is at work and still waits then.
func (l *lane) Update(key string, patience, grace time.Duration, f func(store.Record) ([]byte, error)) (rec store.Record, err error) {
	l.grace, l.answer = grace, block.Answer{}
	l.loop.turn++
	turn, life, called := l.loop.turn, l.life, false
	var refused error // by f: nothing is written then
	l.ask(request{kind: update, key: key, change: func(r store.Record) (value []byte, err error) {
		if called || turn != l.loop.turn || life != l.life || l.paused {
			return nil, errReset
		}
		called = true
		value, refused = f(r)
		return value, refused
	}}, patience)
	l.stand()
	switch {
	case refused != nil:
		return store.Record{}, refused
	case !called:
		return store.Record{}, l.answer.Err
	}
	return l.answer.Record, l.answer.Err
}

// Rest waits until it is woken, or d has passed.
func (l *lane) Rest(d time.Duration) (passed bool) {
	if l.nudged || l.shut {
		if l.naps++; l.naps > 100 {
			l.w.fail(misstep, "p%d: its counter's loop spins", l.id)
			panic("the loop spins")
		}
		l.nudged = false
		return false
	}
	l.loop.turn++
	l.resting, l.passed = true, false
	if d > 0 {
		l.later(d, func() { l.passed = true })
	}
	l.stand()
	l.resting = false
	return l.passed
}

// Wake ends the Rest.
func (l *lane) Wake() {
	l.nudged = true
	if l.resting {
		l.later(l.w.upTo(time.Millisecond), func() { l.nudged = false })
	}
}

// cut breaks off what is under way: the series is closed.
func (l *lane) cut() {
	if !l.loop.lives() || l.resting {
		return
	}
	l.later(l.grace, func() {
		switch l.doing.Op {
		case record.Sleep:
		case record.Put:
			l.answer = block.Answer{Record: store.Record{Version: l.tried}, Err: errStopped}
		default:
			l.answer = block.Answer{Err: errStopped}
		}
	})
}

// Stepped checks what the machine decided.
func (l *lane) Stepped(e block.Event, do block.Action, _ time.Time, now supply.Status) {
	w := l.w
	w.total.Steps++
	asked, knew := l.doing, l.State.Have.ID
	l.Driver, l.doing = now.Driver, do
	if e == nil {
		return
	}
	if w.trace != nil {
		w.logf("p%d: counter: %s, next %s, grant %v, %v", l.id, toldOf(asked, e), counterOps[do.Op], do.Grant, do.Err)
	}
	if do.Grant.Count > 0 {
		w.total.Blocks++
		l.top = max(l.top, do.Grant.Last())
	}
	no := (*block.Refusal)(nil)
	w.check.noticed(l, knew, errors.As(do.Err, &no) && no.Why == block.Missing)
	if forgot := (*store.ForgotError)(nil); l.State.Over && errors.As(l.State.Err, &forgot) && !w.kind.lossy() && !w.forgot && w.total.Faults[restored] == 0 {
		w.fail(misstep, "p%d: numbers forgotten, of a store that has forgotten nothing: %v", l.id, l.State.Err)
	}
}

var counterOps = [...]string{"nothing", "get", "put", "ask", "sleep"}

// Failed: nothing in hand may be issued any more. The program finds out some time after.
func (l *lane) Failed(err error) {
	l.w.logf("p%d: counter: failed: %v", l.id, err)
	l.failed = err
	l.giveUp(pick(l.w.rng, 0, l.w.around(2*l.w.think)))
}

var kindsOfCounter = map[record.Op]kind{record.Get: get, record.Put: put, record.Ask: promise}

// ask asks the store, and goes on with the loop when there is an answer.
func (l *lane) ask(rq request, patience time.Duration) {
	w, life, turn := l.w, l.life, l.loop.turn
	deliver := func(r reply) {
		if life == l.life && turn == l.loop.turn {
			l.later(0, func() { l.answer = r.ofBlock() })
		}
	}
	tried := store.Version("")
	switch {
	case w.chance(0.01): // it is not even sent
		w.after(w.upTo(time.Second), func() { deliver(reply{err: errReset}) })
	case l.apart[l.place] > w.now: // this store alone is out of reach
		tried = w.newVersion()
		w.after(patience, func() { deliver(reply{tried: tried, err: errTimeout}) })
	default:
		tried = w.send(l.process, rq, patience, deliver)
	}
	if rq.kind.writes() {
		l.tried = tried
	}
}

// ofBlock is what the machine is told of a reply.
func (r reply) ofBlock() block.Answer {
	if r.err != nil && !errors.Is(r.err, store.ErrConflict) {
		r.rec = store.Record{Version: r.tried}
	}
	return block.Answer{Record: r.rec, Durability: r.promise, Err: r.err}
}
