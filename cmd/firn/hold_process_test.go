//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// hurried are knobs of a pool for which everything is over in a few seconds.
var hurried = []string{"--outage", "3s", "--renew", "1s", "--ttl", "2s", "--grace", "500ms", "--wait", "30s", "--json"}

// A hold is "firn run" as it runs.
type hold struct {
	*exec.Cmd
	out, errs string // files
	done      chan struct{}
}

// startHold runs COMMAND with a worker of the store's. What it prints goes to
// files, because a pipe is open for as long as anybody has it.
func startHold(t *testing.T, store string, flags []string, command ...string) *hold {
	t.Helper()
	return startHoldWith(t, store, flags, nil, command...)
}

// startHoldWith is startHold with another standard error.
func startHoldWith(t *testing.T, store string, flags []string, stderr *os.File, command ...string) *hold {
	t.Helper()
	dir := t.TempDir()
	args := append(append([]string{"run", "--store", "sqlite:" + store}, flags...), "--")
	h := &hold{
		Cmd: exec.Command("firn", append(args, command...)...), // TestMain has put it there
		out: filepath.Join(dir, "out"), errs: filepath.Join(dir, "errs"), done: make(chan struct{}),
	}
	out, err := os.Create(h.out)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	errs, err := os.Create(h.errs)
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	h.Stdout, h.Stderr = out, errs
	if stderr != nil {
		h.Stderr = stderr
	}
	h.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // away from the terminal of the tests
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		h.Wait()
		close(h.done)
	}()
	t.Cleanup(func() { // if it has not ended
		if e, ok := h.event(t); ok && t.Failed() {
			syscall.Kill(-e.PID, syscall.SIGKILL)
		}
		h.Process.Signal(syscall.SIGCONT)
		h.Process.Signal(syscall.SIGTERM)
		select {
		case <-h.done:
		case <-time.After(20 * time.Second):
			t.Errorf("it does not end: %s", h.Args)
			h.Process.Kill()
		}
	})
	return h
}

// shellStatus is how a shell tells the end of a process.
func shellStatus(p *os.ProcessState) int {
	if ws := p.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.ExitCode()
}

// code is the exit code, 128 and the signal if it was killed.
func (h *hold) code(t *testing.T) int {
	t.Helper()
	select {
	case <-h.done:
	case <-time.After(3 * time.Minute):
		t.Fatalf("it does not end: %s\n%s", h.Args, read(t, h.errs))
	}
	return shellStatus(h.ProcessState)
}

// event returns the event of its start, if that was printed.
func (h *hold) event(t *testing.T) (e holdEvent, ok bool) {
	t.Helper()
	for line := range strings.Lines(read(t, h.errs)) {
		if strings.HasPrefix(line, `{"event":"start"`) && strings.HasSuffix(line, "\n") {
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			return e, true
		}
	}
	return e, false
}

// started waits for that event, or for the end.
func (h *hold) started(t *testing.T) (e holdEvent, ok bool) {
	t.Helper()
	await(t, "the start of "+h.String(), func() bool {
		e, ok = h.event(t)
		return ok || h.over()
	})
	return e, ok
}

// issues returns the event of its start, when it has printed something.
func (h *hold) issues(t *testing.T) holdEvent {
	t.Helper()
	e, ok := h.started(t)
	if ok {
		await(t, "output of "+h.String(), func() bool { return strings.Contains(read(t, h.out), "\n") || h.over() })
	}
	if !ok || h.over() {
		t.Fatalf("it has ended: %s\n%s", h.Args, read(t, h.errs))
	}
	return e
}

func (h *hold) over() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

func (h *hold) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := h.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// gone reports whether a process runs no more. One that nobody has buried does not.
func gone(pid int) bool {
	if runtime.GOOS == "linux" {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || bytes.Contains(stat, []byte(") Z "))
	}
	return syscall.Kill(pid, 0) != nil
}

// awaitFree waits until no worker of the store is held.
func awaitFree(t *testing.T, store string) {
	t.Helper()
	await(t, "all workers to be free", func() bool {
		_, held := workerStates(t, store)
		return held == 0
	})
}

// pids are the numbers that COMMAND has printed, at least n of them.
func (h *hold) pids(t *testing.T, n int) (pids []int) {
	t.Helper()
	await(t, "the output of "+h.String(), func() bool { return strings.Count(read(t, h.out), "\n") >= n || h.over() })
	for word := range strings.FieldsSeq(read(t, h.out)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) < n {
		t.Fatalf("%d numbers in %s\n%s", len(pids), h.out, read(t, h.errs))
	}
	return pids
}

