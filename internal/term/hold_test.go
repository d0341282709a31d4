package term_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// The first grant reaches 10 s ahead; each extension comes at a third of the
// reach and doubles it, up to W, and at most every Renew.
func TestRamp(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Holding)
	type step struct{ at, reach, ttl time.Duration }
	var got []step
	for range 8 {
		reach := x.rules.Layout.Time(a.s.Have.Horizon).Sub(x.instant()).Round(time.Millisecond)
		got = append(got, step{x.time.Round(time.Millisecond), reach, time.Duration(a.s.Have.TTL) * time.Millisecond})
		if d := a.s.Reach - reach; d < 0 || d > time.Millisecond || a.s.Since != x.time {
			t.Errorf("reach %s since %s", a.s.Reach, a.s.Since)
		}
		a.answer().answer()
	}
	s := time.Second
	third := 10 * s / 3
	want := []step{
		{0, 10 * s, 10 * s},
		{third, 20 * s, 20 * s},
		{third + 20*s/3, 40 * s, 30 * s},
		{third + 20*s/3 + 10*s, 80 * s, 30 * s},
		{third + 20*s/3 + 20*s, 160 * s, 30 * s},
		{third + 20*s/3 + 30*s, 300 * s, 30 * s},
		{third + 20*s/3 + 40*s, 300 * s, 30 * s},
		{third + 20*s/3 + 50*s, 300 * s, 30 * s},
	}
	for i, w := range want { // ticks are whole milliseconds
		if d := w.reach - got[i].reach; d > time.Millisecond || d < 0 || got[i].at != w.at.Round(time.Millisecond) || got[i].ttl != w.ttl {
			t.Errorf("%d: %v, want %v", i, got[i], w)
		}
	}
	if a.s.Have.Term != 1 {
		t.Errorf("an extension raised the term: %+v", a.s.Have)
	}
}

func TestShortOutage(t *testing.T) {
	x := newScript(t)
	x.rules.Outage = time.Second
	a := x.actor("a").until(term.Holding)
	if h := x.rules.Layout.Time(a.s.Have.Horizon); !h.Equal(start.Add(time.Second)) || a.s.Have.TTL != 10_000 {
		t.Errorf("%+v, horizon %s", a.s.Have, h)
	}
	if a.answer(); x.time != time.Second/3 {
		t.Errorf("extended after %s", x.time)
	}
}

// A clock that runs ahead is followed no further than the store's and the bound.
func TestClamp(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*script)
		most   time.Duration
	}{
		"clock":    {func(*script) {}, 5 * time.Second},
		"blind":    {func(x *script) { x.blind = true }, time.Minute},
		"embedded": {func(x *script) { x.rules.LocalClock = true }, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScript(t)
			tt.change(x)
			a := x.actor("a").until(term.Holding)
			a.ahead = time.Minute
			a.pending(term.Holding)
			// The two clocks may have come apart by a little.
			if h, most := a.sent().Horizon, x.tick(x.time+20*time.Second+tt.most); h > most || h < most-2 {
				t.Errorf("horizon %s at %s", x.rules.Layout.Time(h), x.instant())
			}
		})
	}
}

// A reading of the store's clock that took long to arrive, or that belongs to a
// write of long ago, does not stretch the clamp.
func TestClampAfterDoubt(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Holding).pending(term.Holding)
	a.perform() // carried out, and not acknowledged
	x.pass(time.Second)
	a.step(term.Unknown{Err: errAway})
	for range 20 {
		for a.do.Op == term.Sleep {
			a.answer()
		}
		x.pass(5 * time.Second)
		a.step(term.Unknown{Err: errAway})
	}
	a.ahead = time.Hour
	a.answer()
	e := a.perform()
	x.pass(3 * time.Second)
	a.step(e).pending(term.Holding)
	if h := a.sent().Horizon; h > x.tick(x.time+40*time.Second+5*time.Second) || h < x.tick(x.time+40*time.Second) {
		t.Errorf("horizon %s at %s", x.rules.Layout.Time(h), x.instant())
	}

	// So it is when a worker is taken after the pool's record took long.
	x = newScript(t)
	a = x.actor("b")
	a.ahead = 8 * time.Second
	a.step(a.begin())
	x.pass(4 * time.Second)
	a.answer().pending(term.Taking)
	if h := a.sent().Horizon; h > x.tick(x.time+15*time.Second) {
		t.Errorf("horizon %s at %s", x.rules.Layout.Time(h), x.instant())
	}
}

