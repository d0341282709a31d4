//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsOwnerLacksMark: a superuser has begun a move. To the owner status, revert and doctor say which right is
// missing, and with whose addresses the command succeeds.
func TestShardsOwnerLacksMark(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	flags, super := ownedServers(t, "markowner")
	succeed(t, append(strings.Fields("shard move 0 --to b"), super...)...)
	for _, command := range []string{"shard status", "shard revert 0", "shard finish 0", "shard doctor"} {
		out, errs, _ := called(t, append(strings.Fields(command), flags...)...)
		said := out + errs
		if !strings.Contains(said, "the role that began the move owns its table firn_mark") || !strings.Contains(said, "a=postgres://SUPERUSER@127.0.0.1:") {
			t.Errorf("%s:\n%s", command, said)
		}
	}
	succeed(t, append(strings.Fields("shard revert 0"), super...)...)
}
