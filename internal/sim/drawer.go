package sim

import (
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/supply"
)

// A drawer is a program that draws numbers, as package sequence has it: calls take numbers of a
// supply, which each lane fills.
type drawer struct {
	*process
	accepts bool                         // a lossy store
	apart   [len(counters)]time.Duration // a lane's store is out of reach before

	supply  *supply.Supply
	lanes   []*lane
	opened  bool                 // a lane was
	shut    bool                 // closed: nothing is issued any more
	done    bool                 // and handed back
	waiting int                  // calls that wait
	served  time.Duration        // when a call got numbers last, or it was started
	newest  [len(counters)]int64 // highest number that Next or Append has returned, of each lane
}

func newDrawer(p *process) *drawer {
	refuse := 0.1
	if p.w.faults.settles {
		refuse = 0.5
	}
	return &drawer{process: p, accepts: p.w.kind.lossy() && !p.w.chance(refuse)}
}

func (d *drawer) boot() {
	w := d.w
	d.over()
	d.opened, d.shut, d.done, d.waiting, d.served = false, false, false, 0, w.now
	d.newest = [len(counters)]int64{}
	d.supply, d.lanes = new(supply.Supply), nil
	var worlds []supply.World
	for i := range w.lanes {
		l := &lane{drawer: d, place: i}
		d.lanes, worlds = append(d.lanes, l), append(worlds, l)
	}
	d.supply.Begin(d.wait(), w.patience, worlds...)
	for i, l := range d.lanes {
		l.of = d.supply.Lane(i)
	}
	for _, l := range d.lanes {
		l.start()
	}
}

// wait is for how long a call waits for a store.
func (d *drawer) wait() time.Duration { return 2 * d.w.patience }

// begin lets the program call, once a lane is open.
func (d *drawer) begin() {
	if !d.opened {
		d.opened = true
		d.run()
	}
}

// run is the program: it calls now and then, at times several calls at once.
func (d *drawer) run() {
	w := d.w
	d.after(w.around(w.think), func() {
		if w.kind == embedded && d.store.replaced() && w.chance(0.02) { // it knows from elsewhere
			d.lanes[0].of.Abandon(errReplaced)
		}
		for range pick(w.rng, 0, 1, 1, 1, 2, 4) {
			d.call()
		}
		d.run()
	})
}

// A call is one of the program's.
type call struct {
	supply.Call
	least  [len(counters)]int64 // numbers of each lane are above it
	barred [len(counters)]bool  // lanes that had failed, or were closed, when it began
	ranged bool                 // it is Reserve, whose numbers may be above those of later calls
	over   bool
}

// call calls Next, Append or Reserve.
func (d *drawer) call() {
	w := d.w
	if !d.opened || d.waiting > 8 {
		return
	}
	c := &call{Call: supply.Call{N: 1}, least: d.newest}
	for i, l := range d.lanes {
		c.barred[i] = d.shut || l.failed != nil
		if l.State.Have.Strict {
			c.least[i] = w.check.drawnMost
		}
	}
	c.Done = func() { d.after(w.upTo(time.Millisecond), func() { d.returned(c) }) }
	switch w.rng.IntN(8) {
	case 0:
		c.N, c.Whole, c.ranged = 1+w.rng.IntN(pick(w.rng, 4, 40)), true, true
		if !d.lanes[0].State.Have.Strict {
			c.least = [len(counters)]int64{}
		}
		d.take(c)
	case 1, 2:
		c.N = 1 + w.rng.IntN(10)
		t, ok := d.supply.DrawAll(c.N)
		d.drawn(c, t, ok)
	default:
		d.drawn(c, d.supply.Draw(), true)
	}
}

// drawn goes on with a call that has drawn a ticket, if that is ok. Now and then it is kept from
// running in between.
func (d *drawer) drawn(c *call, t supply.Ticket, ok bool) {
	then := func() {
		switch {
		case !ok || !t.Valid() && !d.supply.Late(t):
			d.take(c)
		case c.N == 1:
			d.got(c, firn.Range{First: t.ID(), Count: 1})
		default:
			d.got(c, t.Range(c.N))
		}
	}
	if d.w.chance(0.1) {
		d.after(d.w.around(d.w.think), then)
		return
	}
	then()
}

