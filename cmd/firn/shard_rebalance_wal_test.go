//go:build !windows

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestRebalanceMaxWAL: a rebalance says what it is expected to take before it begins. With --max-wal it stops where the source
// keeps more, begins no other move, and does what its hints say.
func TestRebalanceMaxWAL(t *testing.T) {
	t.Parallel()
	a, b := database(t, testserver.Shared(t, movesServer), "a"), database(t, testserver.Shared(t, newerServer), "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	succeed(t, append([]string{"shard", "init", "--count", "4", "--yes"}, flags[:2]...)...)
	for n := range 4 {
		onDatabase(t, a, fmt.Sprintf("CREATE TABLE insta%d.t (id bigint PRIMARY KEY DEFAULT insta%[1]d.next_id(), x text); INSERT INTO insta%[1]d.t (x) SELECT repeat('x', 200) FROM generate_series(1, 2000); ANALYZE insta%[1]d.t", n))
	}
	succeed(t, append([]string{"shard", "add-server", "b=" + b}, flags[:2]...)...)

	out := succeed(t, append([]string{"shard", "rebalance", "--dry-run"}, flags...)...)
	if !regexp.MustCompile(`(?m)^2 shards to move, .*B to copy\ncopy: (about )?1s.* for 1 move, the longest (about )?1s.*\nWAL: .*: (up to .*|less than 1 kB) on a, at the rate of now\npause of each shard: about .*ms on idle servers, up to .*; of all shards together, one after the other: .* to .*$`).MatchString(out) {
		t.Errorf("the plan is\n%s", out)
	}
	var plan rebalanceLine
	if err := json.Unmarshal([]byte(succeed(t, append([]string{"shard", "rebalance", "--dry-run", "--json", "--drain", "a"}, flags...)...)), &plan); err != nil {
		t.Fatal(err)
	}
	if e := plan.Estimate; e == nil || e.Moves != 1 || e.Copy <= 0 || e.CopyMost < e.Copy || e.Longest != e.Copy || e.Pauses < 3.9*e.Pause || e.Pauses > 4.1*e.Pause || e.PausesMost < e.Pauses {
		t.Errorf("%+v", plan.Estimate)
	}

	said := refuse(t, 1, append([]string{"shard", "rebalance", "--max-wal", "1"}, flags...)...)
	abort := regexp.MustCompile(`firn shard abort ([0-9,-]+)`).FindStringSubmatch(said)
	if !strings.Contains(said, "server a keeps ") || !strings.Contains(said, "with a larger --max-wal or without it") || !strings.Contains(said, "after that the same command continues the rebalance") || abort == nil {
		t.Fatal(said)
	}
	succeed(t, append([]string{"shard", "abort", abort[1]}, flags...)...)
	if out := succeed(t, append([]string{"shard", "rebalance", "--max-wal", "10GB"}, flags...)...); !strings.Contains(out, "2 shards moved with 4,000 rows") {
		t.Error(out)
	}
	if here := one[int](t, b, "SELECT count(*) FROM firn.shard WHERE state = 'open'"); here != 2 {
		t.Errorf("b has %d shards", here)
	}
}
