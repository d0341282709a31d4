package shard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn/shard"
)

// TestRangeAdded: a program that was opened before a range was added finds its keys, also where not every server was
// told, and no key of the others changes its shard.
func TestRangeAdded(t *testing.T) {
	t.Parallel()
	all := newServers(t, "range:1,1001", 2, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	if n := c.ForKey("2500").Number(); n != 1 {
		t.Fatalf("before it is on shard %d", n)
	}
	mustExec(t, all["b"].Conn, "UPDATE firn.server SET shards = 3, keys = 'range:1,1001,2001'; SELECT firn.create_shard(2, 'insta2')")
	if n := c.ForKey("2500").Number(); n != 1 {
		t.Fatalf("right after a look it is on shard %d", n)
	}
	shard.HeardAt(c, time.Now().Add(-time.Minute))
	for key, want := range map[string]int64{"1": 0, "1000": 0, "1001": 1, "2000": 1, "2001": 2, "2500": 2} {
		if n := c.ForKey(key).Number(); n != want {
			t.Errorf("key %s is on shard %d, want %d", key, n, want)
		}
	}
	if err := c.ForKey("2500").InTx(t.Context(), func(tx pgx.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
	var numbers []int64
	for s := range c.All() {
		numbers = append(numbers, s.Number())
	}
	if len(numbers) != 3 {
		t.Errorf("all shards are %v", numbers)
	}
}

// TestRangeUnheard: where no server can say whether a range was added, a key of the last range is refused, and no
// other.
func TestRangeUnheard(t *testing.T) {
	t.Parallel()
	all := newServers(t, "range:1,1001", 2, "a", "b")
	pools := make(map[string]*pgxpool.Pool)
	for name, pool := range all.pools(t) {
		pools[name] = pool
	}
	c := openCluster(t, pools, nil)
	for _, pool := range pools {
		pool.Close()
	}
	shard.HeardAt(c, time.Now().Add(-time.Minute))
	if n := c.ForKey("7").Number(); n != 0 {
		t.Errorf("a key of the first range is on shard %d", n)
	}
	err := c.ForKey("2500").InTx(t.Context(), func(pgx.Tx) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "no server says whether a range of keys was added above shard 1") {
		t.Errorf("a key of the last range: %v", err)
	}
}
