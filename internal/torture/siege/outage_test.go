//go:build linux

package siege

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/torture/ledger"
	"golang.org/x/sys/unix"
)

// The store cannot be written for longer than the outage budget. Ids go on to
// the horizon, the state says for how long yet; then calls fail and say why, and
// when the store is back so are the ids.
func TestOutage(t *testing.T) {
	for name, tt := range map[string]struct {
		budget string
		fail   func(*testing.T, *world, *proc) (mend func())
	}{
		// SQLite waits 5 s for a lock, so it takes as long until it is known
		// that the store is away.
		"locked":            {"8s", lockedBy("immediate")},
		"locked, exclusive": {"8s", lockedBy("exclusive")},
		"no more writing":   {"2s", unwritable},
		"immutable files":   {"2s", immutable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, with(one, []string{
				"-outage", tt.budget, "-renew", "300ms", "-ttl", "1s",
				"-hands", "3", "-rate", "500", "-draw", "mixed",
			})...)
			budget, err := time.ParseDuration(tt.budget)
			if err != nil {
				t.Fatal(err)
			}
			p := w.start(launch{})
			p.await(ledger.Opened)
			renewed(p, 2)
			p.issues(100)

			place := p.seen()
			mend := tt.fail(t, w, p)
			begun := now()
			since := func(e ledger.Event) time.Duration { return round(time.Duration(e.Boot) - begun) }

			away, place := p.after(place, "the state says degraded", func(e ledger.Event) bool { return e.Event == ledger.Changed && e.Degraded })
			if away.LeftMS <= 0 || away.Kind == "" || away.Phase != "holding" {
				t.Errorf("the state says %+v", away)
			}
			p.issues(100)
			degraded := place
			var gone ledger.Event
			for range 3 { // hands
				var e ledger.Event
				e, place = p.after(place, "calls fail", named(ledger.Failed))
				gone = e
				if e.Kind != ledger.Outage {
					t.Errorf("hand %d fails with %s", e.Hand, e.Text)
				}
			}
			if well := p.find(degraded, func(e ledger.Event) bool { return e.Event == ledger.Changed && !e.Degraded }); len(well) > 0 {
				t.Errorf("%s after the store was away the state says that all is well: %+v", since(well[0]), well[0])
			}
			if d := since(gone); d < budget-time.Second && w.left(p, gone, time.Duration(gone.Boot)) > 0 || d > budget+20*time.Second { // when a busy machine gets to it
				t.Errorf("calls failed after %s, and the budget is %s", d, budget)
			}
			before := p.count()
			renewals := p.find(place, named(ledger.Granted))
			time.Sleep(300 * time.Millisecond) // in which nothing may happen
			if n := p.count(); n != before || len(renewals) > 0 {
				t.Errorf("%d ids and %d grants came after that", n-before, len(renewals))
			}

			mended := now()
			mend()
			fine, _ := p.after(place, "it comes back", named(ledger.Fine))
			p.issues(1000)
			t.Logf("degraded after %s, with %s left: %s", since(away), time.Duration(away.LeftMS)*time.Millisecond, away.Text)
			t.Logf("failed after %s: %s", since(gone), gone.Text)
			t.Logf("back %s after the store was", round(time.Duration(fine.Boot)-mended))
			p.close()
			w.check()
		})
	}
}

func lockedBy(mode string) func(*testing.T, *world, *proc) func() {
	return func(_ *testing.T, w *world, _ *proc) func() {
		lock := w.lock(mode)
		return lock.unlock
	}
}

// unwritable takes from the process the right to make a file longer.
func unwritable(t *testing.T, _ *world, p *proc) func() {
	var was unix.Rlimit
	limit(t, p, nil, &was)
	limit(t, p, &unix.Rlimit{Cur: 0, Max: was.Max}, nil)
	return func() { limit(t, p, &was, nil) }
}

func limit(t *testing.T, p *proc, set, was *unix.Rlimit) {
	t.Helper()
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, set, was); err != nil {
		t.Fatal(err)
	}
}

// immutable makes the store's files immutable, which holds for root too and for
// files that are open.
func immutable(t *testing.T, w *world, _ *proc) func() {
	var files []string
	mend := func() {
		for _, name := range files {
			if err := attribute(name, false); err != nil {
				t.Error(err)
			}
		}
		files = nil
	}
	t.Cleanup(mend)
	for _, name := range []string{w.path, w.path + "-wal", w.path + "-shm"} {
		switch err := attribute(name, true); {
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOTTY), errors.Is(err, unix.EOPNOTSUPP):
			t.Skipf("NOT TESTED: files cannot be made immutable here, as root on ext4, xfs or btrfs: %v", err)
		case err != nil:
			t.Fatal(err)
		}
		files = append(files, name)
	}
	return mend
}

// attribute sets or clears the immutable attribute of a file.
func attribute(name string, immutable bool) error {
	const flag = 0x10 // FS_IMMUTABLE_FL
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return &os.PathError{Op: "getflags", Path: name, Err: err}
	}
	want := have &^ flag
	if immutable {
		want |= flag
	}
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, want); err != nil {
		return &os.PathError{Op: "setflags", Path: name, Err: err}
	}
	return nil
}

// Somebody who starts while the store is locked waits, and is told why in vain;
// and takes no worker later for a process that is gone.
func TestStartWhileLocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(brisk, one)...)
	p := w.start(launch{})
	p.await(ledger.Opened)
	p.close()
	lock := w.lock("immediate")
	late := w.start(launch{})
	e := late.await(ledger.Refused)
	if !strings.Contains(e.Text, "locked") || e.Kind != ledger.Away {
		t.Errorf("it was refused like this: %s", e.Text)
	}
	late.gone()
	lock.unlock()
	next := w.start(launch{})
	next.await(ledger.Opened)
	next.issues(100)
	w.check()
}

// The outage budget is shorter than a request to the store may take. Calls fail
// at the horizon all the same, and do not wait for the request.
func TestOutageShorterThanARequest(t *testing.T) {
	w := newWorld(t, with(one, []string{"-outage", "2s", "-renew", "300ms", "-ttl", "1s"})...)
	p := w.start(launch{})
	p.await(ledger.Opened)
	renewed(p, 2)
	lock := w.lock("immediate")
	begun := now()
	e, _ := p.after(0, "the state says degraded", func(e ledger.Event) bool { return e.Event == ledger.Changed && e.Degraded })
	if e.LeftMS <= 0 {
		t.Errorf("the state says so only after %s, when nothing is left", round(time.Duration(e.Boot)-begun))
	}
	e, _ = p.after(0, "calls fail", named(ledger.Failed))
	if d := time.Duration(e.Boot) - begun; d > 4500*time.Millisecond { // a request takes 5 s
		t.Errorf("calls fail after %s only; the budget is 2s", round(d))
	}
	lock.unlock()
	w.check()
}
