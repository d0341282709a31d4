package term_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
)

// A checker watches a world and knows what must hold in it.
type checker struct {
	w          *world
	generators int
	all        []*generator
	by         map[spot]*generator
	ticks      map[int64][]firn.Tick // of a worker, in the order in which they were taken
	grants     map[string]*grant     // by owner
	full       []string              // when none was free
	ids        int
	repeats    int
}

// A spot is what must not be issued by two generators.
type spot struct {
	worker int64
	tick   firn.Tick
}

// A grant is what the store has written down for an owner.
type grant struct {
	worker    int64
	base, top firn.Tick
	taken     firn.Tick // highest that a generator took
}

func (c *checker) start(w *world) {
	*c = checker{
		w: w, by: map[spot]*generator{}, ticks: map[int64][]firn.Tick{}, grants: map[string]*grant{},
	}
}

func (c *checker) generated(g *generator) { c.all = append(c.all, g) }

// taken: a generator has made an id.
func (c *checker) taken(g *generator, t firn.Tick) {
	if of := c.ticks[g.worker]; len(of) == 0 || of[len(of)-1] != t {
		c.ticks[g.worker] = append(of, t)
	}
}

// issued: somebody has got an id.
func (c *checker) issued(g *generator, t firn.Tick) {
	w := c.w
	c.ids++
	g.handed = max(g.handed, t)
	at := spot{g.worker, t}
	switch other := c.by[at]; {
	case other == nil:
		c.by[at] = g
	case other != g:
		c.repeats++
		w.stop("worker %d, tick %d (%s): issued by generator %d of p%d (%d, %d] and by generator %d of p%d (%d, %d]",
			g.worker, t, w.begin(t).Format(time.RFC3339Nano), other.id, other.p.id, other.base, other.top, g.id, g.p.id, g.base, g.top)
		return
	}
	w.logf("p%d issues tick %d of worker %d, (%d, %d], generator %d", g.p.id, t, g.worker, g.base, g.top, g.id)
	if t <= g.base || t > g.top {
		w.fail("p%d: tick %d is not in its grant (%d, %d]", g.p.id, t, g.base, g.top)
	}
	of := c.grants[g.owner]
	switch {
	case of == nil:
		w.fail("p%d: owner %.4s was never written down", g.p.id, g.owner)
	case of.worker != g.worker || t <= of.base || t > of.top:
		w.fail("p%d: worker %d, tick %d: granted was worker %d (%d, %d]", g.p.id, g.worker, t, of.worker, of.base, of.top)
	default:
		of.taken = max(of.taken, t)
	}
}

// put: the store has carried out a write.
func (c *checker) put(by *process, key string, old, now *stored) {
	w := c.w
	n, ok := term.WorkerOf(w.rules.Pool, key)
	if !ok {
		return
	}
	var was term.Record
	if old != nil {
		was = old.worker
	}
	is := now.worker
	switch of := c.grants[is.Owner]; {
	case by == nil:
		if is.Term != was.Term+1 || is.Owner != "" || is.Horizon < was.Horizon {
			w.fail("an operator makes %+v of %+v", is, was)
		}
		return
	case is.Owner == "": // a release
		of = c.grants[was.Owner]
		if of == nil || is.Term != was.Term {
			w.fail("p%d: %+v is released as %+v", by.id, was, is)
		} else if is.Horizon < of.base || is.Horizon < of.taken {
			w.fail("p%d: worker %d is released at %d: granted (%d, %d], issued %d", by.id, n, is.Horizon, of.base, of.top, of.taken)
		}
		return
	case is.Owner == was.Owner:
		if is.Term != was.Term || is.Horizon < was.Horizon {
			w.fail("p%d: extends %+v to %+v", by.id, was, is)
		}
		of.top = max(of.top, is.Horizon)
	default:
		if is.Term != was.Term+1 || is.Horizon < was.Horizon {
			w.fail("p%d: takes %+v as %+v", by.id, was, is)
		}
		if of != nil && !w.mutant.oneToken {
			w.fail("p%d: an owner twice: %+v", by.id, is)
		}
		c.grants[is.Owner] = &grant{worker: n, base: was.Horizon, top: is.Horizon}
	}
	c.ahead(by, n, was, is)
}

// ahead: no horizon is further ahead of the store than a restore counts on.
func (c *checker) ahead(by *process, n int64, was, is term.Record) {
	w := c.w
	if w.kind != clocked || is.Horizon == was.Horizon {
		return
	}
	most := w.tick(w.store.clock().Add(w.rules.Outage + w.rules.Skew + 10*time.Millisecond)) // boot clocks are not exact
	if p, err := term.ReadPool(w.store.get(term.KeyPool(w.rules.Pool))); err == nil {
		most = max(most, p.Floor)
	}
	if is.Horizon > most {
		w.fail("p%d: worker %d: horizon %s is ahead of the store's %s by more than %s", by.id, n,
			w.begin(is.Horizon), w.store.clock(), w.rules.Outage+w.rules.Skew)
	}
}

