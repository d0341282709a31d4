package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A screen is a terminal with a session of its own on it.
type screen struct {
	*exec.Cmd
	keys *os.File
	done chan error

	mu    sync.Mutex
	shown bytes.Buffer
}

// startScreen runs a command on a terminal.
func startScreen(t *testing.T, env []string, args ...string) *screen {
	t.Helper()
	keys, tty := newTerminal(t)
	t.Cleanup(func() { keys.Close() })
	defer tty.Close()
	c := &screen{Cmd: exec.Command(args[0], args[1:]...), keys: keys, done: make(chan error, 1)}
	c.Env = append(os.Environ(), env...)
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for b := make([]byte, 4096); ; {
			n, err := keys.Read(b)
			c.mu.Lock()
			c.shown.Write(b[:n])
			c.mu.Unlock()
			if err != nil { // nobody has the terminal open any more
				return
			}
		}
	}()
	go func() { c.done <- c.Wait() }()
	return c
}

func (c *screen) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.ReplaceAll(c.shown.String(), "\r\n", "\n")
}

// shows waits until the terminal shows something n times.
func (c *screen) shows(t *testing.T, text string, n int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the terminal:\n%s", c.text())
		}
	}()
	await(t, fmt.Sprintf("%q on the terminal", text), func() bool {
		if strings.Count(c.text(), text) >= n {
			return true
		}
		select {
		case err := <-c.done:
			c.done <- err
			if strings.Count(c.text(), text) < n {
				t.Fatalf("it has ended, %v, without %q", err, text)
			}
		default:
		}
		return false
	})
	if got := strings.Count(c.text(), text); got != n {
		t.Fatalf("%q is there %d times, want %d", text, got, n)
	}
}

func (c *screen) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := c.keys.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

func (c *screen) code(t *testing.T) int {
	t.Helper()
	await(t, "the end of "+c.String(), func() bool {
		select {
		case err := <-c.done:
			c.done <- err
			return true
		default:
			return false
		}
	})
	return shellStatus(c.ProcessState)
}

const keyInterrupt, keySuspend, keyEnd = "\x03", "\x1a", "\x04"

// Keys reach the program, once, whether it reads the terminal or not.
func TestHoldOnTerminal(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "ids.db")
	c := startScreen(t, nil, "firn", "run", "--store", "sqlite:"+store, "--", "sh", "-c", `
		trap 'echo "interrupted"' INT
		echo ready
		until test -s "$0"; do sleep 0.02; done
		for i in 1 2; do
			until read line; do :; done # a trap ends it
			echo "got $line"
		done
		exit 4`, store+".go")
	c.shows(t, "ready\n", 1)
	c.types(t, keyInterrupt)
	c.shows(t, "interrupted\n", 1)
	if err := os.WriteFile(store+".go", []byte("on"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.types(t, "one\n")
	c.shows(t, "got one\n", 1)
	c.types(t, keyInterrupt)
	c.shows(t, "interrupted\n", 2)
	c.types(t, "two\n")
	c.shows(t, "got two\n", 1)
	if code := c.code(t); code != 4 {
		t.Errorf("exit code %d, want 4\n%s", code, c.text())
	}
	c.shows(t, "interrupted\n", 2)
}

// A shell can stop and continue it as any other job, and has the terminal back
// after it.
func TestHoldUnderJobControl(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	store := filepath.Join(t.TempDir(), "ids.db")
	c := startScreen(t, []string{"PS1=$ ", "TERM=dumb", "FIRN_STORE=sqlite:" + store}, bash, "--norc", "--noediting", "-i")
	c.shows(t, "$ ", 1)
	c.types(t, "firn run -- sed -u s/^/got-/\n")
	c.types(t, "one\n")
	c.shows(t, "got-one\n", 1)
	c.types(t, keySuspend)
	c.shows(t, "Stopped", 1)
	c.types(t, "echo shell-$((1+1))\n")
	c.shows(t, "shell-2\n", 1)
	c.types(t, "fg\n")
	c.types(t, "two\n")
	c.shows(t, "got-two\n", 1)
	c.types(t, keySuspend)
	c.shows(t, "Stopped", 2)
	c.types(t, "bg\n") // where it reads, and so is stopped again
	c.types(t, "until jobs | grep -q [S]topped; do sleep 0.02; done; echo shell-$((2+2))\n")
	c.shows(t, "shell-4\n", 1)
	c.types(t, "fg\n")
	c.types(t, "three\n")
	c.shows(t, "got-three\n", 1)
	c.types(t, keyEnd)
	c.types(t, "echo code-$?\n")
	c.shows(t, "code-0\n", 1)

	// It leaves the terminal to its neighbours, and what a shell without job
	// control reads after it is for that shell.
	c.types(t, "firn run -- echo data | (read a; read b </dev/tty; echo $a-$b)\n")
	c.types(t, "key\n")
	c.shows(t, "data-key\n", 1)
	c.types(t, "sh -c 'firn run -- sed -u s/^/again-/; read a; echo after-$a'\n")
	c.types(t, "four\n")
	c.shows(t, "again-four\n", 1)
	c.types(t, keyEnd)
	c.types(t, "five\n")
	c.shows(t, "after-five\n", 1)
	c.types(t, "exit 5\n")
	if code := c.code(t); code != 5 {
		t.Errorf("exit code %d, want 5\n%s", code, c.text())
	}
	awaitFree(t, store)
}
