//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsCopyDroppedByHand: somebody has dropped the schema of an old copy. Moves of other shards
// work; doctor names what firn still lists of the copy, and --clean, init and reopen remove it.
func TestShardsCopyDroppedByHand(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 4 --yes")...) // 0 and 1 are a's
	onDatabase(t, b, "SELECT firn.create_shard(0, 'insta0')")
	onDatabase(t, a, "UPDATE firn.shard SET term = 9 WHERE shard = 0")
	succeed(t, with("reopen a --shards 0 --yes")...)
	onDatabase(t, b, `DROP SCHEMA insta0 CASCADE; CREATE TABLE kept AS SELECT shard, name, counter::oid AS counter, "offset"::oid AS o, identity FROM firn.generator WHERE shard = 0; ANALYZE firn.generator`)
	listed := func() int64 { return one[int64](t, b, "SELECT count(*) FROM firn.generator WHERE shard = 0") }
	if listed() == 0 {
		t.Fatal("nothing is left of the copy: the test shows nothing")
	}
	succeed(t, with("move 2 --to a")...)
	succeed(t, with("revert 2")...)

	const text = "left of a move: the list of sequences of insta0: the schema was dropped, and firn still lists the sequences that it had"
	for _, words := range []string{"doctor --clean", "init", "reopen b --yes"} {
		if out, errs, _ := called(t, with("doctor")...); !strings.Contains(out, text) || !strings.Contains(out, "firn shard doctor --clean") {
			t.Errorf("doctor: %s%s", out, errs)
		}
		if strings.HasPrefix(words, "reopen") {
			onDatabase(t, b, promoted)
		}
		called(t, with(words)...)
		if n := listed(); n != 0 {
			t.Errorf("firn shard %s leaves %d rows", words, n)
		}
		onDatabase(t, b, `INSERT INTO firn.generator SELECT shard, name, counter, o, identity FROM kept ON CONFLICT DO NOTHING`)
	}
}
