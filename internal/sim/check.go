package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
)

// A checker watches a world and knows what must hold in it.
type checker struct {
	w      *world
	all    []*generator
	by     map[spot]*generator
	ticks  map[int64][]firn.Tick // of a worker, in the order in which they were taken
	grants map[holding]*grant
	owners map[string]bool // tokens
	full   []string        // when none was free

	numbers   map[int64]string     // by whom each was drawn
	highest   [len(counters)]int64 // number of each lane that was ever granted
	drawnMost int64                // the highest of those that were drawn
	lost      [len(counters)]int64 // how many of those the store has forgotten
	papers    papers               // of documents
}

// A spot is what must not be issued by two generators.
type spot struct {
	worker int64
	tick   firn.Tick
}

// A holding is a worker and the token of its owner.
type holding struct {
	worker int64
	owner  string
}

// A grant is what the store has written down for an owner.
type grant struct {
	base, top firn.Tick
	taken     firn.Tick // highest that a generator took
	to        *holder
}

func (c *checker) start(w *world) {
	*c = checker{w: w}
	if w.leases {
		c.by, c.ticks, c.grants = map[spot]*generator{}, map[int64][]firn.Tick{}, map[holding]*grant{}
		c.owners = map[string]bool{}
	}
	if w.series {
		c.numbers = map[int64]string{}
	}
	if w.documents {
		c.papers = newPapers(w)
	}
}

// taken: a generator has made an id.
func (c *checker) taken(g *generator, t firn.Tick) {
	if of := c.ticks[g.worker]; len(of) == 0 || of[len(of)-1] != t {
		c.ticks[g.worker] = append(of, t)
	}
	c.stamped(g, t)
}

// stamped: the time in an id is not further ahead than it may be. A process's
// clock may be wrong when it starts; it then follows no step of the system's but
// slowly, or where the store's clock bears it out.
func (c *checker) stamped(g *generator, t firn.Tick) {
	if g.manner == anywhere || g.manner == foreign {
		return // it does not look at the process's clock
	}
	h, w := g.h, c.w
	lasted := h.host.boot() - h.startBoot
	most := h.startWall.Add(lasted + lasted/20)
	if w.kind.clock() {
		if led := w.instant().Add(w.rules.Skew).Add(w.rules.Skew + lasted/20); led.After(most) {
			most = led
		}
	}
	most = most.Add(h.rules.Borrow + 2*time.Second) // the clock is looked at now and then
	if at := w.begin(t); at.After(most) {
		w.fail(stamp, "p%d: an id of %s at %s, which started at %s and %s ago", h.id, at, w.instant(), h.startWall, lasted)
	}
}

// issued: somebody has got an id.
func (c *checker) issued(g *generator, t firn.Tick) {
	w := c.w
	w.total.IDs++
	g.handed = max(g.handed, t)
	if other := c.claim(g, t); other != g && !w.twins(g, other, t) {
		w.fail(repeated, "worker %d, tick %d (%s): issued by generator %d of p%d (%d, %d] and by generator %d of p%d (%d, %d]",
			g.worker, t, w.begin(t).Format(time.RFC3339Nano), other.id, other.h.id, other.base, other.top, g.id, g.h.id, g.base, g.top)
		return
	}
	if w.trace != nil {
		w.logf("p%d issues tick %d of worker %d, (%d, %d], generator %d", g.h.id, t, g.worker, g.base, g.top, g.id)
	}
	if t <= g.base || t > g.top {
		w.fail(outside, "p%d: tick %d is not in its grant (%d, %d]", g.h.id, t, g.base, g.top)
	}
	of := c.grants[holding{g.worker, g.owner}]
	switch {
	case of == nil:
		w.fail(outside, "p%d: owner %.4s was never written down", g.h.id, g.owner)
	case t <= of.base || t > of.top:
		w.fail(outside, "p%d: worker %d, tick %d: granted was (%d, %d]", g.h.id, g.worker, t, of.base, of.top)
	default:
		of.taken = max(of.taken, t)
	}
}

// claim returns the generator whose tick it is, from now on. A worker of the other
// layout has the ids of many workers.
func (c *checker) claim(g *generator, t firn.Tick) *generator {
	first, count := g.worker, int64(1)
	if g.h.rules.Layout == layoutOfOthers {
		first, count = g.worker*32, 8 // there are no more in such schedules
	}
	for n := first; n < first+count; n++ {
		at := spot{n, t}
		switch other := c.by[at]; {
		case other == nil:
			c.by[at] = g
		case other != g:
			return other
		}
	}
	return g
}