// stepped: the machine has said what to do next.
func (c *checker) stepped(p *process, was term.Phase, do term.Action) {
	if over := p.s.Over(); over != (do.Op == term.None) {
		c.w.fail("p%d: phase %s and %s to do", p.id, p.s.Phase, ops[do.Op])
	}
	if _, ok := p.s.Grant(); ok {
		p.lacks = -1
	} else if p.lacks < 0 {
		p.lacks = c.w.now
	}
}

// over: a term has ended.
func (c *checker) over(p *process) {
	w := c.w
	if p.lacks < 0 {
		p.lacks = w.now
	}
	var full *term.FullError
	if errors.As(p.s.Err, &full) {
		c.full = append(c.full, fmt.Sprintf("%s: p%d: %v", w.now, p.id, full))
	}
	if p.s.Phase == term.Forgotten && w.restores == 0 && !w.store.forgot {
		w.fail("p%d: forgotten, of a store that has forgotten nothing: %v", p.id, p.s.Err)
	}
}

// end checks what can be seen when all is over.
func (c *checker) end() {
	c.intervals()
	if !c.w.calm {
		return
	}
	for _, p := range c.w.procs {
		c.lives(p)
	}
}

// intervals: those of a worker's terms are disjoint.
func (c *checker) intervals() {
	w := c.w
	slices.SortFunc(c.all, func(a, b *generator) int {
		return cmp.Or(cmp.Compare(a.worker, b.worker), cmp.Compare(a.base, b.base), cmp.Compare(a.until(), b.until()))
	})
	var before *generator // whose interval reaches highest so far
	for _, g := range c.all {
		if before == nil || before.worker != g.worker {
			before = g
			continue
		}
		if before.until() > g.base && g.until() > g.base {
			w.fail("worker %d: (%d, %d] of generator %d (p%d) and (%d, %d] of generator %d (p%d)", g.worker,
				before.base, before.until(), before.id, before.p.id, g.base, g.until(), g.id, g.p.id)
		}
		if g.until() > before.until() {
			before = g
		}
	}
}

// until is the highest tick that a generator may have issued.
func (g *generator) until() firn.Tick {
	if g.ended {
		return g.last
	}
	return max(g.top, g.base)
}

// lives: a process has a worker and can issue, or there is none to be had.
func (c *checker) lives(p *process) {
	w := c.w
	if !p.alive || p.wish || p.rules.Choice == term.Fresh {
		return
	}
	now := p.now()
	if p.lacks < 0 {
		late := 4*time.Second + 6*w.fast // the last extension is under way
		if w.tick(now.Wall.Add(-late)) > p.s.Have.Horizon {
			w.fail("p%d: its clock says %s and is not granted that: %d", p.id, now.Wall, p.s.Have.Horizon)
		}
		return
	}
	if w.now-p.lacks < w.grace {
		return // it was started, or has lost one, not long ago
	}
	first, count := w.rules.First, w.rules.Workers
	if p.rules.Choice == term.Insist {
		first, count = p.rules.Worker, 1
	}
	for n := first; n < first+count; n++ {
		if since := c.usable(p, n); since <= w.now-w.grace {
			w.fail("p%d has had no worker since %s, and worker %d was free since %s: %v", p.id, p.lacks, n, since, p.s.Err)
			return
		}
	}
}

// usable is since when a process could have had a worker.
func (c *checker) usable(p *process, n int64) (since time.Duration) {
	w := c.w
	base := firn.Tick(0)
	if pool, err := term.ReadPool(w.store.get(term.KeyPool(w.rules.Pool))); err == nil {
		base = pool.Floor
	}
	if rec, ok := w.store.worker(n); ok {
		base = max(base, rec.worker.Horizon)
		if rec.worker.Owner != "" || rec.worker.TTL != 0 {
			since = rec.at + time.Duration(rec.worker.TTL)*time.Millisecond
		}
	}
	if base >= w.rules.Layout.Last() {
		return 1 << 62
	}
	ahead := w.begin(base + 1).Sub(p.now().Wall)
	return max(since, w.now+ahead)
}

// A rate counts requests.
type rate struct {
	since  time.Duration
	tokens float64
}

// count checks that nobody is busy without need: so many requests a second in
// the long run, and a hundred at once.
func (r *rate) count(w *world, p *process) {
	const burst = 200
	r.tokens = max(r.tokens-(w.now-r.since).Seconds()*w.maxSpeed, 0) + 1
	r.since = w.now
	if r.tokens > burst {
		w.fail("p%d sends more than %g requests a second, in phase %s", p.id, w.maxSpeed, p.s.Phase)
	}
}
