//go:build linux

package siege

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/torture/ledger"
)

// These programs are broken on purpose. If nothing is found wrong with them,
// then it is the tests that are.

// Two generators issue from one grant.
func TestCatchesTwoGeneratorsOfAGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "-broken", "twice", "-hands", "1", "-rate", "-1")
	p := w.start(launch{})
	p.await(ledger.Opened)
	p.issues(100_000)
	caught(t, w)
}

// Each process has a store of its own, as in containers that do not share one.
func TestCatchesPrivateStores(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "-broken", "private", "-hands", "1", "-rate", "-1")
	a, b := w.start(launch{}), w.start(launch{})
	a.await(ledger.Opened)
	b.await(ledger.Opened)
	place := now()
	for _, p := range []*proc{a, b} {
		p.issues(100_000)
	}
	t.Logf("together for %s", round(now()-place))
	caught(t, w)
}

// A process believes that it has extended its grant, and has not. It shows when
// another takes over while it is stopped.
func TestCatchesUnwrittenExtensions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(brisk, one, []string{"-hands", "2", "-rate", "-1"})...)
	p := w.start(launch{args: []string{"-broken", "unwritten"}})
	p.await(ledger.Opened)
	p.issues(1000)
	w.freeze(p)
	heir := w.start(launch{args: []string{"-wait", "30s"}})
	heir.await(ledger.Opened)
	heir.issues(1000)
	p.cont()
	p.issues(100_000)
	heir.issues(100_000)
	caught(t, w)
}

// caught waits until an id was issued twice: on a busy machine two who issue may
// take turns for a while, each in ticks of its own.
func caught(t *testing.T, w *world) {
	t.Helper()
	eventually(t, "an id is issued twice", func() bool {
		return Check(w.layout, w.soFar()).Repeated > 0
	})
	r := w.report()
	if r.Repeated == 0 {
		t.Errorf("no id was found twice; what was: %q", r.Problems)
	}
	if len(r.Problems) > 0 {
		t.Logf("the first of it: %s", r.Problems[0])
	}
}

// A shifted clock is seen by the program: otherwise all tests that shift one
// show nothing.
func TestClockShifts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "-hands", "1", "-rate", "1000")
	for _, off := range []time.Duration{-time.Hour, 0, time.Hour} {
		p := w.start(launch{off: off})
		p.await(ledger.Opened)
		p.issues(10)
		_, last, err := p.hands[0].Last()
		if err != nil {
			t.Fatal(err)
		}
		d := newReader(w.layout)
		_, tick := d.of(last.First)
		if got := time.Until(w.layout.Time(tick)) - off; got.Abs() > 10*time.Second {
			t.Errorf("with its clock at %s a process makes ids that are off by another %s", off, round(got))
		}
		p.kill()
	}
	w.check()
}

// An operator states of a pool that was lost that it never existed, as an error that offers
// "firn pool create --new" would have them do.
func TestCatchesALieAboutALostPool(t *testing.T) {
	t.Parallel()
	if err := Installed("postgres"); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	err := testserver.Outside(func(tb testing.TB) error {
		o := Run(t.Context(), tb, Options{Store: "postgres", For: 10 * time.Second, Workers: 6, Seed: 1, Broken: Lied})
		if o.Repeats == 0 || !strings.Contains(strings.Join(o.Problems, "\n"), "store wiped: ") {
			t.Errorf("%d repeats; what was found: %q", o.Repeats, o.Problems)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
