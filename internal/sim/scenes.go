package sim

import (
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
)

// quick rules let a new holder come and issue after little time.
func quick(r *term.Rules) {
	r.Reach, r.Renew, r.TTL, r.Wait = 2*time.Second, 2*time.Second, 6*time.Second, 7*time.Second
	r.Outage = 6 * time.Second
}

func restoring(s *setup) {
	quick(&s.rules)
	s.faults = faults{restore: true, pauses: true, cuts: true, network: s.faults.network, loss: s.faults.loss}
	s.every, s.lasts = 3*time.Second, time.Minute
}

func wrongClocks(s *setup) {
	restoring(s)
	s.faults.clocks = true
	s.rules.Skew = time.Second
}

func dropping(s *setup) {
	restoring(s)
	s.faults.restore, s.faults.drop = false, true
	s.unequal, s.lasts = false, 30*time.Second
}

func replacing(s *setup) {
	quick(&s.rules)
	s.faults = faults{remove: true, pauses: true, kills: true}
	s.every, s.lasts, s.founded = 3*time.Second, 30*time.Second, true
}

// staged schedules have no faults but those of the scene.
func staged(s *setup) {
	quick(&s.rules)
	s.rules.Layout, s.workers = layouts[2], 1
	s.procs, s.founded, s.known, s.faults = 2, true, false, faults{}
	s.fast, s.issues = 2*time.Millisecond, 200*time.Millisecond
}

// ghost is a scene: the first attempt of a process to take a worker is long on
// its way; the second one succeeds. While it is paused another process takes
// over. Then the store goes back to before all that, is repaired, and the first
// attempt arrives, just before its process goes on.
func ghost(w *world) {
	p, other := w.procs[0], w.procs[1]
	h := p.holder
	p.boot()
	w.await(time.Minute, h.reaches(term.Seeking))
	w.away = w.now + 100*time.Millisecond
	if h.p.Term.Phase > term.Seeking {
		return // it was sent too soon to be lost
	}
	w.await(time.Minute, h.reaches(term.Taking))
	do := h.p.Doing
	attempt := request{kind: put, key: do.Key, value: do.Value, cond: do.Cond, version: w.newVersion()}
	w.until(w.now + 10*time.Second + w.around(5*time.Second))
	p.pause(time.Hour, false)
	other.boot()
	w.until(w.now + 8*time.Second + w.around(5*time.Second))
	w.restore(1, false)
	w.await(time.Hour, w.letsIn)
	w.store.answer(p, attempt)
	p.resume()
	w.until(w.now + 10*time.Second)
}

// resuming schedules are such, with a grant file.
func resuming(s *setup) {
	staged(s)
	s.faults.files, s.procs = true, 1
}

// resumedAfterRestore is a scene: a process is killed, the store goes back to
// before all that it wrote, and is repaired. Then the process is started again,
// and whenever it ends.
func resumedAfterRestore(w *world) {
	p := w.procs[0]
	p.boot()
	w.until(w.now + 2*time.Second + w.around(5*time.Second))
	p.kill()
	w.restore(1, false)
	w.await(time.Hour, w.letsIn)
	p.boot()
	w.watch()
	w.until(w.now + w.rules.Outage + 2*w.rules.Skew + w.grace + time.Minute)
	w.check.lives(p.holder)
}

// relaying schedules are such, of a pool that has a layout of which another one has the same ids.
func relaying(s *setup) {
	staged(s)
	s.rules.Layout, s.workers = firn.Default(), 2
}

// relaid is a scene: a process has looked at its pool, and not joined it yet. Then the pool's record is removed,
// the pool created anew with another layout, and another process holds its worker 0.
func relaid(w *world) {
	p, other := w.procs[0], w.procs[1]
	h, pool := p.holder, w.pools[0]
	p.boot()
	w.await(time.Minute, h.asksFor(term.JoinPool))
	p.pause(time.Second, false)
	w.forgot = true
	w.store.remove(pool.key)
	anew := term.NewPool("anew", layoutOfOthers, pool.range0, w.rules.Outage)
	anew.Workers, anew.Reserved = anew.Reserved, ""
	w.store.write(pool.key, anew.Encode(), w.newVersion())
	other.holder.rules.Layout = layoutOfOthers
	other.boot()
	w.until(w.now + 20*time.Second)
}

