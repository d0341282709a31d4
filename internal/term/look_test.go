package term_test

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/term"
)

// unmarkedScript has a lossy store, and a pool where nobody has seen it.
func unmarkedScript(t *testing.T) *script {
	x := newScript(t)
	x.durable = false
	return x
}

// Who sees that the store is lossy says so before it takes a worker.
func TestMarkBeforeTaking(t *testing.T) {
	x := unmarkedScript(t)
	a := x.actor("a").until(term.Amending).does(term.Put, "pool/pool")
	other := x.actor("b").until(term.Amending)
	a.answer().is(term.Joining).answer().is(term.Seeking)
	if p := x.pool(); p.Lossy != "2026-03-01T12:00:00Z a: test" || p.Outage != 300_000 || !a.s.Lossy {
		t.Errorf("%+v", p)
	}
	other.answer().is(term.Joining).until(term.Holding) // it was too late to mark it, and reads that it is
	if p := x.pool(); !strings.Contains(p.Lossy, " a: ") {
		t.Errorf("%+v", p)
	}
	// The mark is stuck, whatever is seen later, and by whom.
	x.durable = true
	c := x.actor("c").until(term.Holding)
	if want := x.tick(x.time + 310*time.Second); c.s.Base != want || !c.s.Lossy {
		t.Errorf("base %d, not %d; lossy %v", c.s.Base, want, c.s.Lossy)
	}
}

// A holder asks again as time goes by, and extends no more before it has said
// that the store is lossy.
func TestMarkWhileHolding(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Holding)
	x.durable = false
	for range 100 {
		if a.do.Op != term.Ask {
			a.answer()
		}
	}
	if a.do.Op != term.Ask {
		t.Fatal("it does not ask")
	}
	if x.time != time.Minute {
		t.Errorf("asked after %s", x.time)
	}
	x.pass(20 * time.Second)
	a.answer().does(term.Get, "pool/pool").answer().does(term.Put, "pool/pool")
	a.step(term.Unknown{Err: errAway}).does(term.Sleep, "").answer().does(term.Get, "pool/pool")
	if !a.s.Degraded() {
		t.Error("not degraded")
	}
	a.answer().does(term.Put, "pool/pool").answer().does(term.Get, "pool/pool").answer()
	if a.do.Op != term.Put || a.do.Cond.Within != 30*time.Second || a.s.Degraded() {
		t.Fatalf("%+v", a.do)
	}
	if p := x.pool(); p.Lossy == "" {
		t.Errorf("%+v", p)
	}
	a.answer().is(term.Holding)
	if x.durable = true; a.s.Why() != "test" {
		t.Error(a.s.Why())
	}
	for asked := 0; asked < 2; a.answer() { // it is not asked every time
		if a.do.Op == term.Ask {
			asked++
		}
		if a.do.Op == term.Put && a.do.Cond.Within == 0 {
			t.Fatal("the rules for a store that forgets hold no more")
		}
	}
}

// Somebody marks the pool while a worker is taken: it was chosen by rules that
// do not hold.
func TestMarkedWhileTaking(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Confirming)
	p := x.pool()
	p.Lossy = "somebody"
	x.write(term.KeyPool("pool"), p.Encode())
	a.answer().fails(term.Lost, "lease: worker 0 is lost: another process has found that the store is lossy")
}

// A restore comes while a worker is taken, and then somebody who needs less: others
// would not wait for as long as the grant reaches.
func TestSmallerOutageWhileTaking(t *testing.T) {
	for _, tt := range []struct {
		outage time.Duration
		keeps  bool
	}{{0, true} /* 3 s, as created */, {time.Second, false}, {3 * time.Second, true}} {
		x := newLossyScript(t)
		a := x.actor("a").until(term.Confirming)
		p := x.pool().Raised(0, "", "")
		p.Lossy, p.Outage = "somebody", tt.outage.Milliseconds()
		x.write(term.KeyPool("pool"), p.Encode())
		if a.answer(); tt.keeps {
			a.answer().is(term.Holding)
		} else {
			a.fails(term.Lost, "lease: worker 0 is lost: the store was recovered, and the pool's outage budget is smaller now")
		}
	}
}

