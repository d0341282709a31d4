package term_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
)

// Stop may come in any phase, and while what is under way has any outcome.
func TestCloseInAnyPhase(t *testing.T) {
	for phase := term.Joining; phase <= term.Holding; phase++ {
		for _, outcome := range []string{"", "carried out", "lost", "carried out, unknown", "carried out later", "conflict"} {
			t.Run(fmt.Sprintf("%s %s", phase, outcome), func(t *testing.T) {
				x := newScript(t)
				if phase == term.Amending {
					x.unasked()
				}
				x.rules.LocalClock = true
				a := x.actor("a")
				if phase == term.Noting {
					a.rules.Choice = term.Fresh
				}
				if outcome == "" && phase != term.Seeking && phase != term.Holding {
					return // there is no sleep in it
				}
				a.until(phase)
				if outcome == "" && phase == term.Seeking {
					a.step(term.Unknown{Err: errAway})
				}
				for outcome != "" && a.do.Op == term.Sleep {
					a.answer()
				}
				late := a.interrupt(outcome)
				last := a.s.Base + 3
				a.step(term.Stop{Last: last})
				for range 3 {
					if !a.s.Over() {
						if _, ok := a.s.Grant(); ok {
							t.Fatal("granted after Stop")
						}
						a.answer()
					}
				}
				if late != nil { // a copy that arrives when all is over changes nothing
					late.perform()
				}
				for !a.s.Over() {
					a.answer()
				}
				a.closed(phase, outcome, last)
			})
		}
	}
}

// interrupt ends what is under way as a driver does that is told to stop: it
// tells what came of it, and does nothing of what is to be done next.
func (a *actor) interrupt(outcome string) (late *actor) {
	if a.do.Op == term.Sleep {
		return nil
	}
	first := *a
	var e term.Event = term.Unknown{Err: errAway}
	switch outcome {
	case "carried out":
		e = a.perform()
	case "carried out, unknown":
		a.perform()
	case "carried out later":
		late = &first
	case "conflict":
		if a.do.Op == term.Put {
			e = term.Conflict{}
		}
		if a.s.Phase == term.Holding { // an earlier copy of the same was carried out
			a.perform()
		}
	}
	a.step(e)
	return late
}

// closed checks what a term that was stopped has left.
func (a *actor) closed(phase term.Phase, outcome string, last firn.Tick) {
	a.Helper()
	a.is(term.Released)
	r := a.worker(a.s.Worker)
	if late := outcome == "carried out later" && phase == term.Taking; r.Owner != "" && !late {
		a.Errorf("%+v is not free", r)
	}
	if phase == term.Holding && r.Horizon != last {
		a.Errorf("released at %d, issued up to %d", r.Horizon, last)
	}
}

// A release is never below the base, nor above what was acknowledged.
func TestReleaseBounds(t *testing.T) {
	x := newScript(t)
	x.workers(0, 1)
	x.setWorker(0, term.Record{Term: 3, Name: "b", Horizon: x.tick(0)})
	for _, tt := range []struct{ last, want func(a *actor) firn.Tick }{
		{func(*actor) firn.Tick { return 0 }, func(a *actor) firn.Tick { return a.s.Base }},
		{func(a *actor) firn.Tick { return a.s.Base - 1 }, func(a *actor) firn.Tick { return a.s.Base }},
		{func(a *actor) firn.Tick { return a.s.Base }, func(a *actor) firn.Tick { return a.s.Base }},
		{func(a *actor) firn.Tick { return a.s.Base + 7 }, func(a *actor) firn.Tick { return a.s.Base + 7 }},
		{func(a *actor) firn.Tick { return a.s.Have.Horizon + 1 }, func(a *actor) firn.Tick { return a.s.Have.Horizon }},
	} {
		x.pass(time.Minute)
		a := x.actor("a").until(term.Holding)
		want := tt.want(a)
		a.step(term.Stop{Last: tt.last(a)}).is(term.Releasing).answer().is(term.Released)
		if r := x.worker(0); r.Horizon != want || r.Owner != "" || r.TTL != 0 || r.Term != a.s.Have.Term || r.Name != "a" {
			t.Errorf("%+v, want horizon %d", r, want)
		}
	}
}

// A floor that is above the record counts for the release, too.
func TestReleaseAboveFloor(t *testing.T) {
	x := newScript(t)
	floor := x.tick(3 * time.Second)
	x.write(term.KeyPool("pool"), pool("one", firn.Default(), floor).Encode())
	a := x.actor("a").until(term.Holding).step(term.Stop{}).answer().is(term.Released)
	if r := x.worker(a.s.Worker); r.Horizon != floor {
		t.Errorf("%+v, floor %d", r, floor)
	}
}

// The release waits for an extension that may have been carried out.
func TestReleaseAfterDoubt(t *testing.T) {
	x := newScript(t)
	a, put := doubt(x, false)
	a.step(term.Stop{Last: a.s.Base + 5}).does(term.Get, put.Key).answer().is(term.Releasing)
	late := *a
	late.do = put
	if _, ok := late.perform().(term.Wrote); !ok {
		t.Fatal("the late extension was not carried out")
	}
	a.answer().does(term.Get, put.Key).answer().is(term.Releasing).answer().is(term.Released)
	if r := x.worker(0); r.Owner != "" || r.Horizon != a.s.Base+5 {
		t.Errorf("%+v", r)
	}

	// The release itself in doubt, and its first copy late.
	x = newScript(t)
	a = x.actor("a").until(term.Holding).step(term.Stop{Last: 0})
	first := *a
	a.step(term.Unknown{Err: errAway}).answer().answer().does(term.Put, put.Key)
	first.perform()
	a.answer().answer().is(term.Released)

	// Somebody has taken the worker: there is nothing to give back.
	x = newScript(t)
	a = x.actor("a").until(term.Holding)
	x.setWorker(0, x.worker(0).Freed(0))
	a.step(term.Stop{}).answer().answer().fails(term.Lost, "lease: worker 0 was taken away")
}
