//go:build !windows

package main

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsRebalanceByRate rebalances as docs/reference/shards.md does: two shards of a server are written to more than all others.
// One of them moves, the one with fewer bytes, though that makes sizes less even.
func TestShardsRebalanceByRate(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	succeed(t, append([]string{"shard", "init", "--count", "6", "--yes"}, flags...)...)
	for n := range 6 {
		url, rows := a, 100
		if n > 2 {
			url = b
		}
		if n == 0 {
			rows = 100_000
		}
		onDatabase(t, url, fmt.Sprintf("CREATE TABLE insta%d.t (id bigint PRIMARY KEY DEFAULT insta%[1]d.next_id(), x text); INSERT INTO insta%[1]d.t (x) SELECT repeat('x', 200) FROM generate_series(1, %d)", n, rows))
	}
	stop := writeRates(t, a, map[int]int{0: 40, 1: 40, 2: 4})
	defer stop()

	args := append([]string{"--by", "rate", "--sample", "4s"}, flags...)
	out := succeed(t, append([]string{"shard", "rebalance", "--dry-run"}, args...)...)
	if !regexp.MustCompile(`(?m)^a +now +3 +[0-9.]+ rows/s +#{24}$\n^ +then +[12] +[0-9.]+ rows/s +#{10,14}$\n^b +now +3 +0\.0 rows/s *$\n^ +then +[45] +[0-9.]+ rows/s +#{10,14}$\n\n^[12] shards? to move, .* [kM]B to copy$`).MatchString(out) {
		t.Errorf("the plan is\n%s", out)
	}
	plan := dryRebalance(t, nil, args...)
	if len(plan.Moves) == 0 || plan.Moves[0].Shard != 1 || plan.Moves[0].To != "b" || plan.Bytes > 20_000_000 { // 0 has more
		t.Errorf("%+v", plan.Moves)
	}
	stop()
	if plan := dryRebalance(t, flags, "--by", "rate", "--sample", "1500ms"); len(plan.Moves) != 0 {
		t.Errorf("nothing is written, and it would move %+v", plan.Moves)
	}
}

// writeRates writes rows to shards, so many in each of many transactions, until it is told
// to stop, or the test ends.
func writeRates(t *testing.T, url string, rates map[int]int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	stop = func() { cancel(); all.Wait() }
	for n, rows := range rates {
		c, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer c.Close(context.Background())
			for next := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; <-next.C {
				// What is counted shows at once.
				sql := fmt.Sprintf("INSERT INTO insta%d.t (x) SELECT 'y' FROM generate_series(1, %d); SELECT pg_stat_force_next_flush()", n, rows)
				if _, err := c.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return stop
}
