package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// keyCounter is the record that every drawer of a world draws from.
const keyCounter = "segment/world"

// A drawer takes blocks of numbers from a counter and issues from them. It runs the driver
// that package sequence runs.
type drawer struct {
	*process
	block.Driver
	turn    int          // number of the action under way
	doing   block.Action // that action
	hand    []*hand
	used    int64         // highest number issued
	issued  int64         // how many were
	shut    bool          // closed: nothing is issued any more
	done    bool          // and handed back
	granted time.Duration // when the last numbers were, or it was started
	accepts bool          // a store that can forget
	least   int64         // in a strict series, the numbers that are asked for are above it
	tried   store.Version // of the last Put

	// For mutants.
	promised store.Durability // before the last Put
	put      block.Record     // that is under way
}

// A hand is a grant that numbers are used of.
type hand struct {
	block.Grant
	taken int64
}

func newDrawer(p *process) *drawer {
	return &drawer{process: p, accepts: p.w.kind.lossy() && (p.w.mutant.name != "" || p.w.chance(0.9))}
}

// newCounter is the record that the schedule begins with.
func (w *world) newCounter(s *memory) block.Record {
	r := block.Record{
		ID: "world", First: 1 + w.rng.Int64N(3), Max: math.MaxInt64, Increment: 1 + w.rng.Int64N(2),
		Step: 1 + w.rng.Int64N(8), Store: s.identity,
	}
	if w.chance(0.25) {
		r.Stores, r.Offset = 3, w.rng.Int64N(3)
	}
	if w.chance(0.05) {
		r.Max = r.First + 60
	}
	r.Strict = w.chance(0.15)
	if w.kind.lossy() && w.chance(0.5) {
		r.Instance = s.promise(nil).Instance // else it was begun on a durable one
	}
	return r.New()
}

func (d *drawer) boot() {
	d.over()
	d.used, d.issued, d.shut, d.done, d.granted = 0, 0, false, false, d.w.now
	d.put = block.Record{}
	d.doing = block.Action{Request: record.Request{Op: record.Ask}}
	d.promised = d.store.promise(d.process)
	if m := d.w.mutant; m.heard != nil {
		d.promised = m.heard(d, block.Answer{Durability: d.promised}).Durability
	}
	rules := block.Rules{Name: "world", Key: keyCounter, Accept: d.accepts, By: d.name}
	if d.w.begins {
		r := d.w.newCounter(d.store)
		r.ID += d.name // each process would create another one
		rules.Found = &r
	}
	limits := block.Limits{MaxUnused: 30, CacheFor: 2 * d.w.think}
	d.doing = block.Action{}
	d.Driver = block.Start(rules, limits, "", d.w.bits(), d.promised, d.clocks())
	d.idle()
}

// over: the process has ended.
func (d *drawer) over() {
	d.turn++
	d.doing, d.hand = block.Action{}, nil
}

// clocks are right: no decision about numbers rests on them.
func (d *drawer) clocks() block.Now {
	return block.Now{Wall: d.host.wall(), Boot: d.host.boot()}
}

// idle does what a program does between two requests.
func (d *drawer) idle() {
	w := d.w
	d.after(w.around(w.think), func() {
		switch {
		case d.shut || d.doing.Op != record.None:
			return
		case w.kind == embedded && d.store.replaced():
			d.step(block.Forgot{Err: errReplaced})
			return
		}
		d.draw()
		switch e, some := d.wants(); {
		case some:
			d.step(e)
		default:
			d.idle()
		}
	})
}

// wants is what the program asks for next, if anything: as many numbers as package sequence
// would, or any number.
func (d *drawer) wants() (block.Event, bool) {
	w := d.w
	switch {
	case w.chance(0.1):
		return nil, false
	case d.LookEvery() > 0 && w.chance(0.1):
		return block.Look{}, true
	case d.State.Have.Strict:
		d.least = w.check.drawnMost
		return d.due(block.Take{Need: 1 + w.rng.Int64N(4)})
	case w.chance(0.1):
		return block.Take{Need: 30, Ahead: w.rng.Int64N(6), Least: 30}, true
	}
	take := block.Take{Ahead: w.rng.Int64N(6)}
	if w.chance(0.5) {
		take.Need = w.rng.Int64N(10)
	}
	if w.chance(0.5) {
		return take, true
	}
	return d.due(block.Take{Need: take.Need})
}

// due is what package sequence asks for where calls want so much.
func (d *drawer) due(want block.Take) (block.Event, bool) {
	left := int64(0)
	for _, h := range d.hand {
		left += h.Count - h.taken
	}
	var take block.Take
	var due bool
	d.Driver, take, due = d.Due(d.clocks(), want, left, d.issued)
	return take, due
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
		d.take(i)
	}
}

// take issues the next number of a grant in hand.
func (d *drawer) take(i int) {
	h := d.hand[i]
	n := h.First + h.taken*h.Stride
	if h.taken++; h.taken == h.Count {
		d.hand = slices.Delete(d.hand, i, i+1)
	}
	d.used, d.issued = max(d.used, n), d.issued+1
	d.w.check.drawn(d, n)
}

