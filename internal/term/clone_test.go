package term_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/internal/term"
)

// clone is the same process with the same memory, as in a virtual machine that is cloned.
func (a *actor) clone() *actor {
	b := *a
	return &b
}

// Of two clones the one whose extension comes second loses the worker, be both extensions the same
// or not.
func TestClone(t *testing.T) {
	for name, later := range map[string]time.Duration{"the same extension": 0, "another extension": time.Second} {
		t.Run(name, func(t *testing.T) {
			x := newScript(t)
			a := x.actor("a").until(term.Holding)
			b := a.clone()
			a.pending(term.Holding).answer().is(term.Holding)
			x.time = a.s.Since + later
			b.pending(term.Holding)
			if same := b.sent() == x.worker(0); same != (later == 0) {
				t.Fatalf("%+v beside %+v", b.sent(), x.worker(0))
			}
			b.until(term.Lost)
			for range 3 {
				a.pending(term.Holding).answer().is(term.Holding)
			}
			if g, ok := b.s.Grant(); ok {
				t.Errorf("%+v is granted to the clone that has lost", g)
			}
		})
	}
}

// An extension that was under way when they were cloned counts for both: neither knows what came of
// it. The next one decides.
func TestCloneWhileExtending(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Holding).pending(term.Holding)
	b := a.clone()
	a.answer().is(term.Holding)
	b.step(term.Unknown{}).answer().answer().is(term.Holding)
	if b.s.Have != a.s.Have {
		t.Fatalf("%+v and %+v", a.s.Have, b.s.Have)
	}
	a.pending(term.Holding).answer().is(term.Holding)
	x.pass(time.Second)
	b.until(term.Lost)
}
