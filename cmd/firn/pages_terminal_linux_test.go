package main

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// terminalThatSays makes a terminal at which a person has typed a line, and returns its path.
func terminalThatSays(t *testing.T, line string) string {
	t.Helper()
	keys, tty := newTerminal(t)
	t.Cleanup(func() { keys.Close() })
	t.Cleanup(func() { tty.Close() })
	if _, err := fmt.Fprintln(keys, line); err != nil {
		t.Fatal(err)
	}
	return tty.Name()
}

// newTerminal makes a terminal: its keys and its screen.
func newTerminal(t *testing.T) (keys, tty *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal can be made: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return keys, tty
}
