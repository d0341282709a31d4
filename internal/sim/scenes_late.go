package sim

import (
	"time"

	"github.com/firn-id/firn/internal/term"
)

// This file has scenes in which somebody comes late: what was read before a restore is used after it, a
// holder extends a record that the store has brought back, a process wakes after hours. In each a rule
// of internal/term is what keeps two terms of a worker apart.

// await lets time pass until something is so, or for a while at most.
func (w *world) await(most time.Duration, so func() bool) bool {
	for end := w.now + most; !so() && w.now < end && w.failure == nil; {
		next := end
		if w.queue.len() > 0 {
			next = min(next, w.queue.first().at)
		}
		w.until(next)
	}
	return so()
}

// asksFor returns whether a process has sent a request of that purpose to the store.
func (h *holder) asksFor(p term.Purpose) func() bool {
	return func() bool { return h.loop.lives() && h.p.Doing.For == p }
}

// reaches returns whether a process has come to that phase.
func (h *holder) reaches(p term.Phase) func() bool {
	return func() bool { return h.p.Term.Phase >= p }
}

// letsIn returns whether the store is open to everybody.
func (w *world) letsIn() bool { return !w.cutOff }

// grants returns whether a process has made ids of its present term.
func (h *holder) grants() bool { return h.gen != nil }

// restoredWhileTaking is a scene: a process has read the pool's record and that its worker was never held.
// It is paused. Another process takes the worker; the store is restored to before that. Then the first
// one takes the worker, of which there is no record.
func restoredWhileTaking(w *world) {
	p, other := w.procs[0], w.procs[1]
	p.boot()
	w.await(time.Minute, p.holder.asksFor(term.ReadWorker))
	p.pause(time.Hour, false)
	w.until(w.now + 10*time.Millisecond)
	other.boot()
	w.await(time.Minute, other.holder.grants)
	w.until(w.now + w.around(2*time.Second))
	other.kill()
	w.restore(1, false)
	w.await(time.Minute, func() bool { return !w.cutOff })
	floor := w.begin(w.pools[0].floor).Sub(w.origin) // which is near when the first one continues: else it is refused
	w.until(floor - w.upTo(w.rules.Wait))
	p.resume()
	w.until(w.now + 20*time.Second)
	w.check.intervals()
}

// patient schedules have no faults but those of the scene, one worker, and a time to live that is longer
// than a quarantine.
func patient(s *setup) {
	brisk(s)
	r := &s.rules
	r.Reach, r.TTL, r.Wait, r.Look = 6*time.Second, 6*time.Second, 20*time.Second, time.Minute
	s.workers, s.procs, s.founded, s.known, s.unequal, s.faults = 1, 2, true, false, false, faults{}
	s.fast, s.issues = 2*time.Millisecond, 200*time.Millisecond
}

// late schedules are such with a short time to live.
func late(s *setup) {
	patient(s)
	s.rules.Reach, s.rules.TTL = time.Second, 2*time.Second
}

// skewed schedules are such with clocks that can be far apart.
func skewed(s *setup) {
	patient(s)
	s.rules.Skew = time.Second
}

// holds starts a process, which extends its grant for a while. It is paused when it has just done so
// again. holds returns how many writes there are then.
func (w *world) holds(p *process) (writes int) {
	p.boot()
	w.await(time.Minute, p.holder.grants)
	w.until(w.now + 3*time.Second + w.around(2*time.Second))
	n := len(w.store.log)
	w.await(time.Minute, func() bool { return len(w.store.log) > n })
	p.pause(time.Hour, false)
	return len(w.store.log)
}

// revives is a scene: a holder is paused for longer than its time to live, and another process takes the
// worker. The store forgets that, and the holder extends the record that it knows.
func revives(w *world) {
	p, other := w.procs[0], w.procs[1]
	p.async, other.async = false, false
	w.store.setClock(0)
	w.holds(p)
	w.store.async = true
	other.boot()
	w.await(time.Minute, other.holder.grants)
	w.until(w.now + w.around(2*time.Second))
	other.kill()
	w.store.rollBack(w.store.lastTaken(1))
	p.resume()
	w.until(w.now + 5*time.Second)
	w.check.intervals()
}

