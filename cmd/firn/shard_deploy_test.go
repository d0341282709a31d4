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
	t.Parallel()
	const shards, files = 6, 4
	postgres := testserver.Shared(t, movesServer)
	urls := make(map[string]string)
	var flags []string
	for _, name := range []string{"a", "b", "c"} {
		urls[name] = database(t, postgres, name)
		flags = append(flags, "--server", name+"="+urls[name])
	}
	succeed(t, append([]string{"shard", "init", "--count", fmt.Sprint(shards), "--yes"}, flags[:2]...)...)
	dir := writeFiles(t, map[string]string{"0.sql": "CREATE TABLE photo (id bigint PRIMARY KEY DEFAULT next_id(), x text); INSERT INTO photo (x) SELECT repeat('x', 200) FROM generate_series(1, 3000)"})
	succeed(t, append([]string{"shard", "apply", dir}, flags[:2]...)...)
	succeed(t, append([]string{"shard", "add-server", "b=" + urls["b"], "c=" + urls["c"]}, flags[:2]...)...)

	rebalance := command(t, "none", append([]string{"shard", "rebalance"}, flags...)...)
	if err := rebalance.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() { ended <- rebalance.code(t) }()
	leftOut := 0
	for n := 1; n <= files; n++ {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.sql", n)), fmt.Appendf(nil, "ALTER TABLE photo ADD c%d integer DEFAULT %[1]d", n), 0o600); err != nil {
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
	t.Logf("%d of %d runs of apply left out shards", leftOut, files)
	succeed(t, append([]string{"shard", "apply", dir}, flags...)...)
	served := 0
	for name, url := range urls {
		n := one[int](t, url, "SELECT count(*) FROM firn.shard WHERE state = 'open'")
		if n != shards/len(urls) {
			t.Errorf("%s has %d shards", name, n)
		}
		served += n
		if columns := one[int](t, url, "SELECT count(*) FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN firn.shard AS s ON s.schema = c.relnamespace::regnamespace::text WHERE s.state = 'open' AND c.relname = 'photo' AND a.attname ~ '^c[0-9]$'"); columns != n*files {
			t.Errorf("%s: %d columns on %d shards", name, columns, n)
		}
	}
	if served != shards {
		t.Errorf("%d shards are served", served)
	}
}
