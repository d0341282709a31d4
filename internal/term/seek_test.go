package term_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
)

// Who comes back under a name takes the worker that it had; others take the
// lowest that nobody holds, the dead ones' last.
func TestPreference(t *testing.T) {
	x := newScript(t)
	x.workers(0, 6)
	x.pass(time.Hour)
	past := x.tick(time.Minute)
	x.setWorker(0, term.Record{Term: 1, Owner: "dead", Name: "d", Horizon: past, TTL: 0})
	x.setWorker(1, term.Record{Term: 1, Owner: "alive", Name: "l", Horizon: past, TTL: 30_000})
	x.setWorker(2, term.Record{Term: 1, Name: "c", Horizon: past})
	x.setWorker(3, term.Record{Term: 1, Name: "a", Horizon: past})
	x.setWorker(5, term.Record{Term: 1, Name: "f", Horizon: x.tick(x.time + 3*time.Second)})
	x.pass(time.Millisecond)
	for _, tt := range []struct {
		name   string
		prefer int64
		want   int64
	}{
		{"a", -1, 3},
		{"a", -1, 2}, // its own is held now
		{"b", 4, 4},
		{"d", -1, 0},
		{"e", -1, 5}, // nothing else is left: it waits
	} {
		a := x.actor(tt.name)
		if tt.prefer >= 0 {
			a.rules.Choice, a.rules.Worker = term.Prefer, tt.prefer
		}
		if a.until(term.Holding); a.s.Worker != tt.want {
			t.Errorf("%s took %d, not %d", tt.name, a.s.Worker, tt.want)
		}
	}
	if x.time < time.Hour || x.time > time.Hour+time.Second {
		t.Errorf("it is %s", x.time)
	}
}

func TestInsist(t *testing.T) {
	x := newScript(t)
	a := x.actor("a")
	a.rules.Choice, a.rules.Worker = term.Insist, 9
	if a.until(term.Holding); a.s.Worker != 9 {
		t.Errorf("took %d", a.s.Worker)
	}
	b := x.actor("b")
	b.rules = a.rules
	b.until(term.Refused)
	if text := b.s.Err.Error(); !strings.Contains(text, "; worker 9 is held by a and falls free in ") {
		t.Error(text)
	}
}

func TestPreferInALargePool(t *testing.T) {
	x := newScript(t)
	x.rules.Layout = firn.MustLayout("sonyflake")
	x.write(term.KeyPool("pool"), pool("one", firn.MustLayout("sonyflake"), 0).Encode())
	x.rules.Choice, x.rules.Worker = term.Prefer, 777
	if a := x.actor("a").until(term.Holding); a.s.Worker != 777 {
		t.Errorf("took %d", a.s.Worker)
	}
	if a := x.actor("b").until(term.Holding); a.s.Worker == 777 {
		t.Error("took one that is held")
	}
}

