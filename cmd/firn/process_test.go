//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/phrase"
)

// slow makes ids for ever, a few a second, with two workers.
const slow = "time:33@1s,worker:1,seq:3;epoch=2025-01-01T00:00:00Z"

// A process is the command, run by itself: signals and pipes are no matter of a
// function's.
type process struct {
	*exec.Cmd
	errs bytes.Buffer
}

// command is firn with a store of the test's own.
func command(t *testing.T, store string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command("firn", args...)} // TestMain has put it there
	p.Env = append(os.Environ(), "XDG_CONFIG_HOME="+os.DevNull)
	if store != "" {
		p.Env = append(p.Env, "FIRN_STORE=sqlite:"+store)
	}
	p.Stderr = &p.errs
	return p
}

// said is what the process wrote to standard error, but for the file that it created.
func (p *process) said() string {
	first, rest, _ := strings.Cut(p.errs.String(), "\n")
	if strings.HasPrefix(first, "created ") {
		return rest
	}
	return p.errs.String()
}

// code waits for the process and returns its exit code.
func (p *process) code(t *testing.T) int {
	t.Helper()
	var ended *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// free reports how many workers of the store are free and how many are held.
func workerStates(t *testing.T, store string) (free, held int) {
	t.Helper()
	out, err := command(t, store, "worker", "ls", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(out, []byte(`"state":"free"`)), bytes.Count(out, []byte(`"state":"held"`))
}

// readLine starts the process and returns when it has printed an id.
func (p *process) readLine(t *testing.T) *bufio.Reader {
	t.Helper()
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() }) // if it has not ended
	r := bufio.NewReader(out)
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatalf("%v\n%s", err, p.errs.String())
	}
	return r
}

// A signal ends it at once, with a line that says how far it was: the worker is given back, and only
// whole lines were printed. The reader may even have stalled.
func TestNextSignals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		signal syscall.Signal
		code   int
		args   []string
	}{
		{"interrupt", syscall.SIGINT, 130, nil},
		{"terminate", syscall.SIGTERM, 143, nil},
		{"hang up", syscall.SIGHUP, 129, nil},
		{"while it waits for the clock", syscall.SIGINT, 130, []string{"--layout", slow}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := filepath.Join(t.TempDir(), "ids.db")
			p := command(t, store, append([]string{"next", "-n", "1000000000"}, tt.args...)...)
			out := p.readLine(t) // and no more: the pipe fills
			said := regexp.MustCompile(`^firn: interrupted: ([0-9,]+) of 1,000,000,000 ids were written\n$`)
			if err := p.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			time.Sleep(50 * time.Millisecond)
			rest, err := readAll(out)
			if err != nil {
				t.Fatal(err)
			}
			got, text := p.code(t), said.FindStringSubmatch(p.said())
			if got != tt.code || text == nil {
				t.Fatalf("exit code %d, want %d; stderr %q", got, tt.code, p.said())
			}
			if lines := 1 + strings.Count(rest, "\n"); text[1] != phrase.Count(int64(lines)) {
				t.Errorf("%d lines came, and it says %s", lines, text[1])
			}
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("it took %s to end", d)
			}
			if rest != "" && !strings.HasSuffix(rest, "\n") {
				t.Errorf("half a line: %q", rest[max(0, len(rest)-40):])
			}
			if free, held := workerStates(t, store); free != 1 || held != 0 {
				t.Errorf("%d workers are free and %d held, want 1 and 0", free, held)
			}
		})
	}
}

// Ctrl-C while the store does not answer is no finding about the store.
func TestDoctorInterrupted(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p := command(t, "none", "doctor", "--store", "postgres://u@"+silent.Addr().String()+"/db?sslmode=disable")
	var out bytes.Buffer
	p.Stdout = &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() }) // if it has not ended
	c, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 130 || p.errs.String() != "firn: interrupted: 1 line was printed\n" || strings.Contains(out.String(), "bad ") {
		t.Errorf("exit code %d\n%s%s", code, &out, &p.errs)
	}
}

func readAll(r *bufio.Reader) (string, error) {
	var b strings.Builder
	_, err := r.WriteTo(&b)
	return b.String(), err
}

// A reader that has stopped reading does not keep the process from ending.
func TestNextSignalStalledReader(t *testing.T) {
	store := filepath.Join(t.TempDir(), "ids.db")
	p := command(t, store, "next", "-n", "1000000000")
	p.readLine(t)
	time.Sleep(200 * time.Millisecond) // the pipe is full by now
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan *os.ProcessState, 1)
	go func() {
		state, err := p.Process.Wait()
		if err != nil {
			t.Error(err)
		}
		ended <- state
	}()
	select {
	case state := <-ended:
		if state.ExitCode() != 143 {
			t.Errorf("exit code %d, want 143", state.ExitCode())
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it did not end")
	}
	if free, held := workerStates(t, store); free != 1 || held != 0 {
		t.Errorf("%d workers are free and %d held, want 1 and 0", free, held)
	}
}

// A reader that closes the pipe has had enough: no error.
func TestNextClosedPipe(t *testing.T) {
	store := filepath.Join(t.TempDir(), "ids.db")
	p := command(t, store, "next", "-n", "1000000000")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stdout = w
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() })
	w.Close()
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if got := p.code(t); got != 0 || p.said() != "" {
		t.Errorf("exit code %d; stderr %q", got, p.said())
	}
	if free, held := workerStates(t, store); free != 1 || held != 0 {
		t.Errorf("%d workers are free and %d held, want 1 and 0", free, held)
	}
}

func TestNextDiskFull(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /dev/full")
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	store := filepath.Join(t.TempDir(), "ids.db")
	p := command(t, store, "next", "-n", "1000")
	p.Stdout = full
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	const want = "firn: error: write /dev/stdout: no space left on device; 0 of 1,000 ids were written\n"
	if got := p.code(t); got != 1 || p.said() != want {
		t.Errorf("exit code %d; stderr %q, want %q", got, p.said(), want)
	}
	if free, held := workerStates(t, store); free != 1 || held != 0 {
		t.Errorf("%d workers are free and %d held, want 1 and 0", free, held)
	}
}

// When every worker is held, the error says by whom, and what to do about it.
func TestNextEveryWorkerHeld(t *testing.T) {
	store := filepath.Join(t.TempDir(), "ids.db")
	for range 2 {
		command(t, store, "next", "-n", "1000", "--layout", slow).readLine(t)
	}
	if free, held := workerStates(t, store); free != 0 || held != 2 {
		t.Errorf("%d workers are free and %d held, want 0 and 2", free, held)
	}
	p := command(t, store, "next", "--layout", slow, "--wait", "100ms")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	code, text := p.code(t), p.errs.String()
	if code != 1 || !strings.HasPrefix(text, "firn: error: none of the 2 workers of pool ") ||
		!strings.Contains(text, "is held by") || !strings.Contains(text, "\nfirn: hint: to see who holds them: firn worker ls;") {
		t.Errorf("exit code %d; stderr\n%s", code, text)
	}
}
