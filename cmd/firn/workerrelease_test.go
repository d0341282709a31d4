//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
