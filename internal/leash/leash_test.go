//go:build !windows

package leash_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/leash"
)

// What the test program is to do instead of testing: run the rest of its arguments as a
// shell script, on a leash.
const (
	holdsOn  = "hold"  // until the script ends
	stopsIt  = "stop"  // stop it when it has printed a line to the file "up", with 300 ms of grace
	letsItGo = "reach" // the instant comes, and nobody moves it on
	movesOn  = "move"  // the instant is moved on, again and again
)

func TestMain(m *testing.M) {
	leash.Become()
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case holdsOn, stopsIt, letsItGo, movesOn:
			os.Exit(run(os.Args[1], os.Args[2]))
		}
	}
	os.Exit(m.Run())
}

// run is a program that has another one on a leash.
func run(what, script string) int {
	signals := leash.Signals()
	wait := time.Minute
	switch what {
	case letsItGo:
		wait = 2 * time.Second
	case movesOn:
		wait = 6 * time.Second // a busy machine may be late with the first move
	}
	p, err := leash.Start("/bin/sh", []string{"sh", "-c", script}, os.Environ(), time.Now().Add(wait))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer p.Off()
	switch what {
	case stopsIt:
		go func() {
			for _, err := os.Stat("up"); err != nil; _, err = os.Stat("up") {
				time.Sleep(10 * time.Millisecond)
			}
			p.Stop(300 * time.Millisecond)
		}()
	case movesOn:
		go func() {
			for {
				time.Sleep(time.Second)
				p.Until(time.Now().Add(wait))
			}
		}()
	}
	return p.Wait(signals, func() { fmt.Println("left") })
}

// ran is the exit status and output of that program, as a process of its own.
func ran(t *testing.T, what, script string) (status int, out, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	cmd := exec.Command(self, what, script)
	dir = t.TempDir()
	cmd.Dir, cmd.Stdout = dir, &b                        // a shell tells of children that are killed on standard error
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // away from the terminal of the tests
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.WaitDelay = 5 * time.Second // what outlives it must not keep the output open
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal()), b.String(), dir
	}
	return cmd.ProcessState.ExitCode(), b.String(), dir
}

// The status is that of the program, and what it leaves behind ends too.
func TestWait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		script string
		status int
		out    string
	}{
		{"echo on; exit 7", 7, "on\n"},
		{"kill -TERM $$", 128 + 15, ""},
		{"sleep 100 & exit 3", 3, "left\n"},
	} {
		if status, out, _ := ran(t, holdsOn, tt.script); status != tt.status || out != tt.out {
			t.Errorf("%s: status %d and %q, want %d and %q", tt.script, status, out, tt.status, tt.out)
		}
	}
}

// A program that is stopped is asked to end, and killed if it does not.
func TestStop(t *testing.T) {
	t.Parallel()
	if status, out, _ := ran(t, stopsIt, "trap 'echo asked; exit 5' TERM; : >up; while :; do sleep 0.01; done"); status != 5 || out != "asked\n" {
		t.Errorf("status %d and %q", status, out)
	}
	if status, out, _ := ran(t, stopsIt, "trap '' TERM; : >up; while :; do sleep 0.01; done"); status != 128+9 || out != "" {
		t.Errorf("deaf: status %d and %q", status, out)
	}
}

// At the instant both die, and the program's children with it; not if it was moved on.
func TestUntil(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("nobody does that here")
	}
	status, _, dir := ran(t, letsItGo, "sleep 100 & echo $$ $! >pids; wait")
	if status != 128+9 {
		t.Errorf("status %d", status)
	}
	pids, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Fields(string(pids)) {
		pid, _ := strconv.Atoi(text)
		for began := time.Now(); running(pid); time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > 10*time.Second {
				t.Fatalf("%d lives", pid)
			}
		}
	}
	if status, out, _ := ran(t, movesOn, "sleep 8; exit 4"); status != 4 {
		t.Errorf("moved on: status %d, %s", status, out)
	}
}

// running says whether a process is there and is not dead already.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

func TestCannotStart(t *testing.T) {
	_, err := leash.Start(filepath.Join(t.TempDir(), "nothing"), []string{"nothing"}, nil, time.Now().Add(time.Hour))
	if !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