// crashing schedules have more workers than processes that crash.
func crashing(s *setup) {
	s.rules = defaultRules(clocked, firn.Default())
	s.workers, s.procs, s.founded, s.known, s.unequal = 16, 8, true, false, false
	s.faults, s.maxSpeed = faults{}, 100
	s.fast, s.issues = 2*time.Millisecond, time.Second
}

// crashLoops is a scene: all processes but one die 2 s after each start, and are
// started again after longer and longer. Then that one starts.
func crashLoops(w *world) {
	w.store.setClock(0) // else one whose clock is just too far ahead of it is refused
	for _, p := range w.procs[1:] {
		var begin func(delay time.Duration)
		begin = func(delay time.Duration) {
			p.boot()
			w.after(2*time.Second, func() {
				p.kill()
				w.after(w.upTo(time.Second)+delay, func() { begin(delay + time.Second) })
			})
		}
		w.after(w.upTo(time.Second), func() { begin(0) })
	}
	w.until(25*time.Second + w.upTo(20*time.Second))
	healthy := w.procs[0]
	healthy.boot()
	w.until(w.now + 2*time.Second)
	if healthy.holder.lacks >= 0 {
		w.fail(starved, "p0 has no worker 2 s after its start: %s: %v", healthy.holder.p.Term.Phase, healthy.holder.p.Term.Err)
	}
}

func files(s *setup) { s.faults.files, s.faults.kills, s.faults.closes = true, true, true }

func rebooting(s *setup) {
	files(s)
	s.faults.reboots = true
}

func copying(s *setup) {
	files(s)
	s.faults.copies = true
}

func spoiling(s *setup) {
	files(s)
	s.faults.disks = true
}

func freshly(s *setup) {
	s.fresh, s.founded, s.workers = true, true, 64
}

func forgetful(s *setup) {
	quick(&s.rules)
	s.rules.Layout, s.workers = pick(rand.New(rand.NewPCG(1, uint64(s.procs))), layouts[2], layouts[3]), 1
	s.rules.Skew, s.rules.Renew = 200*time.Millisecond, 500*time.Millisecond
	s.rules.Outage = 6 * time.Second
	s.faults = faults{forget: true, pauses: true, release: true}
	s.every, s.lasts, s.procs = time.Second, 40*time.Second, 3
}

// brisk schedules have time for holders that are late, and for their successors.
func brisk(s *setup) {
	forgetful(s)
	r := &s.rules
	r.Reach, r.TTL, r.Outage, r.Skew = time.Second, 2*time.Second, 2*time.Second, 100*time.Millisecond
	s.long, s.lasts = 6*time.Second, 30*time.Second
}

// releasing schedules have one worker, whose takers often hear late that they have it.
func releasing(s *setup) {
	brisk(s)
	s.founded, s.unequal, s.workers, s.procs = true, false, 1, 3
	s.lasts, s.every = 2*time.Minute, 400*time.Millisecond // a pause, a release and a loss have to meet within a time to live
	s.faults = faults{forget: true, release: true, pauses: true, network: s.faults.network, loss: s.faults.loss, takes: 0.6}
}

func unequal(s *setup) {
	brisk(s)
	s.rules.Outage = 6 * time.Second
	s.founded, s.unequal, s.faults.shift = true, true, s.kind == shifting
}

func shiftingOften(s *setup) {
	brisk(s)
	s.founded, s.unequal, s.faults.shift, s.faults.kills = true, false, true, true
	s.rules.Look, s.workers, s.procs = time.Second, 2, 4
}

func slow(s *setup) {
	forgetful(s)
	s.rules.Layout = layouts[2]
	s.faults, s.every, s.procs = faults{forget: true, takes: 0.6}, 2*time.Second, 6
}

func exact(layout int) func(*setup) {
	return func(s *setup) {
		forgetful(s)
		s.rules.Layout, s.workers, s.rules.Skew = layouts[layout], 1, time.Second
		s.rules.Outage = 3 * time.Second
		s.faults, s.every, s.procs = faults{forget: true}, 6*time.Second, 4
	}
}

