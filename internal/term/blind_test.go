package term_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
)

// Where the store has no clock, a dead holder's record is watched for its time
// to live, however short one would wait otherwise.
func TestBlindTakesFromTheDead(t *testing.T) {
	x := newScript(t)
	x.blind = true
	x.workers(0, 4)
	for n := range x.count() {
		x.setWorker(n, term.Record{Term: 1, Owner: "dead", Name: "dead", Horizon: x.tick(0), TTL: 30_000})
	}
	x.pass(time.Hour)
	began := x.time
	a := x.actor("a").until(term.Holding)
	if waited := x.time - began; waited < 30*time.Second || waited > 32*time.Second {
		t.Errorf("took a dead holder's worker after %s", waited)
	}
	if got := x.worker(a.s.Worker); got.Term != 2 || a.s.Base != x.tick(0) {
		t.Errorf("%+v, base %d", got, a.s.Base)
	}
}

// A store that goes away while others' records are watched is waited for as long as
// one that was away at the start.
func TestBlindLosesTheStore(t *testing.T) {
	x := newScript(t)
	x.blind = true
	x.workers(0, 1)
	x.setWorker(0, term.Record{Term: 1, Owner: "dead", Name: "dead", Horizon: x.tick(0), TTL: 30_000})
	x.pass(time.Hour)
	began := x.time
	a := x.actor("a").until(term.Seeking)
	for x.time-began < 10*time.Second { // longer than it would wait for a store
		a.answer()
	}
	if a.s.Phase >= term.Taking {
		t.Fatalf("%s: it looks for a worker no more", a.s.Phase)
	}
	lost := x.time
	for !a.s.Over() {
		if a.do.Op == term.Sleep {
			a.answer()
			continue
		}
		x.pass(time.Second)
		a.step(term.Unknown{Err: errAway})
	}
	a.fails(term.Refused, "lease: every request to the store failed for 5s: away; check that the store runs and that this host reaches it, and call again")
	if x.time-lost > 10*time.Second {
		t.Errorf("gave up %s after the store was lost", x.time-lost)
	}
}

// A holder that is alive is left alone: its record does not stay as it is.
func TestBlindLeavesTheLiving(t *testing.T) {
	x := newScript(t)
	x.blind = true
	x.workers(0, 1)
	holder := x.actor("holder").until(term.Holding)
	a := x.actor("a").until(term.Seeking)
	for !a.s.Over() {
		for holder.do.Op != term.Sleep || holder.do.Until <= x.time {
			holder.answer()
		}
		a.answer()
	}
	a.is(term.Refused)
	holder.is(term.Holding)
	if x.time < 35*time.Second {
		t.Errorf("gave up after %s", x.time)
	}
}

// In a pool too large to list, too.
func TestBlindProbes(t *testing.T) {
	x := newScript(t)
	x.blind = true
	l := firn.MustLayout("sonyflake")
	x.rules.Layout = l
	x.write(term.KeyPool("pool"), pool("one", l, 0).Encode())
	x.workers(0, l.Workers())
	for n := range l.Workers() {
		x.setWorker(n, term.Record{Term: 1, Owner: "dead", Name: "dead", Horizon: 1, TTL: 10_000})
	}
	x.actor("a").until(term.Holding)
	if x.time < 10*time.Second || x.time > 12*time.Second {
		t.Errorf("took a dead holder's worker after %s", x.time)
	}
}

// A store whose clock was set back says that records are written in the future.
func TestStoreClockSetBack(t *testing.T) {
	x := newScript(t)
	x.workers(0, 1)
	x.pass(time.Hour)
	x.setWorker(0, term.Record{Term: 1, Owner: "dead", Name: "dead", Horizon: x.tick(0), TTL: 30_000})
	x.pass(-time.Hour)
	x.actor("a").until(term.Holding)
	if x.time < 30*time.Second || x.time > 32*time.Second {
		t.Errorf("took a dead holder's worker after %s", x.time)
	}
}

// A floor that lies too far ahead is not waited for, with a clock or without, and
// no worker is looked at: none is free before it. One that can be reached is.
func TestFloorTooFar(t *testing.T) {
	for _, blind := range []bool{false, true} {
		for floor, far := range map[time.Duration]bool{time.Minute: true, 11 * time.Second: true, 9 * time.Second: false} {
			x := newScript(t)
			x.blind = blind
			x.write(term.KeyPool("pool"), pool("one", firn.Default(), x.tick(floor)).Encode())
			a := x.actor("a").until(term.Joining)
			for !a.s.Over() && a.s.Phase != term.Holding {
				if a.answer(); far && a.do.Op == term.List {
					t.Errorf("floor in %s, blind %t: workers are listed", floor, blind)
				}
			}
			switch {
			case far && (a.s.Phase != term.Refused || x.time > 0):
				t.Errorf("floor in %s, blind %t: %s after %s", floor, blind, a.s.Phase, x.time)
			case !far && (a.s.Phase != term.Holding || a.s.Base != x.tick(floor)):
				t.Errorf("floor in %s, blind %t: %s, %v", floor, blind, a.s.Phase, a.s.Err)
			}
		}
	}
}
