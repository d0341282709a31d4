//go:build !windows

package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// restricted are the lines of a dump that only psql understands.
var restricted = regexp.MustCompile(`(?m)^\\(un)?restrict .*$`)

// dumpOf is the SQL that makes a schema of a database again.
func dumpOf(t *testing.T, schema, address string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "pg_dump", "--inserts", "--schema="+schema, "--dbname="+address).Output()
	if err != nil {
		t.Fatal(err)
	}
	return restricted.ReplaceAllString(string(out), "")
}

// TestShardsFirnDropped: somebody has dropped the schema firn, and the shards are there with their rows. No
// command sends to another that refuses too, or says to drop the shards. A dump of the schema firn and a
// reopen let the shards serve again, with all rows.
func TestShardsFirnDropped(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	with := func(words string) []string { return append(strings.Fields("shard "+words), flags...) }
	a, b := addresses[0], addresses[1]
	onDatabase(t, b, "CREATE TABLE insta1.t (id bigint PRIMARY KEY DEFAULT insta1.next_id())")
	dumps := map[string]string{a: dumpOf(t, "firn", a), b: dumpOf(t, "firn", b)}
	last := one[int64](t, b, "INSERT INTO insta1.t DEFAULT VALUES RETURNING id")

	for _, gone := range [][]string{{b}, {a, b}} {
		for _, address := range gone {
			onDatabase(t, address, "DROP SCHEMA firn CASCADE")
		}
		for _, words := range []string{"doctor", "status", "init", "init --count 2 --yes", "adopt --keys-by hash --dry-run", "add-server b", "move 1 --to a", "reopen b --yes", "remove-server b", "rebalance"} {
			out, errs, code := called(t, with(words)...)
			said := out + errs
			if code == 0 || !strings.Contains(said, `is lost, and these schemas make ids with it: insta`) || !strings.Contains(said, `docs/reference/shards-recovery.md, "A schema firn that is lost"`) {
				t.Errorf("firn shard %s does not say what is lost, and where the cure stands:\n%s", words, said)
			}
			if told := steps(said); len(told) > 0 || strings.Contains(said, "drop") && strings.Contains(said, "rename") {
				t.Errorf("firn shard %s sends to %q, which refuses:\n%s", words, told, said)
			}
		}
		for _, address := range gone {
			onDatabase(t, address, dumps[address])
		}
		for _, name := range []string{"a", "b"} {
			succeed(t, with("reopen "+name+" --yes")...)
		}
		succeed(t, with("doctor")...)
		if id := one[int64](t, b, "INSERT INTO insta1.t DEFAULT VALUES RETURNING id"); id <= last {
			t.Errorf("id %d after %d", id, last)
		}
	}
	if n := one[int64](t, b, "SELECT count(*) FROM insta1.t"); n != 3 {
		t.Errorf("%d rows", n)
	}
}
