//go:build linux

package siege

import (
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/torture/ledger"
)

// asleep is how long a process is stopped: more than ten times its time to live.
const asleep = 3500 * time.Millisecond

// A process is stopped for so long that another takes its only worker, and
// continued. It repeats nothing, says why it has none, and goes on with a new
// term by itself when it can. Mixed draws are both of one id and of many; those of one kind alone are for the long form.
func TestStoppedWhileAnotherTakesOver(t *testing.T) {
	for name, args := range map[string][]string{
		"paced":    {"-hands", "3", "-rate", "500", "-draw", "mixed"},
		"flat out": {"-hands", "6", "-rate", "-1", "-draw", "mixed"},
		"next":     {"-hands", "8", "-rate", "-1", "-draw", "next"},
		"append":   {"-hands", "4", "-rate", "-1", "-draw", "append", "-batch", "5000"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "next" || name == "append" {
				testserver.OnlyLong(t)
			}
			t.Parallel()
			w := newWorld(t, with(brisk, one, args, []string{"-wait", "500ms"})...)
			p := w.start(launch{})
			p.await(ledger.Opened)
			p.issues(2000)
			w.freeze(p)
			stopped := now()

			heir := w.start(launch{args: []string{"-wait", "30s"}})
			heir.await(ledger.Opened)
			took := now() - stopped
			heir.issues(2000)
			time.Sleep(asleep - (now() - stopped))

			place := p.seen()
			p.cont()
			woken := now()
			e, place := p.after(place, "why there are none", func(e ledger.Event) bool { return e.Event == ledger.Failed && e.Kind == ledger.Full })
			noticed := time.Duration(e.Boot) - woken
			heir.issues(2000)
			heir.close()
			e, _ = p.after(place, "a new term", func(e ledger.Event) bool { return e.Event == ledger.Granted && e.Term > 2 && e.Owner != "" })
			t.Logf("taken over after %s; woken after %s: %q after %s; again after %s",
				round(took), round(woken-stopped), "full", round(noticed), round(time.Duration(e.Boot)-woken))
			p.issues(2000)
			p.close()
			w.check()
		})
	}
}

// Whoever is stopped while others are waiting in line for its worker goes on at
// the end of the line, as often as that happens.
func TestStoppedInTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(brisk, one, []string{"-hands", "4", "-rate", fast(), "-draw", "mixed", "-wait", "1s", "-insist"})...)
	a := w.start(launch{})
	a.await(ledger.Opened)
	b := w.start(launch{})
	for range 5 {
		a.issues(2000)
		place := b.seen()
		w.freeze(a)
		_, _ = b.after(place, "it takes over", func(e ledger.Event) bool { return e.Event == ledger.Granted && e.Owner != "" })
		b.issues(2000)
		a.cont()
		a, b = b, a
	}
	w.check()
}

// Callers wait at the horizon for a store that is locked. Their process is
// stopped there, and has lost its worker when they wake.
func TestStoppedWhileCallersWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(brisk, one, []string{"-hands", "6", "-rate", "-1", "-draw", "mixed", "-wait", "500ms"})...)
	p := w.start(launch{})
	p.await(ledger.Opened)
	p.issues(2000)
	lock := w.lock("immediate")
	stuck(p)
	p.stop()
	lock.unlock()

	heir := w.start(launch{args: []string{"-wait", "30s"}})
	heir.await(ledger.Opened)
	heir.issues(2000)
	before := p.count()
	place := p.seen()
	p.cont()
	p.after(place, "the loss is noticed", func(e ledger.Event) bool { return e.Event == ledger.Changed && e.Phase != "holding" })
	if n := p.count(); n != before {
		t.Logf("%d ids were left of the old grant", n-before)
	}
	heir.close()
	p.issues(2000)
	w.check()
}

// stuck waits until the process issues nothing more.
func stuck(p *proc) {
	p.t.Helper()
	last, since := p.count(), now()
	eventually(p.t, p.name+" stands still", func() bool {
		if n := p.count(); n != last {
			last, since = n, now()
		}
		return now()-since > 300*time.Millisecond
	})
}
