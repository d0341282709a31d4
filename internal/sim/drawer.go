package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/store"
)

// keyCounter is the record that every drawer of a world draws from.
const keyCounter = "segment/world"

// A drawer takes blocks of numbers from a counter and issues from them. It drives
// the machine as package segment does.
type drawer struct {
	*process
	rules    *block.Rules
	s        block.State
	turn     int // number of the action under way
	busy     bool
	sleeping bool // and it is a sleep,
	writes   bool // or a Put
	hand     []*hand
	used     int64         // highest number issued
	shut     bool          // closed: nothing is issued any more
	done     bool          // and handed back
	granted  time.Duration // when the last numbers were, or it was started
	tried    store.Version // of the last Put
	doubt    bool          // and its outcome is not known

	// For mutants.
	promised store.Durability // before the last Put
	put      block.Record     // that is under way
}

// A hand is a grant that numbers are used of.
type hand struct {
	block.Grant
	taken int64
}

func newDrawer(p *process) *drawer { return &drawer{process: p} }

// newCounter is the record that the schedule begins with.
func (w *world) newCounter(s *memory) block.Record {
	r := block.Record{
		ID: "world", First: 1 + w.rng.Int64N(3), Max: math.MaxInt64, Increment: 1 + w.rng.Int64N(2),
		Step: 1 + w.rng.Int64N(8), Lossy: w.kind.lossy(), Store: s.identity,
	}
	if w.chance(0.25) {
		r.Stores, r.Offset = 3, w.rng.Int64N(3)
	}
	if w.chance(0.05) {
		r.Max = r.First + 60
	}
	if w.kind.lossy() && w.chance(0.5) {
		r.Instance = s.promise(nil).Instance // else it was begun on a durable one
	}
	return r.New()
}

func (d *drawer) boot() {
	d.rules = &block.Rules{Name: "world", Key: keyCounter, By: d.name}
	d.over()
	d.used, d.shut, d.done, d.granted = 0, false, false, d.w.now
	d.promised = d.store.promise(d.process)
	d.put = block.Record{}
	if m := d.w.mutant; m.heard != nil {
		if heard, ok := m.heard(d, block.Promised{Durability: d.promised}).(block.Promised); ok {
			d.promised = heard.Durability
		}
	}
	d.s = block.Start(d.w.bits(), d.promised, d.clocks())
	d.idle()
}

// over: the process has ended.
func (d *drawer) over() {
	d.turn++
	d.busy, d.sleeping, d.writes, d.hand = false, false, false, nil
}

// clocks are right: no decision about numbers rests on them.
func (d *drawer) clocks() block.Now {
	return block.Now{Wall: d.host.wall(), Boot: d.host.boot()}
}

// idle does what a program does between two requests.
func (d *drawer) idle() {
	d.busy = false
	w := d.w
	d.after(w.around(w.think), func() {
		switch {
		case d.shut || d.busy:
			return
		case w.kind == embedded && d.store.replaced():
			d.step(block.Forgot{Err: errReplaced})
			return
		}
		d.draw()
		if w.chance(0.1) {
			d.idle()
			return
		}
		take := block.Take{Ahead: w.rng.Int64N(6)}
		if w.chance(0.5) {
			take.Need = w.rng.Int64N(10)
		}
		if w.chance(0.1) {
			take.Need, take.Least = 30, 30
		}
		d.step(take)
	})
}

// draw issues some numbers in hand.
func (d *drawer) draw() {
	if d.shut && !d.w.mutant.openBack {
		return
	}
	for n := d.w.rng.IntN(8); n > 0 && len(d.hand) > 0; n-- {
		i := 0
		if d.w.chance(0.1) {
			i = d.w.rng.IntN(len(d.hand)) // as Reserve may
		}
		h := d.hand[i]
		n := h.First + h.taken*h.Stride
		if h.taken++; h.taken == h.Count {
			d.hand = slices.Delete(d.hand, i, i+1)
		}
		d.used = max(d.used, n)
		d.w.check.drawn(d, n)
	}
}

// quit closes the series for good and hands back, whatever is under way: what
// came of that is not known any more.
func (d *drawer) quit() {
	d.shut = true
	if d.busy && !d.sleeping {
		d.turn++
		e := block.Unknown{Err: errStopped}
		if d.writes {
			e.Tried = d.tried
		}
		d.decide(e)
	}
	life := d.life
	d.after(ask, func() {
		if life == d.life {
			d.finish()
		}
	})
	d.step(block.Stop{Used: d.used})
}

func (d *drawer) finish() {
	if !d.done {
		d.over()
		d.done = true
		d.closed()
	}
}

// step tells the machine what came of the last action, and does the next.
func (d *drawer) step(e block.Event) {
	w, life := d.w, d.life
	if w.mutant.heard != nil {
		e = w.mutant.heard(d, e)
	}
	do := d.decide(e)
	d.turn++
	d.busy, d.sleeping, d.writes = true, do.Op == block.Sleep, do.Op == block.Put
	switch {
	case d.s.Over:
		d.ended()
	case do.Op == block.None:
		if do.Grant.Count > 0 {
			d.receive(do.Grant)
		}
		var end *block.EndError
		if errors.As(do.Err, &end) {
			d.granted = w.now // nobody is to blame
		}
		d.idle()
	case do.Op == block.Sleep:
		turn := d.turn
		d.after(do.For, func() {
			if turn == d.turn {
				d.step(block.Woke{})
			}
		})
	default:
		d.send(do)
	}
	if w.mutant.openBack && d.shut && life == d.life && w.chance(0.5) {
		d.draw()
	}
}

