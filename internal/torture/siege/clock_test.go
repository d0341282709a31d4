//go:build linux

package siege

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/torture/ledger"
)

// brisk are the options of a lease that lives fast, so that a test need not
// wait long for what takes minutes elsewhere: a grant reaches a second ahead, is
// extended every tenth of one, and its worker falls free after three.
var brisk = []string{"-outage", "1s", "-renew", "100ms", "-ttl", "300ms"}

// one is a pool of one worker.
var one = []string{"-workers", "1"}

func with(args ...[]string) (all []string) {
	for _, a := range args {
		all = append(all, a...)
	}
	return all
}

// fast is the rate of hands in tests for which the rate does not matter: in the long form as many draws as they get,
// and else 2,000 a second. Flat out, at the horizon of the grant, TestKillAndShift and
// TestStoppedWhileAnotherTakesOver draw in any case.
func fast() string {
	if testserver.Long() {
		return "-1"
	}
	return "2000"
}

// A process is killed and started again, time after time, and each time its
// clock says something else.
func TestKillAndShift(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(brisk, []string{"-hands", "3", "-rate", "-1", "-draw", "mixed"})...)
	const h = time.Hour
	for _, off := range []time.Duration{
		0, -h, 0, h, 0, -h, h, -time.Second, time.Second, -10 * time.Millisecond, 0, 24 * h, -24 * h, h, 0,
	} {
		p := w.start(launch{off: off, args: []string{"-name", "web"}})
		p.await(ledger.Opened)
		p.issues(20_000)
		p.kill()
	}
	w.check()
}

// The same where there is one worker, and so nowhere to go: a process whose
// clock lies behind what was issued is refused, and told why.
func TestKillAndShiftOneWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(brisk, one, []string{"-hands", "3", "-rate", "-1", "-draw", "mixed", "-wait", "2s"})...)
	const h = time.Hour
	for _, step := range []struct {
		off     time.Duration
		refused bool
	}{
		{0, false},
		{-h, true},
		{0, false},
		{-500 * time.Millisecond, false}, // waits
		{h, false},
		{0, true},
		{h - time.Minute, true},
		{h, false},
		{h, false},
		{2 * h, false},
		{h, true},
		{2*h + 10*time.Second, false},
	} {
		p := w.start(launch{off: step.off})
		if !step.refused {
			p.await(ledger.Opened)
			p.issues(20_000)
			p.kill()
			continue
		}
		e := p.await(ledger.Refused)
		if e.Kind != ledger.Full {
			t.Errorf("with its clock at %s it was refused like this: %s", step.off, e.Text)
		}
		t.Logf("at %s: %s", step.off, e.Text)
		p.gone()
		if n := p.count(); n > 0 {
			t.Errorf("with its clock at %s it issued %d ids", step.off, n)
		}
	}
	w.check()
}

// The clock steps and drifts under a process that runs. It notices nothing.
func TestStepsUnderneath(t *testing.T) {
	t.Parallel()
	// A budget that is not spent when a busy machine is late with an extension.
	w := newWorld(t, with(brisk, one, []string{"-outage", "10s", "-hands", "3", "-rate", fast(), "-draw", "mixed"})...)
	p := w.start(launch{})
	p.await(ledger.Opened)
	const h = time.Hour
	for _, off := range []time.Duration{-h, 0, h, 0, h, -h, 0, time.Second, -time.Second, -100 * h, 100 * h, 0} {
		p.skew.set(off)
		p.issues(20_000)
		renewed(p, 2)
	}
	// A tenth too fast, and then too slow.
	for _, drift := range []time.Duration{time.Millisecond, -time.Millisecond} {
		for range 100 {
			p.skew.set(p.skew.get() + drift)
			time.Sleep(10 * time.Millisecond)
		}
	}
	p.skew.set(0)
	p.issues(20_000)
	if odd := p.find(0, named(ledger.Failed)); len(odd) > 0 {
		t.Errorf("a call failed: %s", odd[0].Text)
	}
	if terms := p.find(0, func(e ledger.Event) bool { return e.Event == ledger.Granted && e.Term > 1 }); len(terms) > 0 {
		t.Errorf("it lost its worker\n%s", p.story())
	}
	p.close()
	// It was never carried away, so who comes next need not wait.
	next := w.start(launch{})
	next.await(ledger.Opened)
	next.issues(1000)
	w.check()
}

// renewed waits until the process has extended its grant n times more.
func renewed(p *proc, n int) {
	p.t.Helper()
	place := p.seen()
	for range n {
		_, place = p.after(place, "a grant is extended", named(ledger.Granted))
	}
}

// Two processes whose clocks differ take their only worker from each other: the
// one that is ahead thinks the other dead. That one says why it cannot go on,
// and goes on when what the thief has issued is in its past.
func TestThiefAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(brisk, one, []string{"-hands", "3", "-rate", fast(), "-draw", "mixed", "-wait", "500ms"})...)
	p := w.start(launch{})
	p.await(ledger.Opened)
	p.issues(20_000)
	thief := w.start(launch{off: 5 * time.Second})
	thief.await(ledger.Opened)
	thief.issues(20_000)
	e, place := p.after(0, "the loss is noticed", func(e ledger.Event) bool { return e.Event == ledger.Failed && e.Kind == ledger.Full })
	t.Log(e.Text)
	thief.close()
	begun := now()
	e, _ = p.after(place, "it goes on", named(ledger.Fine))
	t.Logf("it went on %s after the thief had ended", (time.Duration(e.Boot) - begun).Round(time.Millisecond))
	p.issues(20_000)
	w.check()
}

// Clocks of several processes step all the time, at random, while they are
// killed and started again.
func TestRandomSteps(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, with(brisk, []string{"-hands", "2", "-rate", "2000", "-draw", "mixed", "-workers", "6", "-insist", "-wait", "1s"})...)
	procs := make([]*proc, 4)
	for range 40 {
		i := random.IntN(len(procs))
		off := time.Duration(random.Int64N(int64(4*time.Second))) - 2*time.Second
		switch {
		case procs[i] == nil:
			procs[i] = w.start(launch{off: off})
		case random.IntN(3) == 0:
			procs[i].kill()
			procs[i] = nil
		default:
			procs[i].skew.set(off)
		}
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
	}
	w.check()
}
