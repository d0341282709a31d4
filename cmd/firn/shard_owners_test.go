//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsOneOwner: no server comes into a cluster with another role than the one that the shards of
// the other servers belong to, and where it happened, what firn says leads out of it.
func TestShardsOneOwner(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	flags, super := ownedServers(t, "oneowner")
	server := testserver.Shared(t, movesServer)
	as := func(address string) string {
		return strings.Replace(address, "postgres://t@", "postgres://oneowner@", 1)
	}
	c, d := database(t, server, "c"), database(t, server, "d")
	for _, address := range []string{c, d} {
		onDatabase(t, address, "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO oneowner', current_database()); END $$")
	}
	with := func(words string, more ...string) []string {
		return append(append(strings.Fields("shards "+words), flags...), more...)
	}
	said := refuse(t, 1, with("add-server c="+c)...)
	if !strings.Contains(said, "server c: its address has the role t, and the shards of the other servers belong to the role oneowner") || !strings.Contains(said, "c=postgres://oneowner@HOST/DATABASE") {
		t.Errorf("add-server: %s", said)
	}
	said = refuse(t, 1, "shard", "init", "--count", "2", "--yes", "--server", "c="+as(c), "--server", "d="+d)
	if !strings.Contains(said, "server d: its address has the role t, and the shards of the other servers belong to the role oneowner") || !strings.Contains(said, "d=postgres://oneowner@HOST/DATABASE") {
		t.Errorf("init: %s", said)
	}

	// As an earlier version of firn, or somebody by hand, has left it.
	succeed(t, with("add-server c="+as(c))...)
	onDatabase(t, c, "REASSIGN OWNED BY oneowner TO t")
	dir := t.TempDir()
	writeFile(t, dir+"/001_t.sql", "CREATE TABLE t (n integer)")
	for _, words := range []string{"init", "apply " + dir, "remove-server c"} {
		said := refuse(t, 1, with(words, "--server", "c="+as(c))...)
		if !strings.Contains(said, "--server a=postgres://oneowner@HOST/DATABASE --server b=postgres://oneowner@HOST/DATABASE --server c=postgres://t@HOST/DATABASE") || !strings.Contains(said, "firn shard doctor") {
			t.Errorf("firn shard %s: %s", words, said)
		}
	}
	for _, address := range []string{c, as(c)} {
		out, _, _ := called(t, with("doctor", "--server", "c="+address)...)
		for _, want := range []string{"the schema firn belongs to the role t here, and to oneowner on the other servers", "firn shard remove-server c --server", "DROP SCHEMA firn CASCADE", "firn shard add-server c=postgres://oneowner@HOST/DATABASE"} {
			if !strings.Contains(out, want) {
				t.Errorf("doctor does not say %q:\n%s", want, out)
			}
		}
	}
	succeed(t, with("rebalance --drain c", "--server", "c="+c)...)
	succeed(t, with("remove-server c", "--server", "c="+c)...)
	said = refuse(t, 1, with("add-server c="+c)...)
	if !strings.Contains(said, "on server c, as the role t: DROP SCHEMA firn CASCADE. Then, in the same command") {
		t.Errorf("add-server again: %s", said)
	}
	onDatabase(t, c, "DROP SCHEMA firn CASCADE")
	succeed(t, with("add-server c="+as(c))...)
	if out, _, _ := called(t, append([]string{"shard", "doctor", "--server", "c=" + c}, super...)...); strings.Contains(out, "belongs to the role") {
		t.Errorf("doctor: %s", out)
	}
}