// markedMeanwhile is a scene: a process has read the pool's record, in which nobody says that the store can
// forget. Then somebody says so, and an operator releases the worker. The process takes it at once, while
// its holder is within its time to live. The store forgets the release, and what came after it.
func markedMeanwhile(w *world) {
	p, other, pool := w.procs[0], w.procs[1], w.pools[0]
	p.async, other.async = false, false
	w.store.setClock(0)
	writes := w.holds(p)
	worker := func() term.Record { return w.store.records[term.KeyWorker(pool.name, 0)].worker }
	other.boot()
	w.await(time.Minute, other.holder.asksFor(term.JoinPool))
	other.pause(time.Hour, false)
	w.until(w.now + 10*time.Millisecond)
	marked := w.store.record(pool).pool
	marked.Lossy = "seen by another process"
	w.store.write(pool.key, marked.Encode(), w.newVersion())
	w.store.async = true
	w.releaseWorker(pool, 0)
	w.await(time.Minute, func() bool { return worker().Owner == "" })
	other.resume()
	w.await(time.Minute, func() bool { return worker().Owner != "" })
	w.store.async = false // that process does not see it
	w.await(time.Second, other.holder.asksFor(term.ConfirmPool))
	w.store.async = true
	w.await(3*time.Second, other.holder.grants)
	w.store.rollBack(writes)
	p.resume()
	w.until(w.now + 5*time.Second)
	w.check.intervals()
}

// twoClocks is a scene: a holder writes its record by a store's clock that is behind by all that it may
// be. The store continues on a clock that is ahead by as much, and a process takes the worker. Its own
// clock was behind, and is set ahead then, so that its grant soon reaches beyond its quarantine. The store
// forgets that it has the worker, on the clock of before, and the holder extends its record.
func twoClocks(w *world) {
	p, other, skew := w.procs[0], w.procs[1], w.rules.Skew
	w.store.setClock(-skew)
	p.host.set(-skew, 0, false)
	other.host.set(-skew, 0, false)
	writes := w.holds(p)
	w.store.setClock(skew)
	other.boot()
	w.await(time.Minute, func() bool { return other.holder.p.Term.Phase == term.Holding })
	other.host.set(skew, 0, false)
	w.await(3*time.Second, other.holder.grants)
	w.store.setClock(-skew)
	w.store.rollBack(writes)
	p.resume()
	w.until(w.now + 5*time.Second)
	w.check.intervals()
}

// drifting schedules have clocks that can be far apart.
func drifting(s *setup) {
	staged(s)
	s.rules.Skew, s.procs, s.issues = time.Second, 1, time.Second
}

// drifts is a scene: a process is paused for hours. Its boot clock is fast by almost all that it may be,
// and its wall clock is set ahead meanwhile.
func drifts(w *world) {
	p := w.procs[0]
	w.store.setClock(0)
	p.host.set(w.rules.Skew, 0, false)
	p.host.stretch = 4.9e-4
	w.holds(p)
	p.host.set(time.Hour, 0, false)
	w.until(w.now + time.Hour/2 + w.upTo(time.Hour/2))
	p.resume()
	w.until(w.now + 20*time.Second)
	w.check.intervals()
}

// misled is a scene: a process's wall clock is an hour ahead, and stays so. The process's own clock must
// not follow it to where the store's clock lets no grant reach.
func misled(w *world) {
	p := w.procs[0]
	w.store.setClock(0)
	p.host.set(0, 0, false)
	p.boot()
	w.await(time.Minute, p.holder.grants)
	p.host.set(time.Hour, 0, false)
	w.until(w.now + 5*time.Minute)
	w.check.lives(p.holder)
}
