package term_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// forgetAll makes the store a new one.
func (x *script) forgetAll() { x.store.Restore(memory.Snapshot{}) }

func (x *script) pool() term.Pool {
	x.Helper()
	p, err := term.ReadPool(x.read(term.KeyPool("pool")))
	if err != nil {
		x.Fatal(err)
	}
	return p
}

// A pool that is missing, or not created yet, is never created by a member.
func TestMissingPool(t *testing.T) {
	for _, embedded := range []bool{false, true} {
		x := newScript(t)
		x.forgetAll()
		x.rules.LocalClock = embedded
		x.actor("a").until(term.Refused).fails(term.Refused, `lease: the store has no pool "pool": if your other programs use another store, open that one; if the pool never existed, run once: firn pool create pool --store URL; if you are not sure: firn pool ensure pool --store URL (add --outage if any process of the pool had an outage budget of more than 5 min)`)

		p := term.NewPool("two", firn.Default(), term.Range{Last: 15}, time.Minute)
		x.write(term.KeyPool("pool"), p.Encode())
		a := x.actor("a").until(term.Refused).fails(term.Refused, `lease: pool "pool" is not created yet: somebody is creating it, or was interrupted; call again in a minute, and if nobody is creating it, run once: firn pool ensure pool --store URL (add --outage if any process of the pool had an outage budget of more than 5 min)`)
		var missing *term.MissingPoolError
		if !errors.As(a.s.Err, &missing) || !missing.Creating {
			t.Errorf("%#v", a.s.Err)
		}
		x.write(term.KeyPool("pool"), p.Void().Encode())
		x.actor("a").until(term.Refused).fails(term.Refused, `lease: the store has no pool "pool": if your other programs use another store, open that one; if the pool never existed, run once: firn pool create pool --store URL; if you are not sure: firn pool ensure pool --store URL (add --outage if any process of the pool had an outage budget of more than 5 min)`)
		p, err := p.Above(0, "").Use(term.Range{Last: 15}, firn.Default())
		if err != nil {
			t.Fatal(err)
		}
		x.write(term.KeyPool("pool"), p.Encode())
		x.actor("a").until(term.Holding)
	}
}

// A pool whose record was made in another store is refused; by a process that has leased
// from it, for good.
func TestOtherStore(t *testing.T) {
	x := newScript(t)
	x.identity = "here"
	if p := x.actor("a").until(term.Holding).s.Pool; p.Store != "here" {
		t.Errorf("the record says %q", p.Store)
	}
	x.identity = ""
	x.actor("b").until(term.Holding) // it cannot tell
	if p := x.pool(); p.Store != "here" {
		t.Errorf("the record says %q", p.Store)
	}
	x.identity = "there"
	text := `store: pool "pool" belongs to another store: this one is there, and the record was made in here, so this is a copy, a restored dump, or was moved; use the other one, or, only if that no longer exists, stop all processes that use this one, and type: firn store recover --store URL (add --numbers N if it has sequences or documents, and --outage if any process had an outage budget of more than 5 min)`
	x.actor("c").until(term.Refused).fails(term.Refused, text)

	x.identity = "here"
	d := x.actor("d").until(term.Holding)
	for d.do.Op != term.Ask {
		d.answer()
	}
	x.identity = "there"
	d.answer().fails(term.Forgotten, text)

	// What an operator accepted is right.
	x.write(term.KeyPool("pool"), x.pool().In("there").Encode())
	x.actor("e").until(term.Holding)
}

