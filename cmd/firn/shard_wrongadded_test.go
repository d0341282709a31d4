//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsAddedWrongAddress: a server was added with the address of another, empty database. With the address
// corrected every command says how the right database comes into the cluster, and what they say works as it is typed.
func TestShardsAddedWrongAddress(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	_, flags := twoServers(t, 4)
	server := testserver.Shared(t, testserver.Postgres)
	spare, app := database(t, server, "spare"), database(t, server, "app")
	succeed(t, append(strings.Fields("shard add-server c="+spare), flags...)...)
	right := append(flags, "--server", "c="+app)
	var told string
	for _, words := range []string{"init", "doctor", "status", "move 0 --to b", "remove-server c --gone c", "remove-server c", "add-server c", "add-server c=" + app} {
		all := right
		if strings.Contains(words, "=") {
			all = flags
		}
		out, errs, code := called(t, append(strings.Fields("shard "+words), all...)...)
		said := out + errs
		_, told, _ = strings.Cut(said, "c was added with the address of another database: ")
		if code == 0 || !strings.HasPrefix(told, "firn shard remove-server c --server ") || !strings.Contains(told, "c=postgres://USER@HOST/THAT_DATABASE") || !strings.Contains(told, ". Then: firn shard add-server c=postgres://USER@HOST/DATABASE") {
			t.Errorf("firn shard %s: exit code %d\n%s", words, code, said)
		}
	}
	told = strings.NewReplacer("postgres://USER@HOST/THAT_DATABASE", spare, "postgres://USER@HOST/DATABASE", app).Replace(told)
	remove, add, _ := strings.Cut(told, ". Then: ")
	for _, hint := range []string{remove, add} {
		succeed(t, shellWords(hint[:commandEnd(hint)])[1:]...)
	}
	succeed(t, append(strings.Fields("shard status"), right...)...)
	if !one[bool](t, app, "SELECT name = 'c' FROM firn.server") || one[bool](t, spare, "SELECT 'c' = ANY (servers) FROM firn.server") {
		t.Error("the empty database is still server c")
	}
}

// TestShardsAddedWrongAddressHadShard: where a shard went to the server, or none of the others has one, its rows
// may be on it, and nobody is told to take it out.
func TestShardsAddedWrongAddressHadShard(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	server := testserver.Shared(t, testserver.Postgres)
	spare, app := database(t, server, "spare"), database(t, server, "app")
	succeed(t, append(strings.Fields("shard add-server c="+spare), flags...)...)
	for _, change := range []string{
		"INSERT INTO firn.shard (shard, schema, state, term, moved_to) VALUES (1, 'insta1', 'moved', 0, 'c')",
		"DELETE FROM firn.shard WHERE shard = 1; DELETE FROM firn.generator; DELETE FROM firn.shard",
	} {
		onDatabase(t, addresses[0], change)
		for _, words := range []string{"init", "doctor", "status", "remove-server c", "add-server c"} {
			out, errs, _ := called(t, append(append(strings.Fields("shard "+words), flags...), "--server", "c="+app)...)
			if said := out + errs; strings.Contains(said, "another database: firn") || !strings.Contains(said, `docs/guides/shards-operating.md, "A server that is lost"`) {
				t.Errorf("firn shard %s: %s", words, said)
			}
		}
	}
}
