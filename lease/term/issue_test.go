package term_test

import (
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
)

// A generator issues ticks of one grant. What counts of an id here is its
// worker and its tick: a generator may use a tick many times, two never the
// same one.
type generator struct {
	p      *process
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

	wall time.Time // of setClock
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
	unfenced               // for a mutant: looks at the grant, then at the clock
)

func (w *world) newGenerator(p *process, grant firn.Grant) *generator {
	w.check.generators++
	g := &generator{
		p: p, life: p.life, id: w.check.generators, owner: p.s.Have.Owner, worker: grant.Worker,
		base: grant.Base, top: grant.Horizon, last: grant.Base, handed: grant.Base,
		manner: pick(w.rng, byClock, anywhere, anywhere),
	}
	switch {
	case w.mutant.unfenced:
		g.manner = unfenced
	case w.real:
		g.manner = really
	}
	if g.manner == really {
		borrow := p.rules.Borrow
		if borrow == 0 {
			borrow = -1 // 0 is the default
		}
		real, err := firn.NewGenerator(w.rules.Layout, grant, &firn.GeneratorOptions{Borrow: borrow, Now: g.monotonic})
		if err != nil {
			g.manner = byClock // a wall clock outside of the layout's life
		}
		g.real = real
	}
	g.setClock(p.now().Wall)
	w.check.generated(g)
	return g
}

// monotonic is Go's monotonic clock in the process.
func (g *generator) monotonic() time.Time {
	return g.p.w.origin.Add(g.p.w.now - g.p.slept)
}

func (g *generator) setClock(wall time.Time) {
	g.wall, g.mono = wall, g.p.w.now-g.p.slept
	if g.real != nil && !g.closed {
		g.real.SetClock(wall)
	}
}

func (g *generator) clock() time.Time { return g.wall.Add(g.p.w.now - g.p.slept - g.mono) }

func (g *generator) extend(horizon firn.Tick) {
	if g.closed {
		return
	}
	g.top = max(g.top, horizon)
	if g.real != nil {
		g.real.Extend(horizon)
	}
}

func (g *generator) close() firn.Tick {
	g.closed = true
	if g.real != nil {
		return g.real.Close()
	}
	return g.last
}

// end closes the generator for a Stop.
func (g *generator) end() firn.Tick {
	if g.p.w.mutant.openEnd { // and it goes on for a while
		return g.last
	}
	g.ended = !g.closed
	return g.close()
}

// wantIDs issues now and then.
func (p *process) wantIDs() {
	p.after(p.w.around(p.w.issues), func() {
		if p.gen != nil {
			for range 1 + p.w.rng.IntN(3) {
				p.gen.issue()
			}
		} else if p.begun {
			p.nudge() // a caller that waits for the lease
		}
		p.wantIDs()
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
	if t < g.last || t == g.base {
		g.p.w.fail("p%d: tick %d after %d, above %d", g.p.id, t, g.last, g.base)
	}
	g.last = max(g.last, t)
	w := g.p.w
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
	case g.life == g.p.life && g.p.paused:
		g.p.backlog = append(g.p.backlog, func() { g.handOut(t) })
	default:
		g.p.w.check.issued(g, t)
	}
}

func (g *generator) take() (firn.Tick, bool) {
	switch g.manner {
	case anywhere:
		return g.takeAnywhere()
	case really:
		return g.takeReally()
	case unfenced:
		return g.takeUnfenced()
	}
	l := g.p.w.rules.Layout
	now := g.clock()
	t := max(g.last, l.Tick(now), g.base+1)
	if l.Time(t).After(now.Add(g.p.rules.Borrow)) && t > g.last {
		return 0, false
	}
	if t > g.top {
		g.p.nudge()
		return 0, false
	}
	return t, true
}

// takeAnywhere takes any tick of the grant, rather one that hurts.
func (g *generator) takeAnywhere() (firn.Tick, bool) {
	w := g.p.w
	low := max(g.last, g.base+1)
	if low > g.top {
		g.p.nudge()
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
	id, err := g.real.Try()
	var spent *firn.HorizonError
	if errors.As(err, &spent) {
		g.p.nudge()
	}
	if err != nil {
		return 0, false
	}
	parts, err := g.p.w.rules.Layout.Decode(id)
	if err != nil || parts.Worker != g.worker || id <= g.id0 {
		g.p.w.fail("p%d: id %d after %d is %+v, %v", g.p.id, id, g.id0, parts, err)
	}
	g.id0 = id
	return parts.Tick, true
}

// takeUnfenced looks whether the grant is good now, and some time after reads
// the clock.
func (g *generator) takeUnfenced() (firn.Tick, bool) {
	w := g.p.w
	if w.tick(g.clock()) > g.top {
		return 0, false
	}
	g.p.after(w.around(w.rules.TTL/4), func() {
		if t := max(w.tick(g.clock()), g.base+1); t >= g.last {
			g.last = t
			w.check.issued(g, t)
		}
	})
	return 0, false
}

// A grantFile is what a process leaves for the one that is started in its place.
type grantFile struct {
	saved term.Saved
	mark  firn.Tick
	of    string // owner of the grant that it has
	use   bool
}

func (f *grantFile) void() { f.use, f.of = false, "" }

// adopt returns the grant to go on with.
func (f *grantFile) adopt(p *process) (v term.Saved, mark firn.Tick, ok bool) {
	r := &p.rules
	ok = f.use && !f.saved.Lossy && f.saved.Since <= p.host.boot() &&
		!(r.Choice == term.Insist && f.saved.Worker != r.Worker) &&
		r.Delay(f.mark, p.now().Wall) <= r.Wait
	return f.saved, f.mark, ok
}

// marked raises the mark, and returns the tick up to which may be issued.
func (f *grantFile) marked(p *process, g firn.Grant) firn.Tick {
	const ahead = time.Second
	saved, _ := p.s.Saved()
	if f.of != saved.Record.Owner {
		f.mark = g.Base
	}
	now, l := p.now().Wall, p.w.rules.Layout
	if due := min(l.Tick(now.Add(ahead/2)), g.Horizon); f.of == saved.Record.Owner && f.mark >= due {
		return f.mark
	}
	f.mark = max(min(l.Tick(now.Add(ahead)), g.Horizon), f.mark)
	f.saved, f.of, f.use = saved, saved.Record.Owner, true
	if p.w.mutant.lateMark {
		return g.Horizon
	}
	return f.mark
}
