package main

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/rebalance"
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

// TestMoveEstimateOfLittle: equal times are one time, and a server that writes nothing still writes something.
func TestMoveEstimateOfLittle(t *testing.T) {
	p := &move.Plan{
		Source: "a", Target: "b", Shards: []move.ShardPlan{{Bytes: 8192, Tables: 1}}, WALRate: 0, Pause: time.Millisecond, PauseMost: time.Millisecond,
		Measured: move.Measured{Objects: 1, Trip: time.Millisecond, Slower: 1, CopyRate: 10e6, CopyTable: "insta1.users", WALLimit: -1},
	}
	var b strings.Builder
	if err := printEstimate(&b, p); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"8.19 kB to copy; a writes less than 1 kB of WAL a second\n", "copy: about 1s. This host reads", "a keeps less than 1 kB of WAL for it, at this rate\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s\ndoes not say %q", b.String(), want)
		}
	}
	b.Reset()
	one := rebalance.Range{Least: 200 * time.Millisecond, Most: 900 * time.Millisecond}
	if err := printRebalanceEstimate(&b, rebalance.Estimate{Moves: 1, Copy: one, Longest: one, WALServer: "a"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"copy: about 1s for 1 move, the longest about 1s, as fast", "its source keeps WAL for it: less than 1 kB on a, at the rate of now\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s\ndoes not say %q", b.String(), want)
		}
	}
}

// TestApplyMissingText: a count of what did not happen is left out.
func TestApplyMissingText(t *testing.T) {
	for want, n := range map[string][3]int{
		"1 left: not served":        {1, 0, 1},
		"2 failed":                  {2, 2, 0},
		"4 left, of which 1 failed": {4, 1, 0},
		"3 left, of which 2 failed and 1 is not served":  {3, 2, 1},
		"9 left, of which 2 failed and 3 are not served": {9, 2, 3},
	} {
		if got := missingText(n[0], n[1], n[2], "not served"); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// TestPlanHolders: a program at work is not said to use the shard, and a long transaction is no obstacle.
func TestPlanHolders(t *testing.T) {
	var b strings.Builder
	printHolders(&b, move.ShardPlan{Shard: 7, Holders: []move.Holder{
		{PID: 11, User: "report", Query: "SELECT 1", Age: 90 * time.Second},
		{PID: 12, User: "app", Client: "127.0.0.1", Application: "psql", Query: "COMMIT;", Age: 45 * time.Millisecond},
	}})
	const want = "shard 7 is in use, which is no obstacle: its cutover waits until this ends, as long as --lock-wait says: pid 11: report, for 1m30s: SELECT 1\n"
	if got := b.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
