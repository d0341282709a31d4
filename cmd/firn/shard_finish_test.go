//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsFinishAsks: finish asks only where it would drop an old copy, and names the server
// and the shards that it would drop it of. Where it would drop nothing, it says why.
func TestShardsFinishAsks(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, append([]string{"shard", "init", "--count", "4", "--yes"}, flags[:2]...)...)
	succeed(t, append([]string{"shard", "add-server", "b=" + b}, flags[:2]...)...)
	// says is what finish says without --yes, and that it asks nothing else.
	says := func(state, list string, code int, want string) {
		t.Helper()
		said := strings.ReplaceAll(refuse(t, code, with("finish "+list)...), " --server a="+a+" --server b="+b, "")
		said = strings.ReplaceAll(said, " --server 'a="+a+"' --server 'b="+b+"'", "")
		if !strings.Contains(said, want) || (code == 1) == strings.Contains(said, "Drop them?") {
			t.Errorf("%s: %s", state, said)
		}
	}
	const onA = "it is on a, so there is no old copy to drop\nfirn: hint: "
	onDatabase(t, a, "CREATE TABLE insta0.t (id bigint PRIMARY KEY); INSERT INTO insta0.t VALUES (1)")

	leaves(t, a, with("move 1 --to b"))
	says("begun", "1", 1, "shard 1: "+onA+"to move it to b: firn shard move 1 --to b; to abort the move: firn shard abort 1\n")
	onDatabase(t, a, "UPDATE firn.shard SET state = 'moved', moved_to = 'b' WHERE shard = 1")
	says("between the servers", "1", 1, "shard 1: no server serves it now, so nothing is dropped\nfirn: hint: to open it: firn shard move 1 --to b\n")
	onDatabase(t, a, "UPDATE firn.shard SET state = 'open', moved_to = NULL WHERE shard = 1")

	succeed(t, with("move 0 --to b")...)
	says("moved", "0", 2, "This drops the old copy of shard 0 on a (")
	says("one moved, one not", "0-1", 1, onA)
	succeed(t, with("revert 0")...)
	says("reverted", "0", 1, "shard 0: "+onA+"to move it to b: firn shard move 0 --to b;")
	succeed(t, with("move 0 --to b")...)
	says("moved again", "0", 2, "This drops the old copy of shard 0 on a (")
	onDatabase(t, b, "SELECT firn.end_move(shard, term, attempt) FROM firn.shard WHERE shard = 0")
	says("a finish was killed before it dropped the copy", "0", 2, "This drops the old copy of shard 0 on a (")
	succeed(t, with("finish 0 --yes")...)
	if out := succeed(t, with("finish 0")...); out != "nothing to finish: these shards are in no move\n" {
		t.Errorf("finished: %s", out)
	}

	succeed(t, with("move 2-3 --to b")...)
	says("two moved", "2-3", 2, "This drops the old copies of shards 2-3 on a (")
	gone := []string{"--server", "a=postgres://127.0.0.1:1/x", "--server", "b=" + b}
	for _, command := range []string{"finish", "abort"} {
		said := refuse(t, 2, append([]string{"shards", command, "2-3", "--gone", "a"}, gone...)...)
		if !strings.Contains(said, "Is server a permanently gone? The moves of shard 2-3 from it or to it end: move and revert cannot continue them, and no copy is kept for it.") {
			t.Error(said)
		}
	}
}
