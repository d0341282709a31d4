package term_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
)

// A new holder on a lossy store issues nothing before its clock, read
// after the acknowledgement, has passed what a forgotten grant may reach.
func TestQuarantine(t *testing.T) {
	x := newLossyScript(t)
	if q := x.rules.Quarantine(x.pool()); q != 13*time.Second {
		t.Errorf("quarantine %s", q)
	}
	a := x.actor("a").until(term.Confirming).answer()
	e := a.perform()
	x.pass(4 * time.Second)
	a.step(e).is(term.Holding)
	if want := x.tick(17 * time.Second); a.s.Base != want {
		t.Errorf("base %d, want %d", a.s.Base, want)
	}

	// It is counted from when the write is found carried out, too.
	a = x.actor("b").pending(term.Taking)
	a.perform()
	x.pass(2 * time.Second)
	a.step(term.Unknown{Err: errAway}).answer()
	at := x.time
	if a.answer().is(term.Confirming).answer().answer().is(term.Holding); a.s.Base != x.tick(at+13*time.Second) {
		t.Errorf("base %d, want %d", a.s.Base, x.tick(at+13*time.Second))
	}
	for a.until(term.Holding); x.time < at+20*time.Second; a.answer() {
		if g, ok := a.s.Grant(); ok && x.time < at+10*time.Second || g.Horizon > x.tick(x.time+3*time.Second) {
			t.Fatalf("%s: %+v %v", x.time-at, g, ok)
		}
		if a.do.Op == term.Put && a.do.Cond.Within != 10*time.Second {
			t.Fatalf("%+v", a.do)
		}
	}
	if _, ok := a.s.Grant(); !ok {
		t.Error("nothing is granted")
	}
}

// Where a tick is longer than one waits, a new holder may have to wait for the
// next one: so it says.
func TestQuarantineOfALongTick(t *testing.T) {
	x := newLossyScript(t)
	x.rules.Layout = firn.MustLayout("time:20@1h,worker:10,seq:33;epoch=2025-01-01T00:00:00Z")
	x.write(term.KeyPool("pool"), lossyPool(x.rules.Layout).Encode())
	x.pass(10 * time.Minute)
	x.actor("a").until(term.Refused).fails(term.Refused,
		`lease: none of the 1024 workers of pool "pool" is free; worker 0 has issued ahead of this clock and falls free in 50m0s; call again later, or set a longer Options.Wait; or give the pool more workers by "firn pool set"`)
	x.pass(49*time.Minute + 43*time.Second)
	x.actor("b").until(term.Holding)
}

// An acknowledgement that comes after the time to live is not used.
func TestLateAcknowledgement(t *testing.T) {
	for late, over := range map[time.Duration]bool{0: false, 1: true} {
		x := newLossyScript(t)
		a := x.actor("a").until(term.Holding).pending(term.Holding)
		had := a.s.Have
		e := a.perform()
		x.time = a.s.Since + 10*time.Second + late
		if a.step(e); a.s.Over() != over || over != (a.s.Have == had) {
			t.Errorf("%s late: %s, %+v", late, a.s.Phase, a.s.Have)
		}
		if over {
			a.fails(term.Lost, "lease: worker 0 was not extended in time")
		}
	}

	// The store refuses what comes too late.
	x := newLossyScript(t)
	a := x.actor("a").until(term.Holding).pending(term.Holding)
	x.pass(20 * time.Second)
	a.answer().is(term.Holding).answer().fails(term.Lost, "lease: worker 0 was not extended in time")
}

// A lossy store's forgetting is to be expected: only a pool that is gone ends
// everything.
func TestOwnRecordForgottenByLossy(t *testing.T) {
	for name, forget := range map[string]func(*script, term.Record){
		"missing": func(x *script, _ term.Record) {
			x.forgetAll()
			x.write(term.KeyPool("pool"), lossyPool(firn.Default()).Encode())
		},
		"an earlier one of our own": func(x *script, r term.Record) {
			r.Horizon -= 1000
			x.setWorker(0, r)
		},
		"one like it": func(x *script, r term.Record) { x.setWorker(0, r) },
		"an earlier one of somebody else": func(x *script, r term.Record) {
			x.setWorker(0, term.Record{Term: r.Term - 1, Owner: "b", Name: "b", Horizon: r.Horizon - 2000, TTL: 10_000})
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newLossyScript(t)
			x.setWorker(0, term.Record{Term: 6, Name: "a", Horizon: 5})
			a := x.actor("a").until(term.Holding)
			forget(x, a.s.Have)
			a.until(term.Lost)
		})
	}

	x := newLossyScript(t)
	a := x.actor("a").until(term.Holding)
	x.forgetAll()
	a.until(term.Lost)
	next := x.actor("a")
	next.s = term.Start(next.seed(), "a", a.s.Pool.ID)
	next.until(term.Forgotten)
}

