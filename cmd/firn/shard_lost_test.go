//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsLost: whoever says that a server is gone is told what is lost with it before anybody
// asks for --yes, a dry run says the same as the command, and the hints lead to an end.
func TestShardsLost(t *testing.T) {
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	says := func(words string, want ...string) {
		t.Helper()
		said := refuse(t, 1, with(words)...)
		for _, text := range want {
			if !strings.Contains(said, text) {
				t.Errorf("firn shard %s: no %q in\n%s", words, text, said)
			}
		}
		if strings.Contains(said, "--yes") {
			t.Errorf("firn shard %s is refused with --yes too, and offers it:\n%s", words, said)
		}
	}
	succeed(t, with("init --count 8 --yes")...) // 0 to 3 on a
	succeed(t, with("move 2 --to b")...)
	leaves(t, a, with("move 1 --to b"))
	// Both answer: no command that fits one of them only is hinted.
	for _, words := range []string{"finish 2 --gone b", "abort 2 --gone b", "abort 1 --gone a", "finish 2 --gone a"} {
		says(words, "is not gone, it answers", "hint: to see which server serves each shard, and what to type: firn shard status --server ")
	}

	flags[3] = "b=postgres://127.0.0.1:1/x"
	says("abort 2 --gone b", "shard 2 was given to b: rows that were written there since may be missing on a")
	for _, words := range []string{"reopen a --shards 2 --gone b", "reopen a --shards 2 --gone b --dry-run"} {
		says(words, "shard 2: a may lack rows of it", "then: firn shard reopen b --server ", "to open the rows that a has: firn shard reopen a --shards 2 --incomplete --gone b --server ")
	}

	flags[1], flags[3] = "a=postgres://127.0.0.1:1/x", "b="+b
	for _, words := range []string{"abort 1 --gone a", "finish 1 --gone a"} {
		says(words, "shard 1 is on a, and the copy on b is not complete")
	}
	for _, words := range []string{"reopen b --shards 1 --gone a", "reopen b --shards 1 --gone a --dry-run"} {
		says(words, "shard 1: b may lack rows of it", "then: firn shard reopen a --server ", "firn shard reopen b --shards 1 --incomplete --gone a --server ")
	}
	// What only a had, b knows nothing of.
	for _, words := range []string{"reopen b --shards 0 --gone a", "reopen b --shards 0 --gone a --dry-run"} {
		says(words, "server b has no copy of shard 0", "then: firn shard reopen a --server ", "the rows are lost")
	}
	succeed(t, with("reopen b --shards 1 --incomplete --gone a --yes")...)
	onDatabase(t, b, "SELECT insta1.next_id()")

	// There is no backup: the shards are made anew, and the server leaves the cluster.
	succeed(t, with("finish 2 --gone a --yes")...)
	says("remove-server a --gone a", "no other server knows shard 0: ", `docs/guides/shards-operating.md, "A server that is lost"`)
	for _, n := range []string{"0", "3", "4", "5", "6", "7"} {
		onDatabase(t, b, "SELECT firn.create_shard("+n+", 'insta"+n+"')")
	}
	succeed(t, with("reopen b --shards 0,3-7 --incomplete --gone a --yes")...)
	onDatabase(t, b, "SELECT insta0.next_id(), insta7.next_id()")
	flags = flags[2:]
	succeed(t, with("remove-server a --gone a --yes")...)
	succeed(t, with("status")...)
}