// A worker outside the pool's range is refused, however it was chosen, and let go of where
// the range was changed while it was taken.
func TestRange(t *testing.T) {
	for _, choice := range []term.Choice{term.Insist, term.Prefer} {
		x := newScript(t)
		x.workers(4, 4)
		for _, n := range []int64{3, 8} {
			x.rules.Choice, x.rules.Worker = choice, n
			x.actor("a").until(term.Refused).fails(term.Refused, fmt.Sprintf(`lease: worker %d is outside pool "pool", which has workers 4-7: choose one of these, or leave out Options.Choice to take any free one`, n))
		}
		x.rules.Worker = 7
		if a := x.actor("a").until(term.Holding); a.s.Worker != 7 {
			t.Errorf("took %d", a.s.Worker)
		}
	}
	x := newScript(t)
	a := x.actor("a")
	a.rules.Choice, a.rules.Worker = term.Prefer, 9
	a.until(term.Confirming)
	x.workers(0, 8)
	a.answer().fails(term.Lost, "lease: worker 9 is lost: the pool's range of workers was changed, and does not have it any more")
	if _, ok := a.s.Grant(); ok {
		t.Error("granted")
	}
}

func TestLayoutGuard(t *testing.T) {
	fewer := firn.MustLayout("time:41@1ms,worker:1,seq:21;epoch=2025-01-01T00:00:00Z") // than the pool has workers
	for _, layout := range []firn.Layout{firn.MustLayout("twitter"), fewer} {
		x := newScript(t)
		a := x.actor("a")
		a.rules.Layout = layout
		a.until(term.Refused).fails(term.Refused, fmt.Sprintf(`lease: pool "pool" has layout %s, not %s: leave the layout out of the options to use the pool's, or name a pool of that layout`, firn.Default(), layout))
		var wrong *term.LayoutError
		if !errors.As(a.s.Err, &wrong) {
			t.Errorf("%#v", a.s.Err)
		}
	}
}

func TestPoolForgotten(t *testing.T) {
	known := func(x *script, id string) *actor {
		a := x.actor("a")
		a.s = term.Start(a.seed(), "a", id)
		return a
	}
	x := newScript(t)
	known(x, "other").until(term.Forgotten).fails(term.Forgotten, "store: pool pool has forgotten what it acknowledged: it is another pool of that name")
	known(x, "one").until(term.Holding)

	// After a worker was taken, before the first id.
	a := known(x, "one").until(term.Confirming)
	x.write(term.KeyPool("pool"), pool("two", firn.Default(), 0).Encode())
	a.answer().fails(term.Forgotten, "store: pool pool has forgotten what it acknowledged: it is another pool of that name")

	x.forgetAll()
	known(x, "one").until(term.Forgotten).fails(term.Forgotten, "store: pool pool has forgotten what it acknowledged: its record is missing")
	var forgot *store.ForgotError
	if a = known(x, "one").until(term.Forgotten); !errors.As(a.s.Err, &forgot) {
		t.Errorf("%#v", a.s.Err)
	}
	if rec := x.read(term.KeyPool("pool")); rec.Version != "" {
		t.Errorf("a pool was made: %s", rec.Value)
	}
}

// A floor that was raised while a worker was taken counts.
func TestConfirming(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Confirming).does(term.Get, "pool/pool")
	if _, ok := a.s.Grant(); ok {
		t.Fatal("granted before the floor was read again")
	}
	x.write(term.KeyPool("pool"), pool("one", firn.Default(), x.tick(2*time.Second)).Encode())
	a.answer().does(term.Get, "store").answer().is(term.Holding)
	if g, ok := a.s.Grant(); !ok || g.Base != x.tick(2*time.Second) {
		t.Errorf("%+v %v", g, ok)
	}

	// So far ahead that it is no use to wait.
	a = x.actor("b").until(term.Confirming)
	x.write(term.KeyPool("pool"), pool("one", firn.Default(), x.tick(time.Hour)).Encode())
	a.answer().answer().fails(term.Refused, `lease: the ids of pool "pool" start at 2026-03-01T13:00:00Z, because an earlier process may have issued ids up to then: call again at that time, or set Options.Wait to 1h0m10s to wait for it`)

	x.write(term.KeyPool("pool"), pool("one", firn.MustLayout("twitter"), 0).Encode())
	x.pass(time.Minute)
	x.actor("c").until(term.Refused).fails(term.Refused, fmt.Sprintf(`lease: pool "pool" has layout %s, not %s: leave the layout out of the options to use the pool's, or name a pool of that layout`, firn.MustLayout("twitter"), firn.Default()))
}