// A record like the own one, while an extension is in doubt, may be what the store has brought back.
func TestLikeOwnRecordOfLossy(t *testing.T) {
	x := newLossyScript(t)
	a := x.actor("a").pending(term.Holding)
	a.step(term.Unknown{Err: errAway})
	x.setWorker(0, a.s.Have)
	for a.do.Op != term.Get {
		a.answer()
	}
	a.answer().fails(term.Lost, "lease: worker 0 was taken by a")
}

// Two readings of a lossy store's clock may be of two hosts: who takes over
// waits until the holder is late by any clock.
func TestLossyTakeover(t *testing.T) {
	for name, owner := range map[string]string{"dead": "dead", "released by an operator": ""} {
		t.Run(name, func(t *testing.T) {
			x := newLossyScript(t)
			x.workers(0, 1)
			x.rules.Wait = 100 * time.Second
			r := term.Record{Term: 1, Owner: "dead", Name: "dead", Horizon: x.tick(time.Second), TTL: 30_000}
			x.setWorker(0, r)
			if owner == "" {
				x.setWorker(0, r.Freed(0))
			}
			x.pass(20 * time.Second) // before anybody looks
			x.actor("a").until(term.Holding)
			if x.time < 40*time.Second || x.time > 42*time.Second {
				t.Errorf("taken after %s", x.time)
			}
		})
	}

	// On a durable store nothing rests on it.
	x := newScript(t)
	x.workers(0, 1)
	x.setWorker(0, term.Record{Term: 1, Owner: "dead", Name: "dead", Horizon: x.tick(time.Second), TTL: 30_000}.Freed(0))
	if x.actor("a").until(term.Holding); x.time > time.Second {
		t.Errorf("taken after %s", x.time)
	}
}

// A holder's extension is in time for as long as its record says, to the end: nobody takes the worker then.
func TestLossyTakeoverToTheNanosecond(t *testing.T) {
	x := newLossyScript(t)
	x.workers(0, 1)
	x.rules.Wait = 100 * time.Second
	x.setWorker(0, term.Record{Term: 1, Owner: "dead", Name: "dead", Horizon: x.tick(time.Second), TTL: 30_000})
	a := x.actor("a").until(term.Seeking)
	last := x.time + 30*time.Second
	for a.do.Op != term.Sleep {
		a.answer()
	}
	x.time = last
	a.step(term.Woke{}).until(term.Seeking).answer()
	if a.do.For == term.TakeWorker {
		t.Error("taken at the last instant")
	}
}

// What a new holder waits for on a lossy store does not rest on a write of a
// member, which the store may lose: members of a pool without one wait for what any of
// them may have been granted, whatever budgets they want.
func TestUnequalBudgets(t *testing.T) {
	for _, tt := range []struct {
		said, want time.Duration // when the pool was created; the longest budget
	}{
		{0, 3 * time.Second},
		{10 * time.Second, 10 * time.Second},
		{5 * time.Minute, 5 * time.Minute},
	} {
		x := newLossyScript(t)
		workers := term.Range{Last: 15}
		created, err := term.NewPool("new", firn.Default(), workers, tt.said).Use(workers, firn.Default())
		if err != nil {
			t.Fatal(err)
		}
		x.write(term.KeyPool("pool"), created.Encode())
		a := x.actor("a")
		a.rules.Outage = 20 * time.Minute
		for a.until(term.Holding); a.s.Reach < tt.want && x.time < time.Hour; a.answer() {
		}
		x.write(term.KeyPool("pool"), created.Encode()) // it is as it was created
		b := x.actor("b")
		b.rules.Outage = time.Second
		b.until(term.Confirming).answer().answer().is(term.Holding)
		if least := x.tick(x.time + a.s.Reach + 10*time.Second); a.s.Reach != tt.want || b.s.Base != least {
			t.Errorf("created with %s: a grant reached %s, and another member waits until %d, not %d", tt.said, a.s.Reach, b.s.Base, least)
		}
	}
}
