package shard_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// TestLowBits: the low bits of ids run on from tick to tick, so a program that spreads by id % 16
// spreads evenly, at every rate.
func TestLowBits(t *testing.T) {
	for _, tt := range []struct {
		name           string
		clients, draws int // each draw is a statement
		sql            string
		pause          time.Duration
	}{
		{"4 clients", 4, 1250, "SELECT insta5.next_id()", 0},
		{"4 clients, 50 ids a statement", 4, 25, "SELECT insta5.next_id() FROM generate_series(1, 50)", 0},
		{"100 ids a second", 1, 160, "SELECT insta5.next_id()", 10 * time.Millisecond},
		{"15 at once", 4, 84, "SELECT * FROM insta5.next_ids(15)", 0},
		{"one at once", 1, 160, "SELECT * FROM insta5.next_ids(1)", 5 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := newDatabase(t)
			mustExec(t, db.Conn, script(t, firn.MustLayout("sharded"), insta(5)))
			var mu sync.Mutex
			var wg sync.WaitGroup
			counts, ids := make([]int, 16), 0
			for range tt.clients {
				c := connect(t, db.url)
				wg.Go(func() {
					for range tt.draws {
						rows, err := c.Query(context.Background(), tt.sql)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						for rows.Next() {
							var id int64
							if err := rows.Scan(&id); err != nil {
								t.Error(err)
							}
							counts[id%16]++
							ids++
						}
						mu.Unlock()
						if err := rows.Err(); err != nil {
							t.Error(err)
							return
						}
						time.Sleep(tt.pause)
					}
				})
			}
			wg.Wait()
			if unevenness := slices.Max(counts) - slices.Min(counts); unevenness > 16 {
				t.Errorf("%d ids, fullest - emptiest %d: %d", ids, unevenness, counts)
			} else {
				t.Logf("%d ids, fullest - emptiest %d: %d", ids, unevenness, counts)
			}
		})
	}
}
