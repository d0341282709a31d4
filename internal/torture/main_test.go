//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/torture/ledger"
	"github.com/firn-id/firn/internal/torture/siege"
	"github.com/firn-id/firn/store/open"
)

func TestMain(m *testing.M) {
	testserver.Main(m, func() error { return os.RemoveAll(builtIn) })
}

var builtIn string // a directory, or nothing yet

// built is the command, built once.
var built = sync.OnceValues(func() (path string, err error) {
	if builtIn, err = os.MkdirTemp("", "torture-"); err != nil {
		return "", err
	}
	path = filepath.Join(builtIn, "torture")
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// command returns what runs it with all its files below a
// directory.
func command(t *testing.T) (run func(args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer), dir string) {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	return func(args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		var out, errs bytes.Buffer
		cmd := exec.Command(path, args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		// What it builds is linked without what debuggers read, which takes half of the time.
		cmd.Env = append(os.Environ(), "TMPDIR="+dir, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -ldflags=-w"))
		return cmd, &out, &errs
	}, dir
}

// A program that repeats ids is found out, with what is needed to look for why.
func TestFinds(t *testing.T) {
	run, _ := command(t)
	cmd, out, _ := run("-stores", "sqlite", "-for", "10s", "-seed", "7", "-broken", "twice", "--json")
	err := cmd.Run()
	var report struct {
		Stores   []siege.Outcome
		Together siege.Outcome
	}
	if jerr := json.Unmarshal(out.Bytes(), &report); jerr != nil {
		t.Fatalf("%v, %v: %s", err, jerr, out)
	}
	o := &report.Together
	if code := cmd.ProcessState.ExitCode(); code != exitFound || o.Repeats == 0 || o.IDs == 0 || len(report.Stores) != 1 {
		t.Errorf("exit code %d, %d repeats of %d ids", code, o.Repeats, o.IDs)
	}
	if again := "-stores sqlite -workers 8 -for 10s -seed 7 -broken twice"; !strings.HasSuffix(o.Command, again) || o.Command != report.Stores[0].Command {
		t.Errorf("the same again is %q", o.Command)
	}
	if all := strings.Join(report.Stores[0].Problems, "\n"); !strings.Contains(all, "was issued by p") {
		t.Errorf("no problem names an id and two who issued it: %s", all)
	}
}

// One that is killed takes its processes with it; what it leaves, those that are stopped
// too, is removed by the next. That one is interrupted: it reports what it did, and leaves
// nothing.
func TestStopped(t *testing.T) {
	run, dir := command(t)
	begin := func(before []string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
		t.Helper()
		cmd, out, errs = run("-stores", "sqlite", "-for", "10m", "-seed", "83") // it kills nobody at first
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			ledgers, err := filepath.Glob(filepath.Join(dir, "*", "p*", "ids-0-0"))
			ledgers = slices.DeleteFunc(ledgers, func(l string) bool { return slices.Contains(before, l) })
			if len(ledgers) >= 6 {
				return cmd, out, errs
			}
			if err != nil || time.Since(begun) > 2*time.Minute {
				t.Fatalf("only %d processes issue, %v", len(ledgers), err)
			}
		}
	}
	killed, _, _ := begin(nil)
	theirs := processesOf(t, dir, killed.Process.Pid)
	if len(theirs) == 0 {
		t.Fatalf("its processes are %v", theirs)
	}
	stopped := theirs[0]
	if err := syscall.Kill(stopped, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(killed.Process.Kill(), killed.Wait()); err == nil {
		t.Fatal("it was not killed")
	}
	for begun := time.Now(); len(processesOf(t, dir, stopped)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("it was killed, and %v run on", processesOf(t, dir, stopped))
		}
	}
	before, err := filepath.Glob(filepath.Join(dir, "*", "p*", "ids-0-0"))
	if len(before) == 0 {
		t.Fatalf("it left nothing: nothing is tested, %v", err)
	}

	next, out, errs := begin(before)
	if slices.Contains(processesOf(t, dir, next.Process.Pid), stopped) {
		t.Errorf("process %d, which was stopped, is still there", stopped)
	}
	if err := next.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := next.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 || !strings.Contains(out.String(), "sqlite: 0 repeats of ") {
		t.Errorf("interrupted: %v\n%s%s", err, out, errs)
	}
	left, err := os.ReadDir(dir)
	for _, e := range left {
		t.Errorf("%s was left behind, %v", e.Name(), err)
	}
	if who := processesOf(t, dir, 0); len(who) > 0 {
		t.Errorf("processes %v run on", who)
	}
}

// processesOf lists the processes that have a directory in what they were called with,
// but for one.
func processesOf(t *testing.T, dir string, but int) (pids []int) {
	t.Helper()
	out, _ := exec.Command("pgrep", "-f", dir).Output() // 1: there are none
	for _, word := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		if pid != but {
			pids = append(pids, pid)
		}
	}
	return pids
}

// The live line counts one thing as one, and says what is done.
func TestLine(t *testing.T) {
	l := &line{ctx: t.Context(), name: "sqlite", o: siege.Options{For: time.Minute, Live: &siege.Live{}}}
	if text := l.text(); !strings.HasPrefix(text, "sqlite: programs are built") {
		t.Errorf("before it begins: %q", text)
	}
	live := l.o.Live
	live.Begun.Store(ledger.Boot())
	live.IDs.Store(1234)
	live.Harms.Store(1)
	live.Doing.Store("store frozen")
	if text, want := l.text(), "sqlite: 0s of 1m0s, 0 repeats, 1,234 ids, 1 fault: store frozen"; text != want {
		t.Errorf("%q, not %q", text, want)
	}
}

// The report says which pairs of faults met, and names those that did not.
func TestMet(t *testing.T) {
	six := []string{"a + b", "a + c", "a + d", "a + e", "a + f", "a + g"}
	for _, tt := range []struct {
		p    siege.Pairs
		want string
	}{
		{siege.Pairs{Met: 9, Of: 9}, "9 of 9 pairs of faults met"},
		{siege.Pairs{Met: 7, Of: 9, NotMet: six[:2]}, "7 of 9 pairs of faults met; not met: a + b, a + c"},
		{siege.Pairs{Met: 3, Of: 9, NotMet: six}, "3 of 9 pairs of faults met; not met: a + b, a + c, a + d, a + e, a + f and 1 more (--json lists all)"},
	} {
		if got := met(tt.p); got != tt.want {
			t.Errorf("%q, not %q", got, tt.want)
		}
	}
}

func TestUsage(t *testing.T) {
	run, _ := command(t)
	for _, args := range []string{
		"-store redis://127.0.0.1 -stores redis", "-store redis://127.0.0.1 -broken lied", "-stores mongodb", "-workers 1", "-for 0s", "-broken badly", "-nothing", "sqlite",
	} {
		cmd, _, errs := run(strings.Fields(args)...)
		err := cmd.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitUsage || errs.Len() == 0 {
			t.Errorf("%s: %v\n%s", args, err, errs)
		}
	}
	// A server that is not there, and a store that has none.
	for _, url := range []string{"redis://user:secret@127.0.0.1:1", "sqlite:/tmp/ids.db"} {
		cmd, _, errs := run("-store", url)
		err := cmd.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(errs.String(), "-store "+open.Redact(url)) || strings.Contains(errs.String(), "secret") {
			t.Errorf("-store %s: %v\n%s", url, err, errs)
		}
	}
	cmd, _, errs := run("-help")
	if err := cmd.Run(); err != nil || !strings.Contains(errs.String(), "-stores") {
		t.Errorf("-help: %v\n%s", err, errs)
	}
	if cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Error("-help: it was killed")
	}
}
