//go:build linux

package siege

import (
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/torture/ledger"
)

func TestOrder(t *testing.T) {
	// at is an id of a worker that says one millisecond and was issued at another.
	at := func(begun, ended, tick, worker int64) ledger.Run {
		return ledger.Run{First: id(tick, worker, 0), Count: 1, Begun: begun * 1e6, Boot: ended * 1e6}
	}
	for _, tt := range []struct {
		name string
		runs []ledger.Run
		want Order
	}{
		{"in order", []ledger.Run{at(1, 2, 100, 0), at(3, 4, 101, 1), at(5, 6, 101, 0)}, Order{Compared: 3}},
		{"one is behind another worker's", []ledger.Run{at(1, 2, 107, 0), at(3, 4, 101, 1)}, Order{Compared: 2, Late: 1, Median: 6 * time.Millisecond, Worst: 6 * time.Millisecond}},
		{"its own worker's do not count", []ledger.Run{at(1, 2, 107, 1), at(3, 4, 101, 1)}, Order{Compared: 2}},
		{"nor does a call that had not returned", []ledger.Run{at(1, 4, 107, 0), at(3, 5, 101, 1)}, Order{Compared: 2}},
		{"the latest of another worker counts", []ledger.Run{at(1, 2, 104, 0), at(1, 2, 109, 1), at(1, 2, 103, 2), at(3, 4, 101, 1)}, Order{Compared: 4, Late: 1, Median: 3 * time.Millisecond, Worst: 3 * time.Millisecond}},
		{"what has no time is left out", []ledger.Run{{First: id(9, 1, 1), Count: 1}}, Order{}},
	} {
		if got := OrderOf(firn.Default(), []Issuer{{Hands: [][]ledger.Run{tt.runs}}}); got != tt.want {
			t.Errorf("%s: got %+v, not %+v", tt.name, got, tt.want)
		}
	}
}
