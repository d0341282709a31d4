//go:build !windows

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsStranger: what doctor hints about a server whose database knows of no cluster can be
// typed, and does not take an empty database for the server that was lost.
func TestShardsStranger(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	c := database(t, testserver.Shared(t, movesServer), "c")
	flags = append(flags, "--server", "c="+c)
	doctor := func() string {
		out, _, _ := called(t, append([]string{"shard", "doctor"}, flags...)...)
		return out
	}
	out := doctor()
	hint := regexp.MustCompile(`server c: it is in no cluster; to take it into the cluster: firn (shard add-server c)\b`).FindStringSubmatch(out)
	if hint == nil {
		t.Fatal(out)
	}
	succeed(t, append(strings.Fields(hint[1]), flags...)...)
	if out := doctor(); strings.Contains(out, "server c: it is in no cluster") {
		t.Error(out)
	}
	if said := refuse(t, 2, append([]string{"shard", "add-server", "d"}, flags...)...); !strings.Contains(said, `"d" has no address`) {
		t.Error(said)
	}
	onDatabase(t, addresses[1], "DROP SCHEMA firn CASCADE; DROP SCHEMA insta1 CASCADE")
	out = doctor()
	if !strings.Contains(out, ", which is in no cluster, and the other servers have a server b in theirs; give the address of the database that is server b: --server b=") || strings.Contains(out, "add-server b") {
		t.Error(out)
	}
}