// take waits for numbers, if there are too few in hand, until it gives up.
func (d *drawer) take(c *call) {
	w := d.w
	if d.supply.Take(&c.Call) {
		d.returned(c)
		return
	}
	d.waiting++
	wait, cause := d.wait(), error(nil)
	if w.chance(0.3) {
		wait, cause = w.around(4*w.think), errStopped
	}
	d.after(wait, func() {
		if !c.over {
			d.supply.GiveUp(&c.Call, cause)
			d.returned(c)
		}
	})
}

// returned: a call is over.
func (d *drawer) returned(c *call) {
	if c.over {
		return
	}
	c.over, d.waiting = true, max(d.waiting-1, 0)
	got, err := c.Result()
	n := 0
	for _, g := range got {
		n += g.Count
	}
	if want := c.N; err != nil && n > 0 || err == nil && (n != want || c.Whole && len(got) > 1) {
		d.w.fail(misstep, "p%d: a call for %d numbers, in one range %v, returns %v, %v", d.id, want, c.Whole, got, err)
	}
	if no := (*block.Refusal)(nil); errors.As(err, &no) && no.Why == block.Ended {
		d.served = d.w.now // nobody is to blame
	}
	d.got(c, got...)
}

// got: a call has returned these numbers.
func (d *drawer) got(c *call, ranges ...firn.Range) {
	w := d.w
	for _, g := range ranges {
		d.served = w.now
		for id := range g.All() {
			n := int64(id)
			i := w.laneOf(n)
			if c.barred[i] {
				w.fail(misstep, "p%d: a call gets number %d of a lane that had failed or was closed before", d.id, n)
			}
			if n <= c.least[i] && n < foreignSeries {
				w.fail(order, "p%d: a call gets number %d, and began when %d had been returned", d.id, n, c.least[i])
			}
			if !c.ranged {
				d.newest[i] = max(d.newest[i], n)
			}
			w.check.drawn(d, i, n)
		}
	}
}

// drain draws all that is in hand.
func (d *drawer) drain() {
	for _, now := range d.supply.Status() {
		c := &call{Call: supply.Call{N: int(now.Left)}}
		if now.Left > 0 && d.supply.Take(&c.Call) {
			d.returned(c)
		}
	}
}

// quit closes the series, whatever is under way. That it takes no longer than a request is a
// promise.
func (d *drawer) quit() {
	d.shut = true
	for range pick(d.w.rng, 1, 2) {
		d.supply.Close()
	}
	for _, l := range d.lanes {
		l.cut()
	}
	left := 6
	var watch func()
	watch = func() {
		if left--; left == 0 && !d.done {
			d.w.fail(misstep, "p%d: the series does not close", d.id)
			return
		}
		d.after(d.w.patience/2, watch)
	}
	watch()
	d.ended()
}

// ended ends a drawer that closes, once each lane has ended.
func (d *drawer) ended() {
	for _, l := range d.lanes {
		if l.loop.lives() {
			return
		}
	}
	if d.shut && !d.done {
		d.done = true
		d.closed()
	}
}

// over: the process has ended. Its loops end where they wait.
func (d *drawer) over() {
	for _, l := range d.lanes {
		l.loop.end()
	}
}

// giveUp: the program ends, some time after it cannot go on, and is started again.
func (d *drawer) giveUp(after time.Duration) {
	d.after(after, func() {
		if d.wish {
			return
		}
		d.failsByItself()
	})
}

// draws: a process that wants numbers gets some, unless there are none.
func (c *checker) draws(d *drawer) {
	w := c.w
	late := 20*w.think + 4*w.patience + 30*time.Second
	if r := w.store.records[counters[0]]; r == nil || !d.alive || d.wish || w.now-d.served < late || w.kind.lossy() && !d.accepts {
		return
	}
	w.fail(starved, "p%d has got no numbers since %s: %v", d.id, d.served, d.lanes[0].State.Err)
}
