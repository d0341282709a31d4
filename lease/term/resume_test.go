package term_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
)

// resumed is an actor that goes on with what another one has left.
func (a *actor) resumed(mark firn.Tick) *actor {
	a.Helper()
	v, ok := a.s.Saved()
	if !ok {
		a.Fatal("there is nothing to go on with")
	}
	b := &actor{script: a.script, name: a.name, rules: a.rules}
	b.s = term.Resume(b.seed(), b.name, v, mark)
	return b.step(b.begin())
}

// A process that goes on with the grant of one that died issues above its mark,
// and extends the record as its own.
func TestResume(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Holding)
	mark := x.tick(3 * time.Second)
	x.pass(2 * time.Second)
	b := a.resumed(mark).is(term.Holding)
	g, ok := b.s.Grant()
	if want := (firn.Grant{Worker: a.s.Worker, Base: mark, Horizon: a.s.Have.Horizon}); !ok || g != want {
		t.Errorf("%+v, not %+v", g, want)
	}
	b.pending(term.Holding).answer().is(term.Holding)
	if r := x.worker(0); r.Term != 1 || r.Owner != a.s.Have.Owner || r.Horizon != b.s.Have.Horizon || r.Horizon <= g.Horizon {
		t.Errorf("%+v", r)
	}
	b.step(term.Stop{}).answer().is(term.Released)
	if r := x.worker(0); r.Horizon != mark {
		t.Errorf("%+v, not below %d", r, mark)
	}
}

// An extension of the one that died may have been carried out, or may be yet.
func TestResumeAfterExtension(t *testing.T) {
	for _, late := range []bool{false, true} {
		x := newScript(t)
		a := x.actor("a").until(term.Holding).pending(term.Holding)
		if !late {
			a.perform()
		}
		b := a.resumed(x.tick(5 * time.Second)).pending(term.Holding)
		if late {
			a.perform()
		}
		b.answer().is(term.Holding).answer().is(term.Holding)
		if b.s.Have != x.worker(0) || b.s.Base != x.tick(5*time.Second) {
			t.Errorf("%+v", b.s.Have)
		}
		b.pending(term.Holding).answer().is(term.Holding)
	}
}

// The worker may be somebody else's by then: what was granted is good, and no more.
func TestResumeAfterTakeover(t *testing.T) {
	x := newScript(t)
	x.rules.Workers = 1
	a := x.actor("a").until(term.Holding)
	x.pass(12 * time.Second)
	other := x.actor("b").until(term.Holding)
	b := a.resumed(x.tick(5 * time.Second)).is(term.Holding)
	if g, ok := b.s.Grant(); !ok || g.Horizon > other.s.Base {
		t.Errorf("%+v, the other starts above %d", g, other.s.Base)
	}
	b.until(term.Lost).fails(term.Lost, "lease: worker 0 was taken by b")
}

// A clock that was set so far ahead that nothing could be issued by it.
func TestResumeWithClockAhead(t *testing.T) {
	for ahead, refused := range map[time.Duration]bool{4 * time.Minute: false, 306 * time.Second: true, time.Hour: true} {
		x := newScript(t)
		a := x.actor("a").until(term.Holding)
		a.ahead = ahead
		b := &actor{script: x, name: "a", rules: a.rules, ahead: ahead}
		v, _ := a.s.Saved()
		b.s = term.Resume(b.seed(), "a", v, x.tick(time.Second))
		b.step(b.begin())
		var clock *term.ClockError
		if got := errors.As(b.s.Err, &clock); got != refused || got && clock.Ahead != ahead {
			t.Errorf("%s ahead: %s, %v", ahead, b.s.Phase, b.s.Err)
		}
	}
}
