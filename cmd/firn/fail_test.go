package main

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/lease/term"
)

// The hint of a pool that has not begun names a wait that is long enough, however
// far ahead its floor lies.
func TestFloorHint(t *testing.T) {
	for _, ahead := range []time.Duration{8 * time.Second, 5 * time.Minute, 15 * time.Minute} {
		f := classify(&term.FullError{Pool: "web", Floor: time.Now().Add(ahead)})
		_, text, _ := strings.Cut(strings.Join(f.hints, ""), "--wait ")
		if wait, err := time.ParseDuration(text); err != nil || wait < ahead || wait > ahead+11*time.Second {
			t.Errorf("floor in %s: %v", ahead, f.hints)
		}
	}
}
