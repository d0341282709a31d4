package term_test

import (
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
)

// TestRaised: a recovery never lowers the floor of a pool, and forgets what the pool knew of its grants.
func TestRaised(t *testing.T) {
	p := term.Pool{Floor: 100, Ahead: "worker 1", Outage: 5, Lossy: "seen", Store: "old"}
	for _, tt := range []struct {
		to, floor firn.Tick
		ahead     string
	}{{99, 100, "worker 1"}, {100, 100, "worker 1"}, {101, 101, "worker 2"}} {
		got := p.Raised(tt.to, "worker 2", "new")
		if want := (term.Pool{Floor: tt.floor, Ahead: tt.ahead, Store: "new"}); got != want {
			t.Errorf("raised to %d: %+v, not %+v", tt.to, got, want)
		}
	}
}