// A signal reaches the program once, and the program decides what comes of it.
func TestHoldPassesSignals(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "ids.db")
	h := startHold(t, store, nil, "sh", "-c", `
		for s in HUP INT QUIT TERM USR1 USR2; do trap "echo $s" $s; done
		trap 'echo CONT; exit 9' CONT
		echo ready
		while :; do sleep 0.02; done`)
	want := []string{"ready"}
	for _, s := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT,
	} {
		await(t, strings.Join(want, " "), func() bool { return strings.Contains(read(t, h.out), want[len(want)-1]) || h.over() })
		h.signal(t, s)
		want = append(want, strings.TrimPrefix(signalName(s), "SIG"))
	}
	if code := h.code(t); code != 9 {
		t.Errorf("exit code %d, want 9\n%s", code, read(t, h.errs))
	}
	if got := strings.Fields(read(t, h.out)); !slices.Equal(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	awaitFree(t, store)
}

func signalName(s syscall.Signal) string {
	return map[syscall.Signal]string{
		syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGTERM: "SIGTERM",
		syscall.SIGUSR1: "SIGUSR1", syscall.SIGUSR2: "SIGUSR2", syscall.SIGCONT: "SIGCONT",
	}[s]
}

// A program that a signal ends has that signal's exit code.
func TestHoldEndsBySignal(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "ids.db")
	for s, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130, syscall.SIGHUP: 129, syscall.SIGQUIT: 131, syscall.SIGUSR1: 138} {
		h := startHold(t, store, []string{"--json"}, "sleep", "1000")
		if _, ok := h.started(t); !ok {
			t.Fatal(read(t, h.errs))
		}
		h.signal(t, s)
		if got := h.code(t); got != code {
			t.Errorf("%s: exit code %d, want %d", s, got, code)
		}
	}
	awaitFree(t, store)
}

// newPoolIn creates the pool default in a new file.
func newPoolIn(t *testing.T, store string, flags ...string) {
	t.Helper()
	p := command(t, store, append([]string{"pool", "create", "--new"}, flags...)...)
	if err := p.Run(); err != nil {
		t.Fatalf("%v: %s", err, p.errs.String())
	}
}

// A signal while the worker is still to be had ends firn itself.
func TestHoldEndsBeforeItBegins(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "ids.db")
	newPoolIn(t, store, "--workers", "0-0")
	one := []string{"--json"}
	first := startHold(t, store, one, "sleep", "1000")
	if _, ok := first.started(t); !ok {
		t.Fatal(read(t, first.errs))
	}
	second := startHold(t, store, append(one, "--wait", "1m"), "echo", "no")
	await(t, "its signal handler", func() bool { return catches(second.Process.Pid, syscall.SIGTERM) })
	second.signal(t, syscall.SIGTERM)
	if code, out := second.code(t), read(t, second.out)+read(t, second.errs); code != 143 || out != "" {
		t.Errorf("exit code %d, output %q", code, out)
	}
}

// catches reports whether a process has a handler for a signal.
func catches(pid int, s syscall.Signal) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		time.Sleep(500 * time.Millisecond) // it is not known; likely by then
		return true
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if mask, ok := strings.CutPrefix(lines.Text(), "SigCgt:\t"); ok {
			bits, err := strconv.ParseUint(mask, 16, 64)
			return err == nil && bits>>(s-1)&1 == 1
		}
	}
	return false
}

// If firn is killed, so is the program with all that it has started, even where
// it was stopped.
func TestHoldDiesWithFirn(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("nothing does this here")
	}
	store := filepath.Join(t.TempDir(), "ids.db")
	for _, stopped := range []bool{false, true} {
		h := startHold(t, store, hurried, "sh", "-c", "echo $$; sleep 1000 & echo $!; sh -c 'echo $$; sleep 1001; sleep 1002'; sleep 1003")
		pids := h.pids(t, 3)
		if stopped {
			kill(t, -pids[0], syscall.SIGSTOP)
		}
		h.signal(t, syscall.SIGKILL)
		if code := h.code(t); code != 137 {
			t.Errorf("exit code %d, want 137", code)
		}
		await(t, "the end of all", func() bool { return !slices.ContainsFunc(pids, func(pid int) bool { return !gone(pid) }) })
	}
	awaitFree(t, store)
}