func (d *drawer) decide(e block.Event) block.Action {
	w := d.w
	w.total.Steps++
	switch e := e.(type) {
	case block.Unknown:
		d.doubt = d.doubt || e.Tried != ""
	case block.Found, block.Wrote, block.Conflict:
		d.doubt = false
	}
	s, do := d.s.Step(d.rules, d.clocks(), e)
	d.s = s
	if w.trace != nil {
		w.logf("p%d: counter: %s, next %s, grant %v, %v", d.id, told(e), counterOps[do.Op], do.Grant, do.Err)
	}
	return do
}

var counterOps = [...]string{"nothing", "get", "put", "ask", "sleep"}

func (d *drawer) receive(g block.Grant) {
	d.granted = d.w.now
	d.w.total.Blocks++
	if !d.w.mutant.unacked { // else it has them already
		d.hand = append(d.hand, &hand{Grant: g})
	}
}

// ended: nothing more is granted, and nothing in hand may be issued.
func (d *drawer) ended() {
	w := d.w
	d.hand = nil
	var forgot *store.ForgotError
	if errors.As(d.s.Err, &forgot) && !w.kind.lossy() && !w.forgot && w.total.Faults[restored] == 0 {
		w.fail(misstep, "p%d: numbers forgotten, of a store that has forgotten nothing: %v", d.id, d.s.Err)
	}
	if d.wish {
		d.finish()
		return
	}
	if d.holder != nil {
		d.holder.gaveUp = nil // it is not for want of a worker that this run ends
	}
	d.process.fails()
}

// send asks the store. Of what comes back the first counts.
func (d *drawer) send(do block.Action) {
	w := d.w
	if do.Op == block.Put {
		if w.mutant.name != "" {
			d.put, _ = block.Read(store.Record{Version: "?", Value: do.Value})
		}
		d.promised = d.store.promise(d.process)
		if w.mutant.put != nil {
			do = w.mutant.put(d, do)
		}
	}
	rq := request{key: do.Key, value: do.Value, cond: do.Cond}
	switch do.Op {
	case block.Get:
		rq.kind = get
	case block.Put:
		rq.kind = put
	case block.Ask:
		rq.kind = promise
	}
	life, turn := d.life, d.turn
	deliver := func(r reply) {
		if life == d.life && turn == d.turn {
			d.soon(life, func() {
				if turn == d.turn {
					d.step(r.ofBlock(rq.kind))
				}
			})
		}
	}
	if w.chance(0.01) { // it is not even sent
		d.writes = false
		w.after(w.upTo(time.Second), func() { deliver(reply{err: errReset}) })
		return
	}
	if v := w.send(d.process, rq, w.patience, deliver); rq.kind == put {
		d.tried = v
	}
}

// ofBlock is what the machine is told of a reply.
func (r reply) ofBlock(k kind) block.Event {
	var forgot *store.ForgotError
	switch {
	case r.err == nil:
	case errors.Is(r.err, store.ErrConflict):
		return block.Conflict{}
	case errors.As(r.err, &forgot):
		return block.Forgot{Err: r.err}
	default:
		return block.Unknown{Tried: r.tried, Err: r.err}
	}
	switch k {
	case get:
		return block.Found{Record: r.rec}
	case put:
		return block.Wrote{Record: r.rec}
	}
	return block.Promised{Durability: r.promise}
}

// repairCounter is what sequence.Restored does, with a margin that is above what
// was granted and forgotten.
func (w *world) repairCounter(s *memory) {
	now := s.records[keyCounter]
	if now == nil || s != w.store {
		return
	}
	r, m := now.counter, w.mutant
	if !m.unreached { // what was handed back since is not part of the margin
		r = r.Raised(r.Reached)
	}
	r.Reached = 0
	to := min(r.Granted+w.check.lost+r.Stride(), r.Max)
	if m.unraised {
		to = r.Granted
	}
	r = r.Raised(to)
	r.Instance, r.Store = "", s.identity
	if w.kind.lossy() {
		r.Instance = s.promise(nil).Instance
	}
	w.logf("operator: the counter is raised")
	w.write(s, keyCounter, r.Encode(), now.version)
}

// counted: the store has carried out a write of the counter.
func (c *checker) counted(by *process, old, now *stored) {
	c.highest = max(c.highest, now.counter.Granted)
	if by == nil || old == nil {
		return
	}
	was, is := old.counter, now.counter
	if is.ID != was.ID || is.Writes != was.Writes+1 || is.Granted < was.Granted && is.Reached < was.Granted {
		c.w.fail(misstep, "p%d: makes %+v of %+v", by.id, is, was)
	}
}

// drawn: somebody has got a number.
func (c *checker) drawn(d *drawer, n int64) {
	w := c.w
	w.total.Numbers++
	by := fmt.Sprintf("p%d, run %d", d.id, d.life)
	if other, twice := c.numbers[n]; twice {
		w.fail(repeated, "number %d: drawn by %s and by %s", n, other, by)
		return
	}
	c.numbers[n] = by
	if w.trace != nil {
		w.logf("p%d draws %d", d.id, n)
	}
	if n > c.highest {
		w.fail(outside, "p%d: number %d: granted were those up to %d", d.id, n, c.highest)
	}
}

// draws: a process that wants numbers gets some, unless there are none.
func (c *checker) draws(d *drawer) {
	w := c.w
	late := 20*w.think + 2*w.patience + 30*time.Second
	if r := w.store.records[keyCounter]; r == nil || !d.alive || d.wish || w.now-d.granted < late {
		return
	}
	w.fail(starved, "p%d has been granted no numbers since %s: %v", d.id, d.granted, d.s.Err)
}
