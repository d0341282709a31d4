package sim

import (
	"time"
)

// faults says what kinds of fault a schedule has.
type faults struct {
	network bool
	loss    float64 // part of the requests that do not fare well
	takes   float64 // part of the Puts that take a worker that is long on its way
	pauses  bool
	kills   bool
	closes  bool
	clocks  bool // step, drift and stand still; else they are right
	cuts    bool // a process, or all of them, do not reach the store
	release bool // by an operator
	restore bool // the store goes back; an operator repairs it
	forget  bool // the store goes back and nobody repairs it; a lossy one
	shift   bool // a store becomes one that forgets, or one that does not
	remove  bool // an embedded store's file is removed, and another put in its place
	drop    bool // a store loses all it has, and is used on as if it were new
	files   bool // some processes have grant files
	reboots bool // a host is started again
	copies  bool // somebody copies a grant file
	disks   bool // those of grant files fail
	ranges  bool // pools get and lose workers, and further ones are created
	unpool  bool // a pool's record is removed, and no other
	twins   bool // the store is copied, and both are used
	denies  bool // a process has no right to the store for a while
	damages bool // a record cannot be read for a while
	clones  bool // a process is cloned
	uncount bool // the counter's record is removed, or another series' is in its place
	caches  bool // an operator changes the counter's cache
	settles bool // a store that forgets becomes one that does not
	choices bool // some want a fresh worker, or a certain one

	dates    bool // the store's clock is set over midnight, to and fro
	undefine bool // the definition of a series of documents is removed, or another is in its place
}

// A fault is a kind of fault that struck, for the report.
type fault int

const (
	requestLost fault = iota
	replyLost
	duplicated // a request
	delayed    // a request or a reply, by more than usual
	posthumous // a write of a process that was no more
	conflict
	paused
	suspended
	killed
	closed
	rebooted
	stepped  // a clock: a step, a drift, or it stands still
	cutOff   // a process, from the store
	outage   // of the store, for all
	released // a worker, by an operator
	forgotten
	shifted
	restored
	removed
	dropped
	copied
	filled    // a disk: a grant file cannot be written
	spoiled   // or is damaged, or cannot be read
	creations // of pools, begun
	ranged    // attempts to change a pool's range
	brokenOff // what operators do
	unpooled
	twinned
	damaged
	uncounted
	dateSet
	undefined
	denial
	cloned
	faultKinds
)

var faultNames = [faultKinds]string{
	"requests lost", "replies lost", "requests that arrived twice", "requests or replies late", "writes after the writer's end", "writes refused",
	"pauses", "suspends", "kills", "closes", "reboots", "clocks stepped, drifting or frozen", "processes cut off", "store outages",
	"workers released by an operator", "stores that forgot and went on", "promises that changed", "restores", "files replaced",
	"stores emptied", "grant files copied", "grant files that could not be written", "grant files damaged or not to be read", "creations of pools begun", "changes of ranges begun", "operators broken off",
	"pools' records removed", "stores copied", "records damaged", "counters' records removed or exchanged", "dates set", "series of documents removed or begun anew", "rights taken away for a while", "processes cloned",
}

// nextFault lets something befall the world, again and again.
func (w *world) nextFault() {
	d := w.around(w.every)
	if gap := w.starts - w.now; gap > 20*time.Second && w.chance(0.3) { // little happens until ids start
		d += w.upTo(gap)
	}
	w.after(d, func() {
		if !w.calm {
			w.strike()
			w.nextFault()
		}
	})
}

