package main

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/shard/move"
)

// TestMoveEstimateText: the plan says what it has measured, what it assumes, and what follows.
func TestMoveEstimateText(t *testing.T) {
	p := &move.Plan{
		Source: "a", Target: "b", Shards: []move.ShardPlan{{Bytes: 100e6, Tables: 5}}, WALRate: 2e6, Pause: 26 * time.Millisecond, PauseMost: 411 * time.Millisecond,
		Measured: move.Measured{Objects: 4, Trip: 312 * time.Microsecond, Slower: 12.34, CopyRate: 10e6, CopyTable: "insta1.users", WALLimit: -1},
	}
	var b strings.Builder
	if err := printEstimate(&b, p); err != nil {
		t.Fatal(err)
	}
	const want = `
100 MB to copy; a writes 2 MB of WAL a second
copy: 10s to 41s. This host reads 10 MB a second from a (measured: table insta1.users); b may write 4 times as slowly (assumed)
WAL: until the copy is complete, a keeps up to 82 MB of WAL for it, at this rate
pause of each shard: about 26ms on idle servers, up to 411ms under this load (4 tables and sequences; 310µs to a server and back; one answer in ten took 12.3 times as long as the fastest, or longer)
`
	if got := b.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if l := newMovePlanLine(p); l.PauseMost != 411 || l.Copy != 10 || l.CopyMost != 41 || l.WALKept != 82e6 || l.CopyRate != 10e6 {
		t.Errorf("%+v", l)
	}
}
