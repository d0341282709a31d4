//go:build !windows

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestImportExampleLeavesOutShards: the query that the help shows for PostgreSQL does not read firn's own sequences,
// in a database that has shards.
func TestImportExampleLeavesOutShards(t *testing.T) {
	t.Parallel()
	address := database(t, testserver.Shared(t, testserver.Postgres), "a")
	succeed(t, "shard", "init", "--yes", "--count", "2", "--server", "a="+address)
	onDatabase(t, address, "SELECT insta0.next_id(); CREATE TABLE users (id bigserial PRIMARY KEY); INSERT INTO users DEFAULT VALUES")
	query := regexp.MustCompile(`--query "(SELECT [^"]*pg_sequences[^"]*)"`).FindStringSubmatch(newSeriesImport().Example)
	if query == nil {
		t.Fatal("the help has no example for PostgreSQL")
	}
	run := func(query string) string {
		return succeed(t, "series", "import", "--dry-run", "--query", query, "--db", address, "--store", "sqlite:"+filepath.Join(t.TempDir(), "s.db"))
	}
	all, _, _ := strings.Cut(query[1], " AND ")
	if !strings.Contains(run(strings.Replace(all, "sequencename", "schemaname || sequencename", 1)), "firnclock_state") {
		t.Error("firn has no sequences there: the test shows nothing")
	}
	out := run(query[1])
	if n := strings.Count(out, "begin"); n != 1 || !strings.Contains(out, "users_id_seq") {
		t.Errorf("it imports\n%s", out)
	}
}
