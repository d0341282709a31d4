package main

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/lease"
)

// The hint of a pool that has not begun names a wait that is long enough, however
// late its ids start.
func TestNotYetHint(t *testing.T) {
	for _, ahead := range []time.Duration{8 * time.Second, 5 * time.Minute, 15 * time.Minute} {
		f := classify(&lease.NotYetError{Pool: "web", StartsAt: time.Now().Add(ahead)})
		_, text, _ := strings.Cut(hinter{}.line(f), "--wait ")
		if wait, err := time.ParseDuration(text); err != nil || wait < ahead || wait > ahead+11*time.Second {
			t.Errorf("floor in %s: %v", ahead, f.Hints)
		}
	}
}
