//go:build !windows

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
)

// newerServer is like movesServer, of the version that shards move to.
func newerServer(tb testing.TB, _ ...string) *testserver.Server {
	return testserver.PostgresTarget(tb, movesSettings...)
}

// upgradePage are the commands of docs/guides/shards-moving.md that take a cluster to a newer PostgreSQL.
func upgradePage(t *testing.T) (lines []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/guides/shards-moving.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "## A newer PostgreSQL\n")
	_, text, _ = strings.Cut(text, "```sh\n")
	text, _, _ = strings.Cut(text, "```")
	for line := range strings.Lines(text) {
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) != "" {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestShardsUpgrade types what docs/guides/shards-moving.md says of a newer PostgreSQL, while programs write through the
// router. Each row that was acknowledged is there once, on the new server. The versions are those of
// FIRN_TEST_POSTGRES=15-18.
func TestShardsUpgrade(t *testing.T) {
	testserver.TwoPostgreses(t)
	t.Parallel()
	upgrade(t, database(t, testserver.Shared(t, movesServer), "a"), database(t, testserver.Shared(t, newerServer), "b"))
}

// TestHostedUpgrade types the same as a role that is no superuser, and owns the shards too.
func TestHostedUpgrade(t *testing.T) {
	testserver.TwoPostgreses(t)
	testserver.FromPostgres(t, 16) // before that only a superuser may subscribe
	t.Parallel()
	upgrade(t, testdb.Hosted(t, movesServer(t)), testdb.Hosted(t, newerServer(t)))
}

func upgrade(t *testing.T, a, b string) {
	t.Helper()
	flags := []string{"--server", "a=" + a}
	succeed(t, append([]string{"shard", "init", "--count", "8", "--yes"}, flags...)...)
	dir := writeFiles(t, map[string]string{"1.sql": "CREATE TABLE photo (id bigint PRIMARY KEY DEFAULT next_id(), n bigint, x text, no bigserial)"})
	succeed(t, append([]string{"shard", "apply", dir}, flags...)...)
	var w *photos
	lines := upgradePage(t)
	for _, line := range lines {
		line = strings.NewReplacer("postgres://firn@db2/app", b, "0-499", "0-7 --yes").Replace(line)
		args := strings.Fields(strings.TrimPrefix(line, "firn "))
		t.Logf("%s\n%s", line, succeed(t, append(args, flags...)...))
		if args[1] == "add-server" {
			flags = append(flags, "--server", "b="+b)
			w = photographers(t, map[string]string{"a": a, "b": b}, 8)
		}
		w.some(t)
	}
	if len(lines) < 8 {
		t.Fatalf("%d commands: %q", len(lines), lines)
	}
	w.stop(t, flags[2:])
	if here := one[int](t, b, "SELECT count(*) FROM firn.shard AS s WHERE state = 'open' AND firn.is_here(s)"); here != 8 {
		t.Errorf("%d shards are on the new server", here)
	}
}