// If firn is stopped for so long that the grant ends, the kernel kills it, and
// with it the program.
func TestHoldStoppedForTooLong(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("nothing does this here")
	}
	store := filepath.Join(t.TempDir(), "ids.db")
	h := startHold(t, store, hurried, "sh", "-c", "echo $$; sleep 1000 & echo $!; sleep 1001")
	pids := h.pids(t, 2)
	h.signal(t, syscall.SIGSTOP)
	began := time.Now()
	if code := h.code(t); code != 137 {
		t.Errorf("exit code %d, want 137", code)
	}
	if d := time.Since(began); d > 10*time.Second { // on a busy machine it is reported late
		t.Errorf("the grant of 3s was over after %s", d)
	}
	await(t, "the end of all", func() bool { return gone(pids[0]) && gone(pids[1]) })
	awaitFree(t, store)
}

// A program that was stopped continues when firn does, and nothing is lost by it.
func TestHoldStopsAndContinues(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "ids.db")
	h := startHold(t, store, hurried, "sh", "-c", "while :; do echo $$; sleep 0.02; done")
	pid := h.pids(t, 1)[0]
	h.signal(t, syscall.SIGTSTP)
	await(t, "the program to stop", func() bool {
		before := read(t, h.out)
		time.Sleep(200 * time.Millisecond)
		return read(t, h.out) == before
	})
	lines := strings.Count(read(t, h.out), "\n")
	h.signal(t, syscall.SIGCONT)
	h.pids(t, lines+2)
	kill(t, pid, syscall.SIGTERM)
	if code := h.code(t); code != 143 {
		t.Errorf("exit code %d, want 143\n%s", code, read(t, h.errs))
	}
}

// As the first process of a container firn runs below itself, and buries the
// orphans there. It is stopped in time there, too, when it stands still.
func TestHoldAsFirstProcess(t *testing.T) {
	t.Parallel()
	inContainer := func(args ...string) *exec.Cmd {
		c := exec.Command("unshare", append([]string{"--pid", "--fork", "--mount-proc"}, args...)...)
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
		return c
	}
	if err := inContainer("true").Run(); err != nil {
		t.Skipf("no PID namespace can be made: %v", err)
	}
	for command, want := range map[string]struct {
		out  string
		code int
	}{
		`(sh -c 'sleep 0.05' & sh -c 'sleep 0.05' &)
			sleep 0.3; cat /proc/[0-9]*/stat | grep -c ') Z '; kill $$`: {"0\n", 143},
		`trap 'exit 7' TERM; kill -TERM 1; sleep 5`: {"", 7},
		`exit 0`: {"", 0},
		`kill -STOP $PPID; sleep 8; echo it goes on without a grant`: {"", 137},
	} {
		store := filepath.Join(t.TempDir(), "ids.db")
		args := append([]string{"firn", "run", "--store", "sqlite:" + store}, hurried...)
		c := inContainer(append(args, "--", "sh", "-c", command)...)
		out, _ := c.Output()
		if code := c.ProcessState.ExitCode(); string(out) != want.out || code != want.code {
			t.Errorf("%s: output %q, exit code %d, want %q, %d", command, out, code, want.out, want.code)
		}
		awaitFree(t, store)
	}
}

// A reader of standard error that has stalled does not keep the program alive.
func TestHoldStalledReader(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "ids.db")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	full := bytes.Repeat([]byte("x"), 1<<20)
	if err := w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(full); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe is not full: %v", err)
	}
	h := startHoldWith(t, store, unhurried, w, "sh", "-c", "trap '' TERM; echo $$; while :; do sleep 0.1; done")
	pid := h.pids(t, 1)[0]
	release := command(t, store, "worker", "release", "0", "--yes")
	if err := release.Run(); err != nil {
		t.Fatalf("%v\n%s", err, release.said())
	}
	await(t, "the end of the program", func() bool { return gone(pid) })
	w.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	if code := h.code(t); code != exitStopped {
		t.Errorf("exit code %d, want %d", code, exitStopped)
	}
	if !strings.Contains(text.String(), `{"error":"sh has to stop: worker 0 was taken away","hints":["`) {
		t.Errorf("%q", strings.TrimLeft(text.String(), "x"))
	}
}

// Where the pool's record gives less than the store that one sees would, the grace
// fits in that: else there would never be enough left of a grant to run COMMAND.
func TestGraceOfAMarkedPool(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "ids.db")
	s, err := sqlite.Open(context.Background(), db)
	if err != nil {
		t.Fatal(err)
	}
	p := term.Pool{V: 1, ID: "founded", Layout: firn.Default().String(), Workers: "0-7", Outage: 4000, Limit: 300_000, Lossy: "somebody saw that"}
	if _, err := s.Put(t.Context(), term.KeyPool("default"), p.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("firn", "run", "--store", "sqlite:"+db, "--", "true").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