// Nor does one of before a pause, in which the boot clock gained as much as it can.
func TestClampAfterPause(t *testing.T) {
	const pause = 2 * time.Hour
	x := newScript(t)
	a := x.actor("a").until(term.Holding)
	held := a.s.Have.Horizon
	a.ahead = time.Minute
	x.pass(pause)
	a.pending(term.Holding)
	slow := x.instant().Add(-pause / 2000) // the store's clock says, if it does not run as fast
	if h := a.sent().Horizon; h <= held || x.rules.Layout.Time(h).Sub(slow) > 20*time.Second+x.rules.Skew {
		t.Errorf("horizon %s at %s", x.rules.Layout.Time(h), slow)
	}
}

// No more is granted than W ahead, even where a base lies ahead of the clock.
func TestBaseAhead(t *testing.T) {
	x := newScript(t)
	x.rules.Outage = time.Second
	x.workers(0, 1)
	x.setWorker(0, term.Record{Term: 1, Name: "b", Horizon: x.tick(5 * time.Second)})
	a := x.actor("a").until(term.Holding)
	for x.time < 8*time.Second {
		g, ok := a.s.Grant()
		if most := max(x.tick(x.time+time.Second), x.tick(5*time.Second)); g.Horizon > most {
			t.Fatalf("%s: granted up to %d, above %d", x.time, g.Horizon, most)
		}
		if want := x.time > 4500*time.Millisecond; want && !ok {
			t.Fatalf("%s: nothing is granted: %+v", x.time, g)
		}
		if g.Base != x.tick(5*time.Second) {
			t.Fatalf("%+v", g)
		}
		a.answer()
	}
}

// doubt brings an actor to an extension of unknown outcome.
func doubt(x *script, carriedOut bool) (*actor, term.Action) {
	a := x.actor("a").until(term.Holding).pending(term.Holding)
	put := a.do
	if carriedOut {
		a.perform()
	}
	a.step(term.Unknown{Err: errAway}).is(term.Holding)
	if !a.s.Degraded() || !errors.Is(a.s.Err, errAway) {
		x.Errorf("not degraded: %v", a.s.Err)
	}
	return a, put
}

func TestExtensionInDoubt(t *testing.T) {
	x := newScript(t)
	a, put := doubt(x, true)
	had := a.s.Have.Horizon
	a.answer().does(term.Get, put.Key).answer().is(term.Holding)
	if a.s.Have.Horizon <= had || a.s.Degraded() || a.s.Err != nil {
		t.Errorf("horizon %d, had %d, %v", a.s.Have.Horizon, had, a.s.Err)
	}
	a.pending(term.Holding).answer().is(term.Holding) // with the right version

	// Not carried out: it is repeated word for word, again and again.
	x = newScript(t)
	a, put = doubt(x, false)
	for range 3 {
		had := a.s.Have.Horizon
		a.answer().does(term.Get, put.Key).answer().does(term.Put, put.Key)
		if a.do.Key != put.Key || !slices.Equal(a.do.Value, put.Value) || a.do.Cond != put.Cond {
			t.Fatalf("%+v, not %+v", a.do, put)
		}
		if a.s.Have.Horizon != had {
			t.Fatal("a horizon that nobody acknowledged")
		}
		x.pass(time.Second)
		a.step(term.Unknown{Err: errAway})
	}
	a.answer().answer().answer().is(term.Holding)
	if a.s.Degraded() || a.s.Have != x.worker(a.s.Worker) {
		t.Errorf("%+v", a.s.Have)
	}
}

// The first copy arrives after the second was sent: the conflict is one's own
// success. Or it arrives after the second was acknowledged: nothing happens.
func TestLateFirstCopy(t *testing.T) {
	x := newScript(t)
	a, put := doubt(x, false)
	a.answer().answer().does(term.Put, put.Key)
	first := *a
	first.do = put
	first.perform()
	a.answer().does(term.Get, put.Key).answer().is(term.Holding)
	if a.s.Have != x.worker(a.s.Worker) {
		t.Errorf("%+v", a.s.Have)
	}
	a.pending(term.Holding).answer().is(term.Holding)
	if a.do.Op != term.Sleep {
		t.Errorf("%+v", a.do)
	}

	x = newScript(t)
	a, put = doubt(x, false)
	a.answer().answer().answer().is(term.Holding)
	first = *a
	first.do = put
	if _, ok := first.perform().(term.Conflict); !ok {
		t.Error("the first copy was carried out, too")
	}
}

// A conflict of the only copy is of somebody else's write, be that the same: a clone of the process has
// sent it.
func TestConflictOfOnlyCopy(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Holding).pending(term.Holding)
	a.perform()
	a.step(term.Conflict{}).does(term.Get, a.do.Key).answer().fails(term.Lost, "lease: worker 0 was taken by a")
}