// put: the store has carried out a write.
func (c *checker) put(by *process, key string, old, now *stored) {
	w := c.w
	if lane := counterOf(key); lane >= 0 {
		c.counted(by, lane, old, now)
		return
	}
	if w.documents {
		c.papers.put(by, key, old, now)
	}
	p, n, ok := w.poolOf(key)
	if !ok {
		return
	}
	var was term.Record
	if old != nil {
		was = old.worker
	}
	is := now.worker
	switch of := c.grants[holding{n, is.Owner}]; {
	case by == nil:
		if is.Term != was.Term+1 || is.Owner != "" || is.Horizon < was.Horizon {
			w.fail(misstep, "an operator makes %+v of %+v", is, was)
		}
		if of := c.grants[holding{n, was.Owner}]; of != nil {
			of.to.rate.tokens -= retaking
		}
		return
	case is.Owner == "": // a release
		of = c.grants[holding{n, was.Owner}]
		if of == nil || is.Term != was.Term {
			w.fail(misstep, "p%d: %+v is released as %+v", by.id, was, is)
		} else if is.Horizon < of.base || is.Horizon < of.taken {
			w.fail(outside, "p%d: worker %d is released at %d: granted (%d, %d], issued %d", by.id, n, is.Horizon, of.base, of.top, of.taken)
		}
		return
	case is.Owner == was.Owner:
		if is.Term != was.Term || is.Horizon < was.Horizon {
			w.fail(misstep, "p%d: extends %+v to %+v", by.id, was, is)
		}
		if of != nil {
			of.top = max(of.top, is.Horizon)
		}
	default:
		if is.Term != was.Term+1 || is.Horizon < was.Horizon {
			w.fail(misstep, "p%d: takes %+v as %+v", by.id, was, is)
		}
		if c.owners[is.Owner] && !w.cloning.done { // a clone draws the same tokens
			w.fail(misstep, "p%d: an owner twice: %+v", by.id, is)
		}
		c.owners[is.Owner] = true
		c.grants[holding{n, is.Owner}] = &grant{base: was.Horizon, top: is.Horizon, to: by.holder}
	}
	c.ahead(by, p, n, was, is)
}

// ahead: no horizon is further ahead of the store than a restore counts on.
func (c *checker) ahead(by *process, p *pool, n int64, was, is term.Record) {
	w := c.w
	if w.kind != clocked || is.Horizon == was.Horizon {
		return
	}
	most := w.tick(w.store.clock().Add(w.rules.Outage + w.rules.Skew))
	if is.Horizon <= most {
		return
	}
	if most = max(most, p.floor); is.Horizon > most {
		w.fail(reach, "p%d: worker %d: horizon %s is ahead of the store's %s by more than %s", by.id, n,
			w.begin(is.Horizon), w.store.clock(), w.rules.Outage+w.rules.Skew)
	}
}

// stepped: the machine has said what to do next.
func (c *checker) stepped(h *holder) {
	if over := h.p.Term.Over(); over != (h.p.Doing.Op == term.None) {
		c.w.fail(misstep, "p%d: phase %s and %s to do", h.id, h.p.Term.Phase, ops[h.p.Doing.Op])
	}
	if g, ok := h.p.Term.Grant(); ok && (h.lacks < 0 || g.Horizon >= c.w.tick(h.now().Wall)) {
		h.lacks, h.gaveUp = -1, nil
	} else if h.lacks < 0 {
		h.lacks = c.w.now
	}
}

// lacking: a process must end its term when it reads that the store lacks a write which it acknowledged
// to that process.
func (c *checker) lacking(h *holder, e term.Event) {
	found, ok := e.(term.Found)
	if !ok || h.p.Term.Closed { // who leaves does no harm
		return
	}
	was := h.before.Have
	switch {
	case h.p.Term.Phase == term.Lost:
		c.resigned(h, found)
	case h.p.Term.Over():
	case found.Record.Key == h.pool.key && h.knew != "":
		if r, err := term.ReadPool(found.Record); err == nil && r.ID != h.knew {
			c.w.fail(unnoticed, "p%d: does not notice that pool %q is gone, or another one of that name: it knew %s, and read %q", h.id, h.pool.name, h.knew, r.ID)
		}
	case h.before.Phase == term.Holding && found.Record.Key == term.KeyWorker(h.pool.name, h.before.Worker):
		if r, err := term.ReadRecord(found.Record); err == nil && (r.Term < was.Term || r.Owner == was.Owner && r.Horizon < was.Horizon) {
			c.w.fail(unnoticed, "p%d: does not notice that its worker's record went back from %+v to %+v", h.id, was, r)
		}
	}
}

// resigned: a process that reads that the record of its worker is missing or went back, on a store that does
// not forget, must not take another worker, unless the pool was made safe after that.
func (c *checker) resigned(h *holder, found term.Found) {
	s := &h.before
	if s.Phase != term.Holding || s.Lossy || found.Record.Key != term.KeyWorker(h.pool.name, s.Worker) || s.Pool.Floor >= s.Have.Horizon {
		return
	}
	r, err := term.ReadRecord(found.Record)
	if err == nil && (r.Term < s.Have.Term || r.Owner == s.Have.Owner && r.Horizon < s.Have.Horizon) {
		c.w.fail(unnoticed, "p%d: continues though its worker's record went back from %+v to %+v", h.id, s.Have, r)
	}
}