// quit closes the series for good and hands back, whatever is under way: what
// came of that is not known any more.
func (d *drawer) quit() {
	d.shut = true
	if op := d.doing.Op; op != record.None && op != record.Sleep {
		d.turn++
		a := block.Answer{Err: errStopped}
		if op == record.Put {
			a.Record.Version = d.tried
		}
		d.decide(a)
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
	if a, ok := e.(block.Answer); ok && w.mutant.heard != nil {
		e = w.mutant.heard(d, a)
	}
	do := d.decide(e)
	d.turn++
	switch {
	case d.State.Over:
		d.ended()
	case do.Op == record.None:
		if do.Grant.Count > 0 {
			d.receive(do.Grant)
		}
		if no := (*block.Refusal)(nil); errors.As(do.Err, &no) && no.Why == block.Ended {
			d.granted = w.now // nobody is to blame
		}
		d.idle()
	case do.Op == record.Sleep:
		turn := d.turn
		d.after(do.Pause, func() {
			if turn == d.turn {
				d.step(block.Answer{})
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
	w, asked := d.w, d.doing
	w.total.Steps++
	knew := d.State.Have.ID
	d.Driver, d.doing = d.Step(d.clocks(), e)
	no := (*block.Refusal)(nil)
	w.check.noticed(d, knew, errors.As(d.doing.Err, &no) && no.Why == block.Missing)
	if w.trace != nil {
		w.logf("p%d: counter: %s, next %s, grant %v, %v", d.id, toldOf(asked, e), counterOps[d.doing.Op], d.doing.Grant, d.doing.Err)
	}
	return d.doing
}

var counterOps = [...]string{"nothing", "get", "put", "ask", "sleep"}

func (d *drawer) receive(g block.Grant) {
	d.granted = d.w.now
	d.w.total.Blocks++
	if !d.w.mutant.unacked { // else it has them already
		d.hand = append(d.hand, &hand{Grant: g})
	}
	if d.State.Have.Strict && !d.shut { // somebody waits for them
		if g.First <= d.least {
			d.w.fail(order, "p%d: number %d of a strict series is granted after %d was drawn", d.id, g.First, d.least)
		}
		for len(d.hand) > 0 {
			d.take(0)
		}
	}
}

// ended: nothing more is granted, and nothing in hand may be issued.
func (d *drawer) ended() {
	w := d.w
	d.hand = nil
	var forgot *store.ForgotError
	if errors.As(d.State.Err, &forgot) && !w.kind.lossy() && !w.forgot && w.total.Faults[restored] == 0 {
		w.fail(misstep, "p%d: numbers forgotten, of a store that has forgotten nothing: %v", d.id, d.State.Err)
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
	if do.Op == record.Put {
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
	case record.Get:
		rq.kind = get
	case record.Put:
		rq.kind = put
	case record.Ask:
		rq.kind = promise
	}
	life, turn := d.life, d.turn
	deliver := func(r reply) {
		if life == d.life && turn == d.turn {
			d.soon(life, func() {
				if turn == d.turn {
					d.step(r.ofBlock())
				}
			})
		}
	}
	if w.chance(0.01) { // it is not even sent
		if rq.kind == put {
			d.tried = ""
		}
		w.after(w.upTo(time.Second), func() { deliver(reply{err: errReset}) })
		return
	}
	if v := w.send(d.process, rq, w.patience, deliver); rq.kind == put {
		d.tried = v
	}
}

// ofBlock is what the machine is told of a reply.
func (r reply) ofBlock() block.Answer {
	if r.err != nil && !errors.Is(r.err, store.ErrConflict) {
		r.rec = store.Record{Version: r.tried}
	}
	return block.Answer{Record: r.rec, Durability: r.promise, Err: r.err}
}

// repairCounter is what sequence.Restored does, with a margin that is above what
// was granted and forgotten.
func (w *world) repairCounter(s *memory) {
	now := s.records[keyCounter].intact()
	if now == nil || s != w.store || !ours(now.counter) {
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
	w.write(s, keyCounter, r.Encode(), s.records[keyCounter].version)
}

// counted: the store has carried out a write of the counter.
func (c *checker) counted(by *process, old, now *stored) {
	if ours(now.counter) {
		c.highest = max(c.highest, now.counter.Granted)
	}
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
	if w.kind.lossy() && !d.accepts {
		w.fail(misstep, "p%d: draws number %d from a store that can forget, which it does not accept", d.id, n)
	}
	by := fmt.Sprintf("p%d, run %d", d.id, d.life)
	if other, twice := c.numbers[n]; twice {
		w.fail(repeated, "number %d: drawn by %s and by %s", n, other, by)
		return
	}
	c.numbers[n] = by
	if ours(d.State.Have) {
		c.drawnMost = max(c.drawnMost, n)
	}
	if w.trace != nil {
		w.logf("p%d draws %d", d.id, n)
	}
	if n > c.highest && ours(d.State.Have) {
		w.fail(outside, "p%d: number %d: granted were those up to %d", d.id, n, c.highest)
	}
}

// draws: a process that wants numbers gets some, unless there are none.
func (c *checker) draws(d *drawer) {
	w := c.w
	late := 20*w.think + 2*w.patience + 30*time.Second
	if r := w.store.records[keyCounter]; r == nil || !d.alive || d.wish || w.now-d.granted < late || w.kind.lossy() && !d.accepts {
		return
	}
	w.fail(starved, "p%d has been granted no numbers since %s: %v", d.id, d.granted, d.State.Err)
}