// An acknowledgement that comes after the time to live counts when nobody has
// seen, after it, that the store is lossy.
func TestLateAcknowledgementOfStrict(t *testing.T) {
	for _, marked := range []bool{false, true} {
		x := newScript(t)
		a := x.actor("a").until(term.Holding).pending(term.Holding)
		had := a.s.Have
		a.step(term.Unknown{Err: errAway})
		x.pass(10 * time.Second)
		for a.do.Op != term.Put {
			a.answer()
		}
		if marked {
			p := x.pool()
			p.Lossy = "somebody"
			x.write(term.KeyPool("pool"), p.Encode())
		}
		a.answer().does(term.Get, "pool/pool")
		if a.s.Have != had {
			t.Fatal("it counts before the pool was read")
		}
		a.step(term.Unknown{Err: errAway}).answer().does(term.Get, "pool/pool")
		if stopped := *a; !marked { // the release is refused, and then by the version that the store has
			stopped.step(term.Stop{}).does(term.Put, "pool/pool/worker/0").answer()
			stopped.does(term.Get, "pool/pool/worker/0").answer().does(term.Put, "pool/pool/worker/0")
			if v := x.read(stopped.do.Key).Version; stopped.do.Cond.Version != v {
				t.Errorf("released by version %s, not %s", stopped.do.Cond.Version, v)
			}
		}
		if a.answer(); marked {
			a.fails(term.Lost, "lease: worker 0 was not extended in time")
		} else if a.is(term.Holding); a.s.Have == had || a.s.Degraded() {
			t.Errorf("%+v", a.s)
		}
	}
}

// Nobody's grant reaches further than the pool's record says, which is raised
// first; on a lossy store not at all.
func TestOutageOfThePool(t *testing.T) {
	x := newScript(t)
	long := x.pool()
	long.Outage, long.Limit = 60_000, (10 * time.Minute).Milliseconds()
	x.write(term.KeyPool("pool"), long.Encode())
	a := x.actor("a")
	a.rules.Outage = 20 * time.Minute // the pool's limit is 10
	a.until(term.Amending).does(term.Put, "pool/pool").until(term.Holding)
	if p := x.pool(); p.Outage != 600_000 {
		t.Errorf("%+v", p)
	}
	for a.s.Reach < 10*time.Minute {
		a.answer()
	}
	b := x.actor("b") // who needs less leaves it
	b.rules.Outage = time.Minute
	if b.until(term.Holding); x.pool().Outage != 600_000 || b.rules.Budget(b.s.Pool, false) != time.Minute {
		t.Errorf("%+v", x.pool())
	}

	// A restore that came while a worker was taken has forgotten the budget.
	c := x.actor("c").until(term.Confirming)
	p := x.pool().Raised(0, "", "")
	p.Limit = 0
	x.write(term.KeyPool("pool"), p.Encode())
	c.answer().answer().is(term.Holding).does(term.Get, "pool/pool").until(term.Holding).answer().answer().answer()
	if x.pool().Outage != 300_000 {
		t.Errorf("%+v", x.pool())
	}

	x = newLossyScript(t)
	d := x.actor("d")
	d.rules.Outage = 10 * time.Minute
	d.until(term.Holding)
	for range 20 {
		if d.answer(); d.s.Reach > 3*time.Second {
			t.Fatalf("reaches %s", d.s.Reach)
		}
	}
	if p := x.pool(); p.Outage != 3000 {
		t.Errorf("%+v", p)
	}
}

// A store that does not say what it promises, but keeps what it is given: the
// lease goes on, and says that all is not well.
func TestPromiseFails(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Holding)
	asked, extended := 0, 0
	for x.time < 10*time.Minute {
		switch a.do.Op {
		case term.Ask:
			asked++
			a.step(term.Unknown{Err: errAway})
			continue
		case term.Put:
			extended++
		}
		if a.answer().is(term.Holding); asked > 0 && (!a.s.Degraded() || a.s.Unseen() != errAway || a.s.Fails > 0) {
			t.Fatalf("%s: %+v", x.time, a.s)
		}
	}
	if asked < 10 || asked > 40 || extended < 60 {
		t.Errorf("asked %d times, extended %d times", asked, extended)
	}
	for a.s.Degraded() {
		a.answer()
	}
	if x.time > 11*time.Minute {
		t.Errorf("well again after %s", x.time)
	}
	// A start has nothing to go by.
	b := x.actor("b").step(term.Begin{}).does(term.Ask, "")
	for !b.s.Over() {
		if b.do.Op == term.Ask {
			b.step(term.Unknown{Err: errAway})
			continue
		}
		b.answer()
	}
	b.fails(term.Refused, "lease: every request to the store failed for 5s: away; check that the store runs and that this host reaches it, and call again")
}
