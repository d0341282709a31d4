package term_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
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

// Where the store has not said yet which one it is, it is asked before the grant is extended: it may be a copy of
// the one that the grant is of.
func TestResumeAsksWhichStore(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Holding)
	x.pass(30 * time.Second) // an extension is due
	v, _ := a.s.Saved()
	b, asked := &actor{script: x, name: "a", rules: a.rules}, false
	b.s = term.Resume(b.seed(), b.name, v, x.tick(5*time.Second))
	for b.step(term.Begin{}); b.do.Op != term.Put; b.answer().is(term.Holding) {
		asked = asked || b.do.Op == term.Ask
	}
	if !asked {
		t.Error("it extends the grant of a store that has not said which one it is")
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
	x.workers(0, 1)
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
		if got := errors.As(b.s.Err, &clock); got != refused || got && clock.Ahead() != ahead {
			t.Errorf("%s ahead: %s, %v", ahead, b.s.Phase, b.s.Err)
		}
	}
}

// After a restore that was repaired the worker's record is an earlier one, or
// missing, and the floor is above the grant: the term is lost, and another one
// begins above the floor. Below the grant's horizon a floor repairs nothing.
func TestResumeAfterRestore(t *testing.T) {
	forgot := "store: pool pool has forgotten what it acknowledged: the record of our own worker "
	for name, tt := range map[string]struct {
		record *term.Record // what the store has, before an operator frees it
		below  firn.Tick    // the horizon, the floor
		phase  term.Phase
		text   string
	}{
		"an earlier one":                {&term.Record{Term: 3, Name: "a", Owner: "old", Horizon: 7, TTL: 10_000}, 0, term.Lost, "lease: worker 0 was taken away"},
		"none":                          {nil, 0, term.Lost, "lease: worker 0 was taken away"},
		"an earlier one, floor too low": {&term.Record{Term: 3, Name: "a", Owner: "old", Horizon: 7, TTL: 10_000}, 1, term.Forgotten, forgot + "went back to an earlier state"},
		"none, floor too low":           {nil, 1, term.Forgotten, forgot + "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScript(t)
			x.workers(0, 1)
			x.setWorker(0, term.Record{Term: 6, Name: "a", Horizon: 5})
			a := x.actor("a").until(term.Holding)
			horizon := a.s.Have.Horizon
			floor := horizon - tt.below
			x.forgetAll()
			x.write(term.KeyPool("pool"), pool("one", firn.Default(), floor).Encode())
			if tt.record != nil {
				x.setWorker(0, tt.record.Freed(floor))
			}
			b := a.resumed(x.tick(time.Second)).is(term.Holding)
			if g, ok := b.s.Grant(); !ok || g.Horizon != horizon {
				t.Errorf("%+v, not the grant of before, to %d", g, horizon)
			}
			b.until(tt.phase).fails(tt.phase, tt.text)
			if tt.phase != term.Lost {
				return
			}
			x.pass(time.Minute)
			next := x.actor("a")
			next.s = term.Start(next.seed(), "a", "one")
			next.step(next.begin()).until(term.Holding)
			if next.s.Base < floor {
				t.Errorf("base %d, below the floor %d", next.s.Base, floor)
			}
		})
	}
}
