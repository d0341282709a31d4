//go:build !windows

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsReopenHops: after a backup of server b a shard went to c, from there to a, and back to b. The backup in
// the place of b has the only rows of it that are left, and b opens it.
func TestShardsReopenHops(t *testing.T) {
	t.Parallel()
	server := testserver.Shared(t, testserver.Postgres)
	addresses := map[string]string{}
	var flags []string
	for _, name := range []string{"a", "b", "c"} {
		addresses[name] = database(t, server, name)
		flags = append(flags, "--server", name+"="+addresses[name])
	}
	with := func(line string) []string { return slices.Concat([]string{"shard"}, strings.Fields(line), flags) }
	succeed(t, with("init --yes --count 3")...) // a has shard 0, b 1, c 2
	// As finished moves leave it, and as the backup has it: open at the term of before.
	for name, row := range map[string]string{"c": "'moved', 4, 'a'", "a": "'moved', 6, 'b'"} {
		onDatabase(t, addresses[name], `INSERT INTO firn.shard (shard, schema, state, term, moved_to, attempt, system, timeline, database, relation, incarnation)
			SELECT 1, 'insta1', `+row+`, 'x', system, timeline, database, relation, incarnation FROM firn.shard LIMIT 1`)
	}
	onDatabase(t, addresses["b"], "UPDATE firn.shard SET relation = 0")
	for _, words := range []string{"status", "doctor"} {
		if said, errs, _ := called(t, with(words)...); !strings.Contains(said, "b opens it with the rows of its backup, and rows that were written since are lost: firn shard reopen b --shards 1 ") {
			t.Errorf("firn shard %s: %s%s", words, said, errs)
		}
	}
	if said, errs, code := called(t, with("reopen b --yes")...); code != 0 || strings.Contains(said+errs, "will not be opened") {
		t.Errorf("%d: %s%s", code, said, errs)
	}
	if said, errs, code := called(t, with("status")...); code != 0 {
		t.Errorf("%d: %s%s", code, said, errs)
	}
	onDatabase(t, addresses["b"], "SELECT insta1.next_id()")
}
