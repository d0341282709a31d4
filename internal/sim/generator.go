package sim

import (
	"errors"
	"time"

	"github.com/firn-id/firn"
)

// A generator issues ticks of one grant. What counts of an id is its worker and
// its tick: a generator may use a tick many times, two never the same one. Of a
// real one whole ids are looked at, too.
type generator struct {
	h      *holder
	life   int // of the process
	killed bool
	id     int
	owner  string
	worker int64
	base   firn.Tick // exclusive
	top    firn.Tick // as acknowledged
	last   firn.Tick // highest taken
	handed firn.Tick // highest that somebody has got
	closed bool
	ended  bool // by a Stop: nothing above last was issued, nor will be
	manner manner

	wall time.Time // of SetClock
	mono time.Duration
	real *firn.Generator
	id0  firn.ID // the last one that real gave
}

// A manner of issuing.
type manner int

const (
	byClock  manner = iota // what the clock says, as a generator does
	anywhere               // any tick of the grant at any time: the rules promise that it does no harm
	really                 // by a firn.Generator
	foreign                // what the system's clock says, as a program does that a worker is held for
)

func newGenerator(h *holder, grant firn.Grant, now time.Time) *generator {
	w := h.w
	w.total.Grants++
	g := &generator{
		h: h, life: h.life, id: w.total.Grants, owner: h.p.Term.Have.Owner, worker: grant.Worker,
		base: grant.Base, top: grant.Horizon, last: grant.Base, handed: grant.Base,
		manner: pick(w.rng, byClock, anywhere, anywhere, really),
	}
	switch {
	case h.foreign:
		g.manner = foreign
	case w.faults.clones:
		g.manner = byClock
	}
	if g.manner == really {
		borrow := h.rules.Borrow
		if borrow == 0 {
			borrow = -1 // 0 is the default
		}
		real, err := firn.NewGenerator(h.rules.Layout, grant, &firn.GeneratorOptions{Borrow: borrow, Start: now, Now: g.monotonic})
		if err != nil {
			w.fail(misstep, "p%d: a generator that cannot be: %v", h.id, err)
		}
		g.real = real
	}
	g.SetClock(now)
	w.check.all = append(w.check.all, g)
	return g
}

// monotonic is Go's monotonic clock in the process.
func (g *generator) monotonic() time.Time {
	return g.h.w.origin.Add(g.h.w.now - g.h.slept)
}

func (g *generator) SetClock(wall time.Time) {
	g.wall, g.mono = wall, g.h.w.now-g.h.slept
	if g.real != nil && !g.closed {
		g.real.SetClock(wall)
	}
}

func (g *generator) clock() time.Time { return g.wall.Add(g.h.w.now - g.h.slept - g.mono) }

func (g *generator) Extend(horizon firn.Tick) {
	if g.closed {
		return
	}
	g.top = max(g.top, horizon)
	if g.real != nil {
		g.real.Extend(horizon)
	}
}

// Close closes the generator for good: for a Stop, or because the term is over.
func (g *generator) Close() firn.Tick {
	g.ended = !g.h.p.Term.Over() && !g.closed || g.ended
	g.closed = true
	switch {
	case g.real != nil:
		return g.real.Close()
	case g.manner == foreign: // it has issued nothing by itself
		return g.base
	}
	return g.last
}

// until is the highest tick that a generator may have issued.
func (g *generator) until() firn.Tick {
	if g.ended {
		return g.last
	}
	return max(g.top, g.base)
}

// wantIDs issues now and then.
func (h *holder) wantIDs() {
	h.after(h.w.around(h.w.issues), func() {
		if h.gen != nil && !h.gen.closed {
			for range 1 + h.w.rng.IntN(3) {
				h.gen.issue()
			}
		} else if h.p.Begun {
			h.nudge() // a caller that waits for the lease
		}
		h.wantIDs()
	})
}

// issue takes a tick, and hands it out at once or after a pause.
func (g *generator) issue() {
	if g.closed {
		return
	}
	t, ok := g.take()
	if !ok {
		return
	}
	w := g.h.w
	if t < g.last || t == g.base {
		w.fail(order, "p%d: tick %d after %d, above %d", g.h.id, t, g.last, g.base)
	}
	g.last = max(g.last, t)
	w.check.taken(g, t)
	if w.chance(0.85) {
		w.check.issued(g, t)
		return
	}
	// A goroutine is held up here while the keeper and everybody else go on.
	w.after(pick(w.rng, w.around(time.Second), w.around(w.rules.TTL)), func() { g.handOut(t) })
}

// handOut gives somebody a tick that was taken some time ago. A term that is
// over does not keep it from that, only a kill.
func (g *generator) handOut(t firn.Tick) {
	switch {
	case g.killed:
	case g.life == g.h.life && g.h.paused:
		g.h.backlog = append(g.h.backlog, func() { g.handOut(t) })
	default:
		g.h.w.check.issued(g, t)
	}
}

func (g *generator) take() (firn.Tick, bool) {
	switch g.manner {
	case anywhere:
		return g.takeAnywhere()
	case foreign:
		return g.takeForeign()
	case really:
		return g.takeReally()
	}
	l := g.h.rules.Layout
	now := g.clock()
	t := max(g.last, l.Tick(now), g.base+1)
	if l.Time(t).After(now.Add(g.h.rules.Borrow)) && t > g.last {
		return 0, false
	}
	return g.within(t)
}

// takeForeign takes the tick of the system's clock. The program starts once that is above what
// earlier holders may have issued, and is stopped at the end of the grant.
func (g *generator) takeForeign() (firn.Tick, bool) {
	t := max(g.last, g.h.rules.Layout.Tick(g.h.host.wall()))
	return t, t > g.base && t <= g.top
}

// within refuses what is not granted.
func (g *generator) within(t firn.Tick) (firn.Tick, bool) {
	if t > g.top {
		g.h.nudge()
		return 0, false
	}
	return t, true
}

// takeAnywhere takes any tick of the grant, rather one that hurts.
func (g *generator) takeAnywhere() (firn.Tick, bool) {
	w := g.h.w
	low := max(g.last, g.base+1)
	if low > g.top {
		g.h.nudge()
		return 0, false
	}
	t := low
	switch w.rng.IntN(8) {
	case 0:
		t = g.top
	case 1, 2:
		t = w.tick(w.instant())
	case 3:
		t += firn.Tick(w.rng.Int64N(int64(g.top-low) + 1))
	case 4, 5, 6: // one that somebody else has issued
		if of := w.check.ticks[g.worker]; len(of) > 0 {
			t = of[w.rng.IntN(len(of))]
		}
	}
	return min(max(t, low), g.top), true
}

func (g *generator) takeReally() (firn.Tick, bool) {
	w := g.h.w
	id, err := g.real.Try()
	var spent *firn.HorizonError
	if errors.As(err, &spent) {
		g.h.nudge()
	}
	if err != nil {
		return 0, false
	}
	parts, err := g.h.rules.Layout.Decode(id)
	switch {
	case err != nil || parts.Worker != g.worker:
		w.fail(outside, "p%d: id %d is %+v, %v", g.h.id, id, parts, err)
	case id <= g.id0:
		w.fail(order, "p%d: id %d after %d", g.h.id, id, g.id0)
	}
	g.id0 = id
	return parts.Tick, true
}
