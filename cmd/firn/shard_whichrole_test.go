//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsWhichRole: a command of the owner was given another role, or a superuser the name of a server that was taken
// out. What is said names the owner, and works as it is typed.
func TestShardsWhichRole(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	flags, super := ownedServers(t, "whichrole")
	server := testserver.Shared(t, rolesServer)
	c := database(t, server, "c")
	onDatabase(t, c, "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO whichrole', current_database()); END $$")
	onDatabase(t, c, "CREATE ROLE whichapp LOGIN; GRANT firn_app TO whichapp")
	owned := strings.Replace(c, "postgres://t@", "postgres://whichrole@", 1)
	succeed(t, append(strings.Fields("shard add-server c="+owned), flags...)...)
	all := append(flags, "--server", "c="+owned)
	var app []string
	for _, flag := range all {
		app = append(app, strings.Replace(flag, "postgres://whichrole@", "postgres://whichapp@", 1))
	}
	said := refuse(t, 1, append(strings.Fields("shard remove-server c"), app...)...)
	if strings.Contains(said, "SUPERUSER") || !strings.Contains(said, "the schema firn belongs to the role whichrole, and this is whichapp") || !strings.Contains(said, "c=postgres://whichrole@127.0.0.1:") {
		t.Error(said)
	}
	out, _, code := called(t, append(strings.Fields("shard doctor"), app...)...)
	if code != 3 || !strings.Contains(out, "it runs, and refuses: this takes the role whichrole, which owns the schema firn: --server b=postgres://whichrole@HOST/DATABASE") {
		t.Errorf("doctor: exit code %d\n%s", code, out)
	}

	succeed(t, append(strings.Fields("shard remove-server c"), all...)...)
	for _, flags := range [][]string{append(super, "--server", "c="+c), all} {
		said := refuse(t, 1, append(strings.Fields("shard move 0 --to c"), flags...)...)
		_, told, _ := strings.Cut(said, "to make it one of the cluster: ")
		succeed(t, shellWords(told[:commandEnd(told)])[1:]...)
		succeed(t, append(strings.Fields("shard remove-server c"), all...)...)
	}
}

// TestShardsRemoveBesideMove: the owner takes a server out while a superuser moves a shard between two others. A
// server of that move is refused, with how the move is seen.
func TestShardsRemoveBesideMove(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	flags, super := ownedServers(t, "besideowner")
	c := database(t, testserver.Shared(t, rolesServer), "c")
	onDatabase(t, c, "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO besideowner', current_database()); END $$")
	owned := "c=" + strings.Replace(c, "postgres://t@", "postgres://besideowner@", 1)
	succeed(t, append(strings.Fields("shard add-server "+owned), flags...)...)
	flags, super = append(flags, "--server", owned), append(super, "--server", "c="+c)
	succeed(t, append(strings.Fields("shard move 0 --to b"), super...)...)
	for _, name := range []string{"a", "b"} {
		said := refuse(t, 1, append(strings.Fields("shard remove-server "+name), flags...)...)
		if !strings.Contains(said, "the move of shard 0 from a to b is not finished") || !strings.Contains(said, "a=postgres://SUPERUSER@127.0.0.1:") {
			t.Errorf("remove-server %s:\n%s", name, said)
		}
	}
	if out := succeed(t, append(strings.Fields("shard remove-server c"), flags...)...); !strings.Contains(out, "server c is no longer in the cluster") {
		t.Error(out)
	}
}

// TestShardsTwiceAsOwner: a superuser has moved a shard, and the disk of the source was put back. The owner may not see
// all of the move, and sees in the line of the move that two servers serve the shard.
func TestShardsTwiceAsOwner(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	flags, super := ownedServers(t, "twiceowner")
	succeed(t, append(strings.Fields("shard move 0 --to b"), super...)...)
	succeed(t, append(strings.Fields("shard move 2 --to a"), super...)...) // so that b refuses to show its moves
	onDatabase(t, strings.TrimPrefix(super[1], "a="), "UPDATE firn.shard SET state = 'open', moved_to = NULL, term = 1 WHERE shard = 0")
	for _, flags := range [][]string{super, flags} {
		out, _, _ := called(t, append(strings.Fields("shard status"), flags...)...)
		_, moving, _ := strings.Cut(out, "\nMOVING")
		moving, _, _ = strings.Cut(moving, "\nbad:")
		if !strings.Contains(moving, "\n1 shard: a and b serve it at once") || !strings.Contains(moving, "firn shard reopen b --shards 0") || strings.Contains(moving, "shard 0 serves") {
			t.Error(out)
		}
	}
}
