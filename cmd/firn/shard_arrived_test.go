//go:build !windows

package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsArrivedLeaves: a move or a revert is told of when its shards are there already: typed
// again, or ended by a signal at that moment. It says what is left of the move, and what ends it.
func TestShardsArrivedLeaves(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 4 --yes")...)
	var named serverFlag
	if err := errors.Join(named.Set(flags[1]), named.Set(flags[3])); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ words, left, end string }{
		{"move 1 --to b", "to drop the old copies: firn shard finish 1", "firn shard finish 1"},
		{"revert 1", "to drop the other copies, after the revert: firn shard abort 1", "firn shard abort 1"},
	} {
		succeed(t, with(tt.words)...)
		out := succeed(t, with(tt.words)...)
		if !strings.Contains(out, "there is nothing to do") || !strings.Contains(out, tt.left+" --server ") {
			t.Errorf("firn shard %s again:\n%s", tt.words, out)
		}
		ctx, stop := context.WithCancelCause(t.Context())
		stop(errors.New("a signal"))
		var said strings.Builder
		cmd := newShards()
		cmd.SetErr(&said)
		cmd.SetOut(io.Discard)
		sayBrokenOff(ctx, cmd, named.servers, []int64{1}, "firn shard "+tt.words)
		if strings.Contains(said.String(), "firn shard revert") || !strings.Contains(said.String(), tt.end) {
			t.Errorf("firn shard %s, ended by a signal:\n%s", tt.words, &said)
		}
	}
	succeed(t, with("abort 1")...)
	if out := succeed(t, with("move 1 --to a")...); strings.Contains(out, "copy") {
		t.Error(out)
	}
}
