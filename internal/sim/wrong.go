package sim

import (
	"time"

	"github.com/firn-id/firn"
)

// The generators of mutants: what people write who have not thought of it.

// words are tick and sequence of a generator that has two words for them.
type words struct {
	tick firn.Tick
	seq  int64
}

// takeUnfenced looks whether the grant is good now, and some time after reads
// the clock.
func (g *generator) takeUnfenced() (firn.Tick, bool) {
	w := g.h.w
	if w.tick(g.clock()) > g.top {
		return 0, false
	}
	g.h.after(w.around(w.rules.TTL/4), func() {
		if t := max(w.tick(g.clock()), g.base+1); t >= g.last {
			g.last = t
			w.check.issued(g, t)
		}
	})
	return 0, false
}

// takeBackward takes what the clock says, be it less than before.
func (g *generator) takeBackward() (firn.Tick, bool) {
	return g.within(max(g.h.w.tick(g.clock()), g.base+1))
}

// takeOfTwo sets the tick, and some time after takes a sequence.
func (g *generator) takeOfTwo() (firn.Tick, bool) {
	w, l := g.h.w, g.h.rules.Layout
	t, ok := g.within(max(g.word.tick, l.Tick(g.clock()), g.base+1))
	if !ok {
		return 0, false
	}
	if t > g.word.tick {
		g.word = words{tick: t}
	}
	w.after(pick(w.rng, 0, 0, w.upTo(10*time.Millisecond), w.upTo(2*time.Second)), func() {
		id, err := l.Encode(firn.Parts{Tick: t, Worker: g.worker, Seq: g.word.seq})
		if err != nil {
			return // the sequence is used up
		}
		g.word.seq++
		w.check.named(g, id)
	})
	return 0, false
}

// takeRecklessly moves the word on with every call, also with those that it
// refuses, and looks at the grant alone.
func (g *generator) takeRecklessly() (firn.Tick, bool) {
	w, l := g.h.w, g.h.rules.Layout
	t := max(g.word.tick, l.Tick(g.clock()), g.base+1)
	if t > g.top { // callers try a thousand times a millisecond
		g.word.tick = t + firn.Tick(w.upTo(10*time.Second)/l.Unit())
	}
	return g.within(t)
}
