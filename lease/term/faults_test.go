package term_test

import (
	"time"

	"github.com/firn-id/firn/lease/term"
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
	remove  bool // an embedded store's file is removed
	files   bool // some processes have grant files
	choices bool // some want a fresh worker, or a certain one
}

// nextFault lets something befall the world, again and again.
func (w *world) nextFault() {
	w.after(w.around(w.every), func() {
		if !w.calm {
			w.fault()
			w.nextFault()
		}
	})
}

// fault lets one of the kinds that the schedule has strike a process, or all.
func (w *world) fault() {
	f := &w.faults
	p := w.procs[w.rng.IntN(len(w.procs))]
	var can []func()
	for _, kind := range []struct {
		has bool
		do  func()
	}{
		{f.pauses, func() { p.pause(w.span(), w.chance(0.5)) }},
		{f.kills, func() { w.restart(p, p.kill) }},
		{f.closes, func() { w.restart(p, p.close) }},
		{f.clocks, func() { p.host.step() }},
		{f.cuts, func() { w.cut(p) }},
		{f.release, func() { w.releaseWorker(w.rules.First + w.rng.Int64N(min(w.rules.Workers, 8))) }},
		{f.restore, func() { w.restore(w.store.snapshot()) }},
		{f.shift, w.shift},
		{f.forget, func() { w.failOver(w.store.snapshot()) }},
		{f.remove && w.chance(0.05), func() {
			w.logf("the store's file is removed")
			w.store.forgot = true
		}},
	} {
		if kind.has {
			can = append(can, kind.do)
		}
	}
	if len(can) > 0 {
		can[w.rng.IntN(len(can))]()
	}
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
		w.away = w.now + w.span()
		w.logf("the store is away for %s", w.away-w.now)
		return
	}
	p.apart = w.now + w.span()
	w.logf("p%d is cut off for %s", p.id, p.apart-w.now)
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
func (w *world) follow(p *process, do term.Action, e term.Event) {
	if _, ok := e.(term.Wrote); !ok || !w.known || w.calm {
		return
	}
	often := 0.08
	if p.s.Phase == term.Taking {
		often = 0.2
	}
	if _, ok := term.WorkerOf(w.rules.Pool, do.Key); !ok || !w.chance(often) {
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
				p.pause(w.span(), w.chance(0.5))
			}
		case 1:
			if f.kills && life == p.life {
				w.restart(p, p.kill)
			}
		case 2:
			if f.cuts {
				w.cut(p)
			}
		default:
			to := min(pick(w.rng, n-1, w.store.lastTaken(1), w.store.lastTaken(2), w.store.snapshot()), len(w.store.log))
			switch {
			case f.restore:
				w.restore(to)
			case f.forget:
				w.failOver(to)
				w.after(w.shortSpan()/4, w.procs[w.rng.IntN(len(w.procs))].boot)
			}
		}
	})
}

// failOver: the store goes on without its last writes, and on another host's
// clock. Nobody is told.
func (w *world) failOver(to int) {
	if w.kind == shifting {
		if !w.store.marked() || w.cutOff { // an operator repairs what the store is now
			return
		}
		to = max(to, w.store.firm)
		w.store.async = w.store.async && w.chance(0.5) // else it goes on alone
	}
	if w.unequal {
		to = max(to, 1)
	}
	w.store.forgot = true
	w.store.err = w.storeSkew()
	w.store.rollBack(to)
	if w.chance(0.5) {
		w.heal()
	}
}

// shift: a standby that lags is added, or taken away.
func (w *world) shift() {
	w.store.async = !w.store.async
	w.logf("the store can forget: %v", w.store.async)
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
	if w.kind.lossy() {
		w.store.err = 0
	}
	for _, h := range w.hosts {
		h.set(w.upTo(20*time.Millisecond)-10*time.Millisecond, 0, false)
	}
	for _, p := range w.procs {
		p.apart = 0
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