// sent: a process that has seen that the store is lossy takes and extends nothing before the pool's
// record, as that process knows it, says so.
func (c *checker) sent(h *holder, do term.Action) {
	s := &h.p.Term
	if (do.For == term.TakeWorker || do.For == term.ExtendWorker) && s.View.Known && !s.View.Durability.Durable && s.Pool.Lossy == "" {
		c.w.fail(misstep, "p%d: %s, and the pool's record does not say that the store can forget", h.id, do.Key)
	}
}

// over: a term has ended.
func (c *checker) over(h *holder) {
	w := c.w
	if h.lacks < 0 {
		h.lacks = w.now
	}
	var full *term.FullError
	if errors.As(h.p.Term.Err, &full) {
		c.full = append(c.full, fmt.Sprintf("%s: p%d: %v", w.now, h.id, full))
	}
	if h.p.Term.Phase == term.Forgotten && w.total.Faults[restored] == 0 && !w.forgot && w.copy == nil {
		w.fail(misstep, "p%d: forgotten, of a store that has forgotten nothing: %v", h.id, h.p.Term.Err)
	}
}

// end checks what can be seen when all is over.
func (c *checker) end() {
	c.intervals()
	if c.w.documents {
		c.papers.end()
	}
	if !c.w.calm {
		return
	}
	for _, p := range c.w.procs {
		if p.holder != nil {
			c.lives(p.holder)
		}
		if p.drawer != nil {
			c.draws(p.drawer)
		}
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
		if before.until() > g.base && g.until() > g.base && before.owner != g.owner {
			w.fail(overlap, "worker %d: (%d, %d] of generator %d (p%d) and (%d, %d] of generator %d (p%d)", g.worker,
				before.base, before.until(), before.id, before.h.id, g.base, g.until(), g.id, g.h.id)
		}
		if g.until() > before.until() {
			before = g
		}
	}
}

// lives: a process has a worker and can issue, or there is none to be had.
func (c *checker) lives(h *holder) {
	w := c.w
	var (
		layout *term.LayoutError
		clock  *term.ClockError
		worker *term.WorkerError
	)
	switch {
	case !h.alive && h.gaveUp == nil, h.wish, h.rules.Choice == term.Fresh, w.last:
		return
	case errors.As(h.gaveUp, &layout), errors.As(h.gaveUp, &clock), errors.As(h.gaveUp, &worker), errors.As(h.p.Term.Err, &worker), h.strays: // it is for somebody else to mend
		return
	}
	now := h.now()
	if h.lacks < 0 {
		late := 4*time.Second + 6*w.fast // the last extension is under way
		if w.tick(now.Wall.Add(-late)) > h.p.Term.Have.Horizon {
			w.fail(starved, "p%d: its clock says %s and is not granted that: %d", h.id, now.Wall, h.p.Term.Have.Horizon)
		}
		return
	}
	if w.now-h.lacks < w.grace {
		return // it was started, or has lost one, not long ago
	}
	r := w.store.record(h.pool)
	if r == nil || !r.pool.Created() {
		if len(w.pools) == 1 && w.now-h.lacks > w.grace+time.Minute/2 { // of several, others may have its workers
			w.fail(starved, "p%d has had no pool since %s", h.id, h.lacks)
		}
		return
	}
	has, err := r.pool.Range(w.rules.Layout)
	if err != nil {
		return // it was founded by a process with the other layout
	}
	first, count := has.First, has.Count()
	if h.rules.Choice == term.Insist {
		first, count = h.rules.Worker, 1
	}
	for n := first; n < first+count; n++ {
		if since := c.usable(h, n); since <= w.now-w.grace {
			w.fail(starved, "p%d has had no worker since %s, and worker %d was free since %s: %v", h.id, h.lacks, n, since, h.p.Term.Err)
			return
		}
	}
}

// usable is since when a process could have had a worker.
func (c *checker) usable(h *holder, n int64) (since time.Duration) {
	w := c.w
	base := firn.Tick(0)
	if r := w.store.record(h.pool); r != nil {
		base, since = r.pool.Floor, r.at
	}
	if rec := w.store.records[term.KeyWorker(h.pool.name, n)]; rec != nil {
		base = max(base, rec.worker.Horizon)
		if rec.worker.Owner != "" || rec.worker.TTL != 0 {
			since = max(since, rec.at+time.Duration(rec.worker.TTL)*time.Millisecond)
		}
	}
	if base >= w.rules.Layout.Last() {
		return 1 << 62
	}
	ahead := w.begin(base + 1).Sub(h.now().Wall)
	return max(since, w.now+ahead)
}

// retaking is how many requests it takes a process to lose its worker and to hold another.
const retaking = 7

// A rate counts requests.
type rate struct {
	since  time.Duration
	tokens float64
}

// count checks that nobody is busy without need: so many requests a second in
// the long run, and a hundred at once.
func (r *rate) count(h *holder) {
	const burst = 200
	w := h.w
	r.tokens = max(r.tokens-(w.now-r.since).Seconds()*w.maxSpeed, 0) + 1
	r.since = w.now
	if r.tokens > burst {
		w.fail(misstep, "p%d sends more than %g requests a second, in phase %s", h.id, w.maxSpeed, h.p.Term.Phase)
	}
}
