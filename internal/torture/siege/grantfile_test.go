//go:build linux

package siege

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/torture/ledger"
)

// file are the options of processes that go on with each other's grants.
func (w *world) file() []string { return []string{"-file", filepath.Join(w.dir, "grant")} }

// heir starts a process that goes on with what the last one left.
func (w *world) heir(how launch) *proc {
	w.t.Helper()
	how.args = append(w.file(), how.args...)
	p := w.start(how)
	p.heirs = "grant"
	return p
}

// steady is a lease of a worker that does not fall free within the test.
var steady = []string{"-outage", "30s", "-renew", "300ms", "-ttl", "30s"}

// A process that is killed and comes back goes on with its own old term: there
// is one worker only, and nobody waits for it to fall free.
func TestGrantFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(steady, one, []string{"-hands", "3", "-rate", "-1", "-draw", "mixed"})...)
	for _, off := range []time.Duration{0, 0, 0, time.Second, -time.Second, 2 * time.Second, 0} {
		p := w.heir(launch{off: off})
		p.await(ledger.Opened)
		p.issues(20_000)
		p.kill()
	}
	// What was issued lies an hour ahead of this clock.
	p := w.heir(launch{off: -time.Hour, args: []string{"-wait", "500ms"}})
	if e := p.await(ledger.Refused); e.Kind != ledger.Full {
		t.Errorf("it was refused like this: %s", e.Text)
	}
	p.gone()
	if r := w.check(); r.Terms != 1 {
		t.Errorf("there were %d terms", r.Terms)
	}
}

// While a process has a grant file nobody else uses it, even if that process
// stands still.
func TestGrantFileIsInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(steady, one, []string{"-hands", "3", "-rate", "1000", "-draw", "mixed"})...)
	p := w.heir(launch{})
	p.await(ledger.Opened)
	p.issues(100)
	for range 2 {
		second := w.heir(launch{})
		if e := second.await(ledger.Refused); !strings.Contains(e.Text, "another process uses it") {
			t.Errorf("it was refused like this: %s", e.Text)
		}
		second.gone()
		p.stop()
	}
	p.kill()
	third := w.heir(launch{})
	third.await(ledger.Opened)
	third.issues(100)
	w.check()
}

// With a grant file a process starts while the store is locked, and issues all
// the while, up to the horizon.
func TestGrantFileWhileLocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(one, []string{
		"-outage", "10s", "-renew", "300ms", "-ttl", "10s", "-hands", "2", "-rate", "500",
	})...)
	p := w.heir(launch{})
	p.await(ledger.Opened)
	renewed(p, 3)
	lock := w.lock("immediate")
	begun := now()
	p.kill()
	p = w.heir(launch{})
	p.await(ledger.Opened)
	t.Logf("opened after %s", round(now()-begun))
	p.issues(1)
	last, since, longest := p.count(), now(), time.Duration(0)
	for now()-begun < 9*time.Second {
		if n := p.count(); n != last {
			last, since = n, now()
		}
		longest = max(longest, now()-since)
		time.Sleep(time.Millisecond)
	}
	if longest > 3*time.Second { // a request to the store takes 5 s
		t.Errorf("for %s there was no id", round(longest))
	}
	e, _ := p.after(0, "calls fail", named(ledger.Failed))
	if e.Kind != ledger.Outage {
		t.Errorf("the call fails with %s", e.Text)
	}
	t.Logf("issued %s long, the longest gap was %s", round(time.Duration(e.Boot)-begun), round(longest))
	lock.unlock()
	p.issues(100)
	p.close()
	w.check()
}