// A store is recovered while a pool is created, by someone who has looked for the store's
// floor before and writes after: the pool does not have the floor, and holders of its
// workers go by the store's.
func TestCreatedOverARecovery(t *testing.T) {
	x := newScript(t)
	x.rules.LocalClock = true // it goes by no other clock
	x.write(term.KeyStore, term.Store{Floor: x.instant().Add(2 * time.Second)}.Encode())
	if a := x.actor("a").until(term.Holding); a.s.Base < x.tick(2*time.Second) {
		t.Errorf("%d is below the floor, %d", a.s.Base, x.tick(2*time.Second))
	}
	if x.pool().Floor >= x.tick(2*time.Second) {
		t.Errorf("the pool has the floor: %+v", x.pool())
	}
	x.write(term.KeyStore, []byte("?"))
	x.actor("c").until(term.Refused)
}

func TestClockAhead(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*script)
		ahead  time.Duration
		refuse bool
	}{
		"within":   {func(*script) {}, 5 * time.Second, false},
		"beyond":   {func(*script) {}, 5*time.Second + 1, true},
		"far":      {func(*script) {}, time.Hour, true},
		"behind":   {func(*script) {}, -time.Hour, false},
		"blind":    {func(x *script) { x.blind = true }, time.Hour, false},
		"embedded": {func(x *script) { x.rules.LocalClock = true }, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScript(t)
			tt.change(x)
			a := x.actor("a")
			a.ahead = tt.ahead
			a.step(a.begin()).answer()
			if !tt.refuse {
				a.is(term.Seeking)
				return
			}
			var clock *term.ClockError
			if a.is(term.Refused); !errors.As(a.s.Err, &clock) || clock.Ahead() != tt.ahead {
				t.Errorf("%v", a.s.Err)
			}
		})
	}

	// An answer that takes long does not make a clock look ahead.
	x := newScript(t)
	a := x.actor("a")
	a.ahead = 4 * time.Second
	a.step(a.begin())
	e := a.perform()
	x.pass(4 * time.Second)
	a.step(e).is(term.Seeking)
}

func TestRecordsOfALaterFirn(t *testing.T) {
	x := newScript(t)
	x.write(term.KeyPool("pool"), []byte(`{"v":2,"id":["new"]}`))
	x.actor("a").until(term.Refused).fails(term.Refused, "store: record pool/pool: has format 2, written by a later firn; this one knows 1")
	x.write(term.KeyPool("pool"), []byte(`{"id":"one"}`))
	x.actor("a").until(term.Refused).fails(term.Refused, "store: record pool/pool: has no format number")
	x = newScript(t)
	x.write(term.KeyStore, []byte(`{"v":3}`))
	x.actor("a").until(term.Refused).fails(term.Refused, "store: record store: has format 3, written by a later firn; this one knows 1")

	// A worker's record that cannot be read is left alone, and never held.
	x = newScript(t)
	x.workers(0, 2)
	x.write(term.KeyWorker("pool", 0), []byte(`{"v":2}`))
	if a := x.actor("a").until(term.Holding); a.s.Worker != 1 {
		t.Errorf("took worker %d", a.s.Worker)
	}
	a := x.actor("b").until(term.Refused)
	if !strings.HasPrefix(a.s.Err.Error(), `lease: none of the 2 workers of pool "pool" is free; worker 1 is held by a and falls free in 5`) {
		t.Error(a.s.Err)
	}

	// Where no other may be taken, the error says why.
	only := x.actor("only")
	only.rules.Choice, only.rules.Worker = term.Insist, 0
	only.until(term.Refused).fails(term.Refused, "store: record pool/pool/worker/0: has format 2, written by a later firn; this one knows 1")

	// One's own that somebody has replaced by such a one is lost.
	x.workers(0, 6)
	a = x.actor("c")
	a.rules.Choice, a.rules.Worker = term.Insist, 5
	a.until(term.Holding)
	x.write(term.KeyWorker("pool", 5), []byte(`{"v":2}`))
	a.until(term.Lost).fails(term.Lost, "lease: worker 5 is lost: store: record pool/pool/worker/5: has format 2, written by a later firn; this one knows 1")
}

