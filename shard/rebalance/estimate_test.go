package rebalance

import (
	"testing"
	"time"

	"github.com/firn-id/firn/shard/move"
)

// planOf is the plan of a move of shards that have a million bytes and one table each.
func planOf(source, target string, shards int, measured move.Measured) *move.Plan {
	p := &move.Plan{Source: source, Target: target, WALRate: 1e6, Pause: 20 * time.Millisecond, PauseMost: 100 * time.Millisecond, Measured: measured}
	for range shards {
		p.Shards = append(p.Shards, move.ShardPlan{Bytes: 1e6, Tables: 1})
	}
	return p
}

// TestEstimate: times are added up over moves of up to 32 shards, WAL is kept for one of them at a time, and a source is read
// as fast for one target as for another.
func TestEstimate(t *testing.T) {
	p := &Plan{parallel: 1, checked: []*move.Plan{
		planOf("a", "b", 40, move.Measured{CopyRate: 1e6}), // 32 and 8 shards: 32 s and 8 s
		planOf("a", "c", 2, move.Measured{}),               // 2 s
		planOf("d", "c", 1, move.Measured{}),               // d was not measured
	}}
	got := p.Estimate()
	want := Estimate{
		Moves: 4, Unknown: 1,
		Copy:    Range{42 * time.Second, 42*move.SlowerWrites*time.Second + 42*200*time.Millisecond},
		Longest: Range{32 * time.Second, 32*move.SlowerWrites*time.Second + 32*200*time.Millisecond},
		WAL:     134_400_000, WALServer: "a",
		Pause: Range{20 * time.Millisecond, 100 * time.Millisecond}, Pauses: Range{43 * 20 * time.Millisecond, 4300 * time.Millisecond},
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	p.parallel = 2 // the longest copy takes more than half of all
	if got := p.Estimate().Copy.Least; got != 32*time.Second {
		t.Errorf("two at once: %s", got)
	}
	p.checked[0].Obstacles = []move.Obstacle{{Server: "a"}}
	if got := p.Estimate(); got != (Estimate{}) {
		t.Errorf("with an obstacle: %+v", got)
	}
}
