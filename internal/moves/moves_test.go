package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) {
	if err := asMover(); !errors.Is(err, errNoMover) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitFailed)
		}
		os.Exit(0)
	}
	testserver.InMemory()
	testserver.Main(m)
}

// small is what a test has the time for.
func small() settings {
	set := defaults
	set.runs, set.rows, set.seed = 1, 5000, uint64(time.Now().UnixNano())
	set.long, set.around, set.behind = 200*time.Millisecond, 200*time.Millisecond, 0
	return set
}

// moveAll fails the test if anything is found that should not be.
func moveAll(t *testing.T, set settings) *report {
	t.Helper()
	var out bytes.Buffer
	r := &report{out: &out, faults: set.faults}
	err := all(t.Context(), t, set, r)
	r.end()
	t.Logf("\n%s", out.String())
	if err != nil || r.bad > 0 {
		t.Errorf("%d bad, %v", r.bad, err)
	}
	return r
}

// TestMoves: a shard moves while writers write to it, to a server whose clock is an
// hour behind.
func TestMoves(t *testing.T) {
	set := small()
	set.behind = time.Hour
	moveAll(t, set)
}

// TestRevert: one moves there and back.
func TestRevert(t *testing.T) {
	set := small()
	set.revert = true
	moveAll(t, set)
}

// TestFaults: one moves although the mover is killed, and servers are.
func TestFaults(t *testing.T) {
	set := small()
	set.faults = true
	moveAll(t, set)
}
