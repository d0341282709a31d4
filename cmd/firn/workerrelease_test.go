//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/open"
)

// A worker that the store says is held is taken from its process only by somebody who says so.
func TestReleaseAsksForAHeldWorker(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "next")
	h := command(t, "", "run", "--", "sleep", "60")
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { h.Process.Signal(os.Interrupt); h.Wait() }()
	held := func() bool {
		out, _, _ := called(t, "worker", "ls")
		return strings.Contains(out, " held ")
	}
	for end := time.Now().Add(time.Minute); !held(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no worker is held")
		}
	}
	refusedWith(t, strings.Fields("worker release 0"), "Has that process ended?", "if so: firn worker release 0 --pool default --yes")
	if !held() {
		t.Error("the worker was taken")
	}
}

// A name that a process chose for itself does nothing to the terminal of who lists it.
func TestNamesOnATerminal(t *testing.T) {
	url := "sqlite:" + filepath.Join(emptyHome(t), "ids.db")
	t.Setenv("FIRN_STORE", url)
	mustAll(t, "next")
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lease.Open(t.Context(), s, &lease.Options{Choice: lease.Only(5), Name: "a\x1b[31m\x07b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"worker", "ls"}, {"worker", "release", "5"}, {"worker", "release", "5", "--yes"}} {
		out, errs, _ := called(t, args...)
		if said := out + errs; strings.ContainsAny(said, "\x1b\x07") || !strings.Contains(said, `a\x1b[31m\ab`) {
			t.Errorf("firn %s: %q", strings.Join(args, " "), said)
		}
	}
	l.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