// strike lets one of the kinds of fault that the schedule has befall a process,
// or all.
func (w *world) strike() {
	f := &w.faults
	p := w.procs[w.rng.IntN(len(w.procs))]
	kinds := [...]struct {
		has bool
		do  func()
	}{
		{f.pauses, func() { w.pause(p) }},
		{f.kills, func() { w.kill(p) }},
		{f.closes, func() { w.close(p) }},
		{f.clocks, func() { w.total.Faults[stepped]++; p.host.step() }},
		{f.cuts, func() { w.cut(p) }},
		{f.release, func() {
			q := w.anyPool()
			w.releaseWorker(q, q.range0.First+w.rng.Int64N(min(q.range0.Count(), 8)))
		}},
		{f.restore, func() { w.restore(w.store.snapshot(), false) }},
		{f.shift, w.shift},
		{f.forget, func() { w.failOver(w.store.snapshot()) }},
		{f.remove, func() { w.restore(w.store.snapshot(), true) }},
		{f.drop, w.drop},
		{f.reboots, func() { w.total.Faults[rebooted]++; p.host.reboot() }},
		{f.copies, func() { w.copyFile(p) }},
		{f.disks, func() { w.spoil(p) }},
		{f.ranges, func() { w.change(w.anyPool()) }},
		{f.unpool, func() { w.unpool(w.anyPool()) }},
		{f.twins, w.twin},
		{f.damages, w.damage},
		{f.clones, w.clone},
		{f.uncount, w.uncount},
		{f.dates, w.date},
		{f.undefine, w.undefine},
		{f.caches, w.recache},
		{f.settles, w.settle},
		{f.denies, func() {
			w.total.Faults[denial]++
			p.denied = w.now + w.span()
			w.logf("p%d has no right to the store for %s", p.id, p.denied-w.now)
		}},
	}
	var can [len(kinds)]int
	n := 0
	for i, k := range kinds {
		if k.has {
			can[n] = i
			n++
		}
	}
	if n > 0 {
		kinds[can[w.rng.IntN(n)]].do()
	}
}

func (w *world) pause(p *process) {
	suspend := w.chance(0.5)
	w.total.Faults[paused]++
	if suspend {
		w.total.Faults[suspended]++
	}
	p.pause(w.span(), suspend)
}

func (w *world) kill(p *process) {
	w.total.Faults[killed]++
	w.restart(p, p.kill)
}

func (w *world) close(p *process) {
	w.total.Faults[closed]++
	w.restart(p, p.close)
}

// restart ends a process, and starts it again some time after.
func (w *world) restart(p *process, end func()) {
	if p.alive {
		end()
		w.after(w.shortSpan(), p.boot)
	}
}

// cut keeps a process from the store, or now and then all.
func (w *world) cut(p *process) {
	if w.chance(0.3) {
		w.total.Faults[outage]++
		w.away = w.now + w.span()
		w.logf("the store is away for %s", w.away-w.now)
		return
	}
	w.total.Faults[cutOff]++
	if p.drawer != nil && w.lanes > 1 && w.chance(0.7) {
		p.drawer.apart[w.rng.IntN(w.lanes)] = w.now + w.span()
		return
	}
	p.apart = w.now + w.span()
	w.logf("p%d is cut off for %s", p.id, p.apart-w.now)
}

// copyFile gives a process a copy of another's grant file, be it running or not.
func (w *world) copyFile(p *process) {
	q := w.procs[w.rng.IntN(len(w.procs))]
	if p == q || p.holder.file == nil || q.holder.file == nil {
		return
	}
	if q.holder.file.content.inode == p.holder.file.inode {
		return // its own from before, put back in its place: nothing tells that
	}
	w.total.Faults[copied]++
	w.logf("p%d has a copy of p%d's grant file", p.id, q.id)
	if p.alive {
		p.kill()
	}
	p.holder.file.copyOf(q.holder.file)
	w.after(w.shortSpan()/4, p.boot)
}

// spoil lets something happen to the disk of a process's grant file. Now and then the process is killed
// just after, and so the next one finds it.
func (w *world) spoil(p *process) {
	f := p.holder.file
	if f == nil {
		return
	}
	f.spoil()
	if w.chance(0.5) {
		w.after(w.upTo(time.Second), func() { w.kill(p) })
	}
}

// span draws how long a fault lasts: from nothing to longer than any grant.
func (w *world) span() time.Duration {
	r := &w.rules
	return pick(w.rng, w.around(100*time.Millisecond), w.around(time.Second), w.around(r.TTL), w.around(r.TTL+r.Outage), w.around(w.long))
}

func (w *world) shortSpan() time.Duration {
	return pick(w.rng, 0, w.around(100*time.Millisecond), w.around(time.Second), w.around(w.rules.TTL))
}