func TestPoolsWorkers(t *testing.T) {
	for text, reason := range map[string]string{
		"7":                     `workers "7" are not a range such as 0-1023`,
		"5-4":                   `workers "5-4" are not a range such as 0-1023`,
		"-1-4":                  `workers "-1-4" are not a range such as 0-1023`,
		"0-4x":                  `workers "0-4x" are not a range such as 0-1023`,
		"0 -4":                  `workers "0 -4" are not a range such as 0-1023`,
		"+0-4":                  `workers "+0-4" are not a range such as 0-1023`,
		"0-04":                  `workers "0-04" are not a range such as 0-1023`,
		"0-9223372036854775807": `workers "0-9223372036854775807": the layout has 0-1023`,
		"0-1024":                `workers "0-1024": the layout has 0-1023`,
	} {
		x := newScript(t)
		p := pool("one", firn.Default(), 0)
		p.Workers = text
		x.write(term.KeyPool("pool"), p.Encode())
		x.actor("a").until(term.Refused).fails(term.Refused, "store: record pool/pool: "+reason)
	}

	x := newScript(t)
	p := pool("one", firn.Default(), 0)
	p.Workers = "512-513"
	x.write(term.KeyPool("pool"), p.Encode())
	a, b := x.actor("a").until(term.Holding), x.actor("b").until(term.Holding)
	if a.s.Worker != 512 || b.s.Worker != 513 {
		t.Errorf("took %d and %d", a.s.Worker, b.s.Worker)
	}
	x.actor("c").until(term.Refused)
}

func TestStoreAwayAtStart(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").step(x.begin())
	for !a.s.Over() {
		if a.do.Op == term.Sleep {
			a.answer()
			continue
		}
		x.pass(time.Second)
		a.step(term.Unknown{Err: errAway})
	}
	a.fails(term.Refused, "lease: every request to the store failed for 5s: away; check that the store runs and that this host reaches it, and call again")
	var away *term.AwayError
	if !errors.As(a.s.Err, &away) || !errors.Is(a.s.Err, errAway) || x.time > 7*time.Second {
		t.Errorf("%#v after %s", a.s.Err, x.time)
	}
}

// The store may notice by itself that it has forgotten, at any time.
func TestForgotInAnyPhase(t *testing.T) {
	for phase := term.Joining; phase < term.Released; phase++ {
		x := newScript(t)
		x.unasked()
		a := x.actor("a")
		if phase == term.Noting {
			a.rules.Choice = term.Fresh
		}
		if phase == term.Releasing {
			a.until(term.Holding).step(term.Stop{})
		}
		a.until(phase).step(term.Forgot{Err: errAway}).fails(term.Forgotten, "away")
		if _, ok := a.s.Grant(); ok {
			t.Errorf("%s: granted", phase)
		}
	}
}

// Another store is in the place of the one that a process looked at before it took a worker: a
// dump was restored, say. The records are the same, and who had the worker may issue still.
func TestOtherStoreWhileTaking(t *testing.T) {
	x := newScript(t)
	x.identity = "here"
	a := x.actor("a").until(term.Seeking)
	x.pass(time.Second)
	a.pending(term.Taking)
	x.identity = "copy"
	a.until(term.Confirming).does(term.Ask, "").answer().is(term.Forgotten)
}

// The same, where the store is found to be able to forget: the worker was chosen by rules that
// do not hold.
func TestForgetfulWhileTaking(t *testing.T) {
	x := newScript(t)
	a := x.actor("a").until(term.Seeking)
	x.pass(time.Second)
	a.pending(term.Taking)
	x.durable = false
	a.until(term.Confirming).does(term.Ask, "").answer().
		fails(term.Lost, "lease: worker 0 is lost: another process has found that the store is lossy")
}
