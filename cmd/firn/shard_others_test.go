//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsOthers: move, revert and rebalance refuse a shard that a publication of somebody
// else has, until somebody says that its consumers know.
func TestShardsOthers(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	run := func(args ...string) []string { return append(append([]string{"shards"}, args...), flags...) }
	succeed(t, "shard", "init", "--count", "2", "--yes", "--server", "a="+a)
	succeed(t, "shard", "add-server", "b="+b, "--server", "a="+a)
	onDatabase(t, a, `CREATE TABLE insta0.orders (id bigint PRIMARY KEY); CREATE TABLE insta1.orders (id bigint PRIMARY KEY); CREATE PUBLICATION cdc FOR ALL TABLES;
		CREATE FUNCTION insta0.g(s regclass) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval(s); END $$`)
	const want = "the publication cdc has all tables of it, and its consumers would get no rows of it any more"
	const cure = "if they know of the move, and read from b too: --consumers-know cdc"
	for _, args := range [][]string{{"move", "0", "--to", "b", "--dry-run"}, {"move", "0", "--to", "b"}, {"rebalance", "--dry-run"}, {"rebalance"}} {
		if said := refuse(t, 3, run(args...)...); !strings.Contains(said, want) || !strings.Contains(said, cure) {
			t.Errorf("%s: %s", args, said)
		}
	}
	const note = "these draw from a sequence that their text does not name: function insta0.g(regclass) (move it only if that is a sequence of the schema insta0)"
	if said := succeed(t, run("move", "0", "--to", "b", "--dry-run", "--consumers-know", "cdc")...); !strings.Contains(said, "look: shard 0 on a: "+note) {
		t.Error(said)
	}
	succeed(t, run("move", "0", "--to", "b", "--consumers-know", "cdc")...)
	onDatabase(t, b, "CREATE PUBLICATION late FOR TABLE insta0.orders")
	if said := refuse(t, 3, run("revert", "0")...); !strings.Contains(said, "the publication late has orders of it") || !strings.Contains(said, "read from a too: --consumers-know late") {
		t.Error(said)
	}
	succeed(t, run("revert", "0", "--consumers-know", "late")...)
}
