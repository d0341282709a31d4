package shard_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// spread has clients run a statement that draws ids, so many times each, and counts ids by id % 16.
func spread(t *testing.T, db *database, clients, times int, sql string, pause time.Duration) []int {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	counts := make([]int, 16)
	for range clients {
		c := connect(t, db.url)
		wg.Go(func() {
			for range times {
				var ids []int64
				if err := c.QueryRow(context.Background(), "SELECT array_agg(i) FROM ("+sql+") AS d (i)").Scan(&ids); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, id := range ids {
					counts[id%16]++
				}
				mu.Unlock()
				time.Sleep(pause)
			}
		})
	}
	wg.Wait()
	return counts
}

// TestLowBits: the low bits of ids run on from tick to tick, so id % 16 is even at every rate.
func TestLowBits(t *testing.T) {
	for _, tt := range []struct {
		name, layout   string
		clients, times int
		sql            string
		pause          time.Duration
		uneven         int // fullest - emptiest, at most
	}{
		// A number is lost where two clients see at once that the clock has moved: how often is chance, and more often on a
		// machine that has other work. On a quiet one it is 16 at most; without the rule it is above 1,000.
		{"4 clients", "sharded", 4, 1250, "SELECT insta5.next_id()", 0, 64},
		{"4 clients, 50 ids a statement", "instagram", 4, 25, "SELECT insta5.next_id() FROM generate_series(1, 50)", 0, 64},
		{"15 at once", "sharded", 4, 84, "SELECT * FROM insta5.next_ids(15)", 0, 64},
		{"100 ids a second", "instagram", 1, 160, "SELECT insta5.next_id()", 10 * time.Millisecond, 1},
		{"one at once", "sharded", 1, 160, "SELECT * FROM insta5.next_ids(1)", 5 * time.Millisecond, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := newDatabase(t)
			mustExec(t, db.Conn, script(t, firn.MustLayout(tt.layout), insta(5)))
			counts := spread(t, db, tt.clients, tt.times, tt.sql, tt.pause)
			uneven := slices.Max(counts) - slices.Min(counts)
			t.Logf("fullest - emptiest %d: %d", uneven, counts)
			if uneven > tt.uneven {
				t.Errorf("ids are not even: fullest - emptiest is above %d", tt.uneven)
			}
		})
	}
}