func TestFullError(t *testing.T) {
	x := newScript(t)
	x.workers(0, 2)
	x.setWorker(0, term.Record{Term: 1, Owner: "h", Name: "web-1:77", Horizon: x.tick(4 * time.Second), TTL: 25_400})
	x.setWorker(1, term.Record{Term: 1, Name: "web-2:78", Horizon: x.tick(2 * time.Minute)})
	a := x.actor("a").until(term.Refused).fails(term.Refused, `lease: none of the 2 workers of pool "pool" is free; `+
		`worker 0 is held by web-1:77 and falls free in 20s if that process died; worker 1 has issued ahead of this clock and falls free in 1m55s; call again later, or set a longer Options.Wait; or give the pool more workers by "firn pool set"`)
	var full *term.FullError
	if !errors.As(a.s.Err, &full) || full.Pool != "pool" || full.Workers != 2 || len(full.Holders) != 2 || x.time != 5*time.Second {
		t.Errorf("%+v after %s", full, x.time)
	}

	// A dead holder's worker is of use only when its grant has passed, too.
	x = newScript(t)
	x.workers(0, 1)
	x.setWorker(0, term.Record{Term: 1, Owner: "h", Name: "h", Horizon: x.tick(5 * time.Minute), TTL: 30_000})
	x.actor("a").until(term.Refused).fails(term.Refused,
		`lease: the one worker of pool "pool" that this process may take is not free; worker 0 is held by h and falls free in 4m55s if that process died; call again later, or set a longer Options.Wait`)

	// A holder that has not written for its time to live counts as dead, and is not named.
	x = newScript(t)
	x.workers(0, 1)
	x.setWorker(0, term.Record{Term: 1, Owner: "h", Name: "h", Horizon: x.tick(5 * time.Minute), TTL: 3_000})
	x.actor("a").until(term.Refused).fails(term.Refused,
		`lease: the one worker of pool "pool" that this process may take is not free; worker 0 has issued ahead of this clock and falls free in 4m55s; call again later, or set a longer Options.Wait`)

	// The first to fall free come first, and not all are named.
	x = newScript(t)
	x.workers(0, 7)
	for n := range x.count() {
		x.setWorker(n, term.Record{Term: 1, Owner: "h", Name: "h", Horizon: 1, TTL: 40_000 - 1000*n})
	}
	x.actor("a").until(term.Refused).fails(term.Refused, `lease: none of the 7 workers of pool "pool" is free`+
		`; worker 6 is held by h and falls free in 29s if that process died; worker 5 is held by h and falls free in 30s if that process died`+
		`; worker 4 is held by h and falls free in 31s if that process died; worker 3 is held by h and falls free in 32s if that process died`+
		`; worker 2 is held by h and falls free in 33s if that process died; and 2 more; call again later, or set a longer Options.Wait; or give the pool more workers by "firn pool set"`)

	x = newScript(t)
	x.write(term.KeyPool("pool"), pool("one", firn.Default(), x.tick(time.Minute)).Encode())
	x.actor("a").until(term.Refused).fails(term.Refused,
		`lease: the ids of pool "pool" start at 2026-03-01T12:01:00Z, because an earlier process may have issued ids up to then: call again at that time, or set Options.Wait to 1m10s to wait for it`)

	x = newScript(t)
	x.rules.Layout = firn.MustLayout("sonyflake")
	x.write(term.KeyPool("pool"), pool("one", firn.MustLayout("sonyflake"), 0).Encode())
	x.workers(0, 5000)
	for n := range x.count() {
		x.setWorker(n, term.Record{Term: 1, Owner: "h", Name: "h", Horizon: 1, TTL: 30_000})
	}
	x.actor("a").until(term.Refused).fails(term.Refused, `lease: none of the 5000 workers of pool "pool" is free; call again later, or set a longer Options.Wait; or give the pool more workers by "firn pool set"`)
}

// A worker that falls free in time is waited for, and asked after once a second, as the pool is.
func TestWaiting(t *testing.T) {
	x := newScript(t)
	x.workers(0, 1)
	x.setWorker(0, term.Record{Term: 1, Owner: "h", Name: "h", Horizon: x.tick(time.Second), TTL: 4500})
	asked := 0
	for a := x.actor("a").until(term.Seeking); a.s.Phase < term.Taking; a.answer() {
		if a.do.Op != term.Sleep && a.do.For != term.JoinPool {
			asked++
		}
	}
	if x.time < 4500*time.Millisecond || x.time > 5*time.Second || asked > 7 {
		t.Errorf("taken after %s, asked %d times", x.time, asked)
	}
}