func twoLayouts(s *setup) {
	s.rules.Layout, s.workers = layouts[1], 2
	s.layout2, s.founded, s.faults.restore = true, true, false
}

func living(s *setup) {
	quick(&s.rules)
	s.lives, s.lasts = true, 10*time.Second
	s.faults = faults{cuts: true, network: true, loss: 0.2}
}

// mourning schedules have holders that die.
func mourning(s *setup) {
	living(s)
	s.faults = faults{kills: true}
}

func clocksOnly(s *setup) {
	quick(&s.rules)
	s.rules.Outage = time.Minute
	s.faults = faults{clocks: true}
}

func counter(s *setup) {
	s.counting(rand.New(rand.NewPCG(2, uint64(s.lasts)^uint64(s.every)^uint64(s.procs))))
	s.faults.restore = false
}

// quiet schedules of a counter have no faults but those of the scene.
func quiet(s *setup) {
	counter(s)
	s.faults, s.procs, s.known = faults{}, 3, false
}

// handBack is a scene: a process has a block, and another one the next, which the
// store forgets when it was used. The first one closes, and hands its tail back,
// before the counter is repaired.
func handBack(w *world) {
	p, other, third := w.procs[0], w.procs[1], w.procs[2]
	p.boot()
	w.until(w.now + time.Second)
	p.pause(time.Hour, false)
	n := len(w.store.log)
	other.boot()
	w.until(w.now + time.Second)
	other.drawer.drain()
	other.kill()
	w.failOver(n)
	p.resume()
	p.close()
	w.until(w.now + 3*time.Second)
	third.boot()
	w.until(w.now + time.Second)
}

func counterRestored(s *setup) {
	counter(s)
	s.faults.restore = true
}

// uncounting schedules have a counter whose record is removed, or another series' is in its place.
func uncounting(s *setup) {
	counter(s)
	s.faults.twins, s.faults.settles, s.faults.uncount = false, false, true
}

// counterLanes schedules have a counter of several stores.
func counterLanes(s *setup) {
	counter(s)
	s.lanes, s.faults.twins, s.faults.settles = 2, false, false
}

// droppingLong schedules have grants that reach far.
func droppingLong(s *setup) {
	dropping(s)
	s.rules.Outage, s.rules.Reach, s.rules.Skew = time.Minute, 20*time.Second, time.Second
}

// embeddedRestored schedules have pools that are lost and created anew by processes.
func embeddedRestored(s *setup) {
	restoring(s)
	s.founded, s.faults.kills = false, true
}

// creating schedules have pools that are created at the same time.
func creating(s *setup) {
	quick(&s.rules)
	s.rules.Layout, s.rules.Outage = layouts[1], 6*time.Second
	s.faults = faults{ranges: true, network: true, loss: 0.2}
	s.pools, s.procs, s.first, s.workers, s.founded, s.unequal = 3, 6, 0, 2, false, false
	s.every, s.lasts = 3*time.Second, 20*time.Second
	s.fast = 200 * time.Millisecond
}

// moving schedules have pools that hand workers to each other.
func moving(s *setup) {
	quick(&s.rules)
	s.rules.Layout, s.rules.Outage = layouts[1], 3*time.Second
	s.faults = faults{ranges: true, network: s.faults.network, loss: s.faults.loss, kills: true, pauses: true}
	s.pools, s.procs, s.first, s.workers, s.founded, s.unequal = 2, 6, 0, 4, true, false
	s.every, s.lasts = time.Second, time.Minute
}

// movingLate schedules have ranges that change while a worker is taken.
func movingLate(s *setup) {
	moving(s)
	s.faults.takes = 0.3
}

func unpooling(s *setup) {
	dropping(s)
	s.faults.drop, s.faults.unpool, s.faults.kills = false, true, true
}

// counterTwinning schedules have a counter whose store is copied, and processes that use
// the copy.
func counterTwinning(s *setup) {
	counter(s)
	s.faults = faults{twins: true, kills: true}
	s.named = true
}

