//go:build !windows

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsDeployInRebalance: files are applied one after the other while a rebalance is under way, and
// both end. Shards in moves are left out, and the next run of apply gives them their files.
func TestShardsDeployInRebalance(t *testing.T) {
	testserver.OnlyLong(t) // TestShardsApplyInMove applies files beside one move
	t.Parallel()
	// What the files do; one is not a transaction.
	files := []string{
		"ALTER TABLE photo ADD c1 integer DEFAULT 1", "ALTER TABLE photo ADD c2 integer DEFAULT 2",
		"-- firn: no transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS photo_c2 ON photo (c2)",
		"ALTER TABLE photo ADD c3 integer DEFAULT 3",
	}
	shards, names := 6, []string{"a", "b", "c"}
	if testserver.Long() {
		shards, names = 16, append(names, "d")
	}
	postgres := testserver.Shared(t, movesServer)
	urls := make(map[string]string)
	var flags []string
	for _, name := range names {
		urls[name] = database(t, postgres, name)
		flags = append(flags, "--server", name+"="+urls[name])
	}
	succeed(t, append([]string{"shard", "init", "--count", fmt.Sprint(shards), "--yes"}, flags[:2]...)...)
	dir := writeFiles(t, map[string]string{"0.sql": "CREATE TABLE photo (id bigint PRIMARY KEY DEFAULT next_id(), x text); INSERT INTO photo (x) SELECT repeat('x', 200) FROM generate_series(1, 3000)"})
	succeed(t, append([]string{"shard", "apply", dir}, flags[:2]...)...)
	added := []string{"shard", "add-server"}
	for _, name := range names[1:] {
		added = append(added, name+"="+urls[name])
	}
	succeed(t, append(added, flags[:2]...)...)

	rebalance := command(t, "none", append([]string{"shard", "rebalance"}, flags...)...)
	if err := rebalance.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() { ended <- rebalance.code(t) }()
	await(t, "a move begins", func() bool { return one[int](t, urls["a"], "SELECT count(*) FROM firn.move") > 0 })
	leftOut := 0
	for i, file := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.sql", i+1)), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs, code := called(t, append([]string{"shard", "apply", dir}, flags...)...)
		if code != 0 {
			leftOut++
			if code != 1 || !strings.Contains(errs, "is not finished, so no file is applied there now") && !strings.Contains(errs, "its move began meanwhile") {
				t.Errorf("apply: exit code %d\n%s", code, errs)
			}
		}
		time.Sleep(time.Second / 2)
	}
	if code := <-ended; code != 0 {
		t.Errorf("rebalance: exit code %d\n%s", code, &rebalance.errs)
	}
	if t.Logf("%d of %d runs of apply left out shards", leftOut, len(files)); leftOut == 0 {
		t.Error("no file was applied beside a move")
	}
	succeed(t, append([]string{"shard", "apply", dir}, flags...)...)
	served := 0
	for name, url := range urls {
		n := one[int](t, url, "SELECT count(*) FROM firn.shard WHERE state = 'open'")
		if n != shards/len(urls) {
			t.Errorf("%s has %d shards", name, n)
		}
		served += n
		const done = "FROM pg_class AS c JOIN firn.shard AS s ON s.schema = c.relnamespace::regnamespace::text WHERE s.state = 'open'"
		if columns := one[int](t, url, "SELECT count(*) FROM (SELECT c.oid "+done+" AND c.relname = 'photo') AS c JOIN pg_attribute AS a ON a.attrelid = c.oid WHERE a.attname ~ '^c[0-9]$'"); columns != n*3 {
			t.Errorf("%s: %d columns on %d shards", name, columns, n)
		}
		if indexes := one[int](t, url, "SELECT count(*) "+done+" AND c.relname = 'photo_c2'"); indexes != n {
			t.Errorf("%s: %d indexes on %d shards", name, indexes, n)
		}
	}
	if served != shards {
		t.Errorf("%d shards are served", served)
	}
}