func TestLost(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Holding)
	r := a.s.Have
	x.setWorker(a.s.Worker, term.Record{Term: r.Term + 1, Owner: "b", Name: "b:1", Horizon: r.Horizon + 10, TTL: 10_000})
	a.until(term.Lost).fails(term.Lost, "lease: worker 0 was taken by b:1")
	if _, ok := a.s.Grant(); ok {
		t.Error("granted")
	}

	// By an operator.
	x.workers(0, 2)
	a = x.actor("a2").until(term.Holding)
	x.setWorker(a.s.Worker, x.worker(a.s.Worker).Freed(0))
	a.until(term.Lost).fails(term.Lost, "lease: worker 1 was taken away")
	x.pass(20 * time.Second)
	if b := x.actor("a2").until(term.Holding); b.s.Worker != a.s.Worker || b.s.Base < a.s.Have.Horizon {
		t.Errorf("base %d, horizon was %d", b.s.Base, a.s.Have.Horizon)
	}

	// While an extension is in doubt.
	x = newScript(t)
	a, _ = doubt(x, false)
	r = x.worker(0)
	x.setWorker(0, term.Record{Term: r.Term + 1, Owner: "b", Name: "b", Horizon: r.Horizon + 10, TTL: 10_000})
	a.until(term.Lost)
}

// What a durable store can only have forgotten ends everything.
func TestOwnRecordForgotten(t *testing.T) {
	const what = "store: pool pool has forgotten what it acknowledged: the record of our own worker "
	for name, tt := range map[string]struct {
		forget func(*script, term.Record)
		text   string
	}{
		"missing": {func(x *script, _ term.Record) {
			x.forgetAll()
			x.write(term.KeyPool("pool"), pool("one", firn.Default(), 0).Encode())
		}, "is missing"},
		"an earlier one of our own": {func(x *script, r term.Record) {
			r.Horizon -= 1000
			x.setWorker(0, r)
		}, "went back to an earlier state"},
		"an earlier one of somebody else": {func(x *script, r term.Record) {
			x.setWorker(0, term.Record{Term: r.Term - 1, Owner: "b", Name: "b", Horizon: r.Horizon - 2000, TTL: 10_000})
		}, "went back to an earlier state"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScript(t)
			x.setWorker(0, term.Record{Term: 6, Name: "a", Horizon: 5})
			a := x.actor("a").until(term.Holding)
			tt.forget(x, a.s.Have)
			a.until(term.Forgotten).fails(term.Forgotten, what+tt.text)
			var forgot *store.ForgotError
			if !errors.As(a.s.Err, &forgot) {
				t.Errorf("%#v", a.s.Err)
			}
		})
	}
}

// The store may be away for as long as it likes: the grant stays what it was,
// and comes again by itself.
func TestStoreAwayWhileHolding(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Holding)
	for a.s.Reach < 5*time.Minute {
		a.answer()
	}
	g, _ := a.s.Grant()
	asked := 0
	for began := x.time; x.time < began+time.Hour; asked++ {
		for a.do.Op == term.Sleep {
			a.answer()
		}
		a.step(term.Unknown{Err: errAway}).is(term.Holding)
		if now, ok := a.s.Grant(); !ok || now != g {
			t.Fatalf("%+v, not %+v", now, g)
		}
	}
	if asked > 3600/2 {
		t.Errorf("asked %d times in an hour", asked)
	}
	back := x.time
	for g, _ = a.s.Grant(); g.Horizon < x.tick(x.time); g, _ = a.s.Grant() {
		a.answer()
	}
	if x.time > back+6*time.Second {
		t.Errorf("ids come again after %s", x.time-back)
	}
}

// Whoever wakes a sleeper early does not make it ask the store more often,
// unless the clock has passed the grant.
func TestEarlyWaking(t *testing.T) {
	x := newScript(t)
	x.workers(0, 1)
	a := x.actor("a").until(term.Holding)
	for a.do.Op != term.Sleep {
		a.answer()
	}
	b := x.actor("b").until(term.Seeking).answer()
	c := x.actor("c").step(x.begin()).step(term.Unknown{Err: errAway})
	for _, s := range []*actor{a, b, c} {
		do := s.do
		if s.step(term.Woke{}); do.Op != term.Sleep || s.do.Op != term.Sleep || s.do.Until != do.Until {
			t.Errorf("%s: %+v, then %+v", s.name, do, s.do)
		}
	}
	a.until(term.Holding)
	for a.do.Op != term.Sleep {
		a.answer()
	}
	a.ahead = time.Hour // a clock that was set right
	x.pass(time.Second)
	a.step(term.Woke{}).does(term.Put, a.do.Key)
}