func twinning(s *setup) {
	quick(&s.rules)
	s.faults = faults{twins: true, pauses: true, kills: true}
	s.named, s.every, s.lasts, s.procs = true, 3*time.Second, 30*time.Second, 4
}

func documents(s *setup) {
	s.documenting(rand.New(rand.NewPCG(3, uint64(s.lasts)^uint64(s.every)^uint64(s.procs))))
	s.lives = false
}

// documentsDated schedules have a store's clock that is set.
func documentsDated(s *setup) {
	documents(s)
	s.faults.dates, s.calendar = true, 0
}

func documentsRestored(s *setup) {
	documents(s)
	s.faults.restore, s.faults.dates, s.faults.undefine = true, false, false
	s.calendar = 0
}

// documentsTwinning schedules have a store that is copied, and processes that use the copy.
func documentsTwinning(s *setup) {
	documents(s)
	s.faults = faults{twins: true, kills: true}
	s.named = true
}

func twinningFiles(s *setup) {
	twinning(s)
	s.faults.files = true
}

// holdingForOthers schedules have other programs that issue, under workers that are held for them.
func holdingForOthers(s *setup) {
	quick(&s.rules)
	s.held, s.founded, s.faults = true, true, faults{clocks: true, closes: true}
	s.every, s.issues, s.lasts = 500*time.Millisecond, 50*time.Millisecond, 20*time.Second
}

// shiftingFiles schedules have grant files besides.
func shiftingFiles(s *setup) {
	shiftingOften(s)
	s.faults.files, s.faults.closes = true, true
}

// outlasting schedules have no faults but those of the scene.
func outlasting(s *setup) {
	brisk(s)
	r := &s.rules
	r.Outage, r.Reach, r.TTL = 6*time.Second, 6*time.Second, 6*time.Second
	s.workers, s.procs, s.founded, s.known, s.faults = 1, 2, true, false, faults{}
	s.fast, s.issues = 2*time.Millisecond, 200*time.Millisecond
}

// outlasts is a scene: the record of a pool says that grants reach 6 s. A process has read that, and
// is paused before it takes a worker. Meanwhile an operator recovers the store, which makes it 3 s.
// The process takes the worker, and the store forgets that. Another process takes it.
func outlasts(w *world) {
	p, other := w.procs[0], w.procs[1]
	h, pool := p.holder, w.pools[0]
	founded := *w.store.record(pool)
	founded.pool.Limit, founded.pool.Outage, founded.pool.Lossy = 0, w.rules.Outage.Milliseconds(), "seen before"
	w.store.write(pool.key, founded.pool.Encode(), w.newVersion())
	p.boot()
	w.await(time.Minute, h.reaches(term.Seeking))
	p.pause(time.Hour, false)
	w.restore(len(w.store.log), false)
	w.await(time.Hour, w.letsIn)
	w.until(w.now + term.OutageDurable + time.Minute)
	n := len(w.store.log)
	p.resume()
	w.await(10*time.Second, h.grants)
	p.pause(w.around(5*time.Second), false)
	w.failOver(n)
	other.boot()
	w.until(w.now + 20*time.Second)
	w.check.intervals()
}

// worst schedules have no faults but those of the scene.
func worst(s *setup) {
	exact(2)(s)
	s.faults, s.procs, s.founded, s.known, s.unequal = faults{}, 2, true, false, false
	s.fast, s.issues = 2*time.Millisecond, 200*time.Millisecond
}

// forgetsGrant is a scene: a process whose clock is ahead by all that it may be has a long grant. The
// store forgets that it has the worker, and a process takes it whose clock is behind by as much.
func forgetsGrant(w *world) {
	p, other := w.procs[0], w.procs[1]
	w.store.setClock(0)
	p.host.set(w.rules.Skew, 0, false)
	other.host.set(-w.rules.Skew, 0, false)
	p.boot()
	w.await(time.Minute, func() bool { return w.now >= 20*time.Second && !p.holder.asks })
	n := len(w.store.log)
	w.await(time.Minute-w.now, func() bool { return len(w.store.log) > n })
	w.store.rollBack(w.store.lastTaken(1))
	other.boot()
	w.until(w.now + 20*time.Second)
	w.check.intervals()
}