// follow lets a fault strike just when the store has done something: that is
// when it hurts.
func (w *world) follow(p *process, rq request, r reply) {
	if !rq.kind.writes() || r.err != nil || !w.known || w.calm {
		return
	}
	often := 0.08
	if rq.taking {
		often = 0.2
	}
	_, _, ours := w.poolOf(rq.key)
	if ours = ours || counterOf(rq.key) >= 0 || isDated(rq.key); !ours || !w.chance(often) {
		return
	}
	life, n := p.life, len(w.store.log)
	w.after(w.upTo(2*w.fast), func() {
		f := &w.faults
		if w.calm {
			return
		}
		switch w.rng.IntN(5) {
		case 0:
			if f.pauses && life == p.life {
				w.pause(p)
			}
		case 1:
			if f.kills && life == p.life {
				w.kill(p)
			}
		case 2:
			if f.cuts {
				w.cut(p)
			}
		default:
			if !f.restore && !f.forget {
				return
			}
			to := min(pick(w.rng, n-1, w.store.lastTaken(1), w.store.lastTaken(2), w.store.snapshot()), len(w.store.log))
			if w.series || w.documents {
				to = max(to, w.store.keep)
			}
			if f.restore {
				w.restore(to, false)
				return
			}
			w.failOver(to)
			w.after(w.shortSpan()/4, w.procs[w.rng.IntN(len(w.procs))].boot)
		}
	})
}

// failOver: the store goes on without its last writes, and on another host's
// clock. Nobody is told.
func (w *world) failOver(to int) {
	s := w.store
	if s.settled {
		return
	}
	if w.kind == shifting {
		if !s.marked() || w.cutOff { // an operator repairs what the store is now
			return
		}
		to = max(to, s.firm)
		s.async = s.async && w.chance(0.5) // else it goes on alone
	}
	w.total.Faults[forgotten]++
	s.setClock(w.storeSkew())
	marked := s.marks()
	s.rollBack(to)
	s.blank = s.blank || s.marks() < marked
	s.instance++
	if w.series {
		w.after(w.upTo(2*time.Second), func() { w.repairCounter(w.store) })
		if !w.leases && s.identity != "" && w.chance(0.2) { // it is another server
			s.identity += "'"
		}
		if w.faults.caches && w.chance(0.5) {
			w.recache()
		}
	}
	if w.documents {
		if s.identity != "" && !w.leases && w.chance(0.1) { // it has another name there
			s.identity += "'"
		}
		w.mendLater()
	}
	if w.faults.closes && w.chance(0.3) { // who sees trouble starts things again
		p := w.procs[w.rng.IntN(len(w.procs))]
		w.after(w.upTo(5*w.fast), func() { w.close(p) })
	}
	if w.chance(0.5) {
		w.heal()
	}
}

// shift: a standby that lags is added, or taken away.
func (w *world) shift() {
	w.total.Faults[shifted]++
	w.store.async = !w.store.async
	w.logf("the store can forget: %v", w.store.async)
}

// settle: a store that forgets gets a disk that does not. Where it has forgotten that a counter was
// recovered, it stays as it is: nothing would show which numbers it forgot (docs/reference/guarantees.md).
func (w *world) settle() {
	if w.store.blank {
		return
	}
	if w.chance(0.3) {
		w.total.Faults[shifted]++
		w.store.settled = true
		w.logf("the store cannot forget any more")
	}
}

// drop: all that the store has is gone, and nobody knows.
func (w *world) drop() {
	if w.chance(0.7) || w.total.Faults[dropped] > 2 { // seldom
		return
	}
	w.total.Faults[dropped]++
	w.store.rollBack(0)
	if w.chance(0.5) {
		w.after(w.shortSpan()/4, w.procs[w.rng.IntN(len(w.procs))].boot)
	}
}

// heal lets those come back, soon, that were away: they find what the store has
// become before anybody else changes it.
func (w *world) heal() {
	for _, p := range w.procs {
		life := p.life
		w.after(w.around(20*time.Millisecond), func() {
			p.apart = 0
			if life == p.life && p.paused {
				p.resume()
			}
		})
	}
}

// calmDown ends all faults: clocks are set right, who is paused goes on, who is
// dead is started again.
func (w *world) calmDown() {
	w.logf("faults are over")
	w.calm, w.away = true, 0
	w.store.mendAll()
	w.issues, w.think = max(w.issues, time.Second), max(w.think, time.Second)
	if w.kind.lossy() {
		w.store.setClock(0)
	}
	for _, h := range w.hosts {
		h.set(w.upTo(20*time.Millisecond)-10*time.Millisecond, 0, false)
	}
	for _, p := range w.procs {
		p.apart, p.denied = 0, 0
		if p.drawer != nil {
			clear(p.drawer.apart[:])
		}
		if p.paused {
			p.resume()
		}
		if !p.alive {
			w.after(w.upTo(time.Second), p.boot)
		}
	}
	w.watch()
}

// watch starts processes again that end, as whatever runs them does.
func (w *world) watch() {
	w.after(lapse, func() {
		for _, p := range w.procs {
			p.boot()
		}
		w.watch()
	})
}