// Where the layout ends no worker is started, and who holds one goes on to it.
func TestLayoutEnd(t *testing.T) {
	x := newScript(t)
	l := firn.Default()
	x.time = l.End().Sub(start) - 6*time.Second
	x.workers(0, 1)
	a := x.actor("a").until(term.Holding)
	if a.s.Have.Horizon != l.Last() {
		t.Errorf("horizon %d, the layout's last is %d", a.s.Have.Horizon, l.Last())
	}
	for range 20 {
		a.answer().is(term.Holding)
	}
	if g, _ := a.s.Grant(); g.Horizon != l.Last() {
		t.Errorf("%+v", g)
	}
	x.setWorker(0, x.worker(0).Freed(0))
	x.actor("b").until(term.Refused).fails(term.Refused, `lease: the one worker of pool "pool" that this process may take is not free; call again later, or set a longer Options.Wait`)
}

// However many come at once, everybody has a worker after a few rounds.
func TestSpreading(t *testing.T) {
	for name, blind := range map[string]bool{"clock": false, "blind": true} {
		x := newScript(t)
		x.blind = blind
		x.workers(0, 1024)
		all := make([]*actor, 64)
		for i := range all {
			all[i] = x.actor("a").until(term.Seeking)
			all[i].name = string(rune('A' + i))
		}
		taken := map[int64]bool{}
		for round := 1; len(all) > 0; round++ {
			if round > 6 {
				t.Fatalf("%s: %d of 64 are left after 6 rounds", name, len(all))
			}
			for _, a := range all { // all look, then all take
				for a.s.Phase == term.Seeking {
					a.answer()
				}
				a.is(term.Taking)
			}
			all = slices.DeleteFunc(all, func(a *actor) bool {
				if a.answer().s.Phase != term.Confirming {
					return false
				}
				if taken[a.s.Worker] {
					t.Fatalf("worker %d was taken twice", a.s.Worker)
				}
				taken[a.s.Worker] = true
				return true
			})
			t.Logf("%s: round %d: %d have a worker", name, round, len(taken))
		}
		if x.time > time.Second {
			t.Errorf("%s: it took %s", name, x.time)
		}
	}
}

// Every attempt has a token of its own.
func TestTokens(t *testing.T) {
	x := newScript(t)
	a := x.actor("a")
	seen := map[string]bool{}
	for range 5 {
		a.pending(term.Taking)
		if r := a.sent(); seen[r.Owner] || len(r.Owner) != 32 {
			t.Fatalf("%+v", r)
		}
		seen[a.sent().Owner] = true
		a.step(term.Unknown{Err: errAway}).answer().answer().is(term.Seeking)
	}

	// One that was carried out after all is one's own.
	a.pending(term.Taking).perform()
	want := a.sent()
	a.step(term.Unknown{Err: errAway}).answer().answer().is(term.Confirming)
	if a.s.Have != want {
		t.Errorf("%+v, not %+v", a.s.Have, want)
	}
}

// A process that waits for a worker takes one of those that the pool gets meanwhile, and
// none of those that the pool loses.
func TestWaitingInAPoolThatChanges(t *testing.T) {
	for _, blind := range []bool{false, true} {
		x := newScript(t)
		x.blind = blind
		x.rules.Wait = 10 * time.Minute
		x.workers(0, 2)
		for n := range x.count() {
			x.actor("holder").until(term.Holding)
			x.setWorker(n, term.Record{Term: 1, Owner: "h", Name: "h", Horizon: 1, TTL: 3_600_000})
		}
		a := x.actor("a").until(term.Seeking)
		for a.do.Op != term.Sleep {
			a.answer()
		}
		x.workers(0, 4)
		begun := x.time
		if a.until(term.Holding); a.s.Worker < 2 || x.time-begun > 2*time.Second {
			t.Errorf("took %d after %s", a.s.Worker, x.time-begun)
		}

		b := x.actor("b").until(term.Holding)
		c := x.actor("c").until(term.Seeking)
		for c.do.Op != term.Sleep {
			c.answer()
		}
		x.workers(0, 2)
		b.step(term.Stop{Last: b.s.Base}).until(term.Released)
		x.pass(time.Minute)
		for range 20 {
			if c.answer(); c.s.Phase > term.Seeking {
				t.Fatalf("took %d, which the pool does not have any more", c.s.Worker)
			}
		}
	}
}
