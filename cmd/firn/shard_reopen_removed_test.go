//go:build !windows

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsReopenAfterRemoval: server b was put back to a state in which the cluster had server c, which was removed
// since and is stopped. Its hints lead to a cluster of a and b.
func TestShardsReopenAfterRemoval(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	onDatabase(t, addresses[1], "UPDATE firn.shard SET relation = 0; UPDATE firn.server SET servers = servers || 'c'::text")
	with := func(line string) []string { return slices.Concat([]string{"shard"}, strings.Fields(line), flags) }
	said, errs, code := called(t, with("reopen b")...)
	if code == 0 || !strings.Contains(errs, "firn shard reopen b --gone c --server") || !strings.Contains(errs, "firn shard remove-server c --gone c --server") {
		t.Fatalf("%d: %s%s", code, said, errs)
	}
	succeed(t, with("reopen b --gone c --yes")...)
	succeed(t, with("remove-server c --gone c --yes")...)
	succeed(t, with("status")...)
	succeed(t, with("doctor")...)
}
