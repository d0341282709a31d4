//go:build !windows

package main

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
)

// databaseName is the name of the database of an address, and the same address with another one.
func databaseName(t *testing.T, address, other string) (name, changed string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name = strings.TrimPrefix(u.Path, "/")
	u.Path = "/" + other
	return name, u.String()
}

// copyDatabase copies a database under a name of its own, beside the original, and returns the address.
func copyDatabase(t *testing.T, server *testserver.Server, address, name string) string {
	t.Helper()
	own := strings.ToLower(t.Name()) + name
	from, changed := databaseName(t, address, own)
	c, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	await(t, "nobody is connected", func() bool {
		if _, err := c.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", from); err != nil {
			t.Fatal(err)
		}
		_, err := c.Exec(t.Context(), "CREATE DATABASE "+own+" TEMPLATE "+from)
		return err == nil
	})
	t.Cleanup(func() { testdb.Drop(server.URL(), own) })
	return changed
}

// TestShardsStray: the address of a server leads to another database on the same host: an empty one, a
// copy of the server's, or the one of another server. Whatever is asked names the address that is wrong
// and what it leads to, changes nothing, and sends nobody to a command that cannot help.
func TestShardsStray(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	right := []string{"--server", "a=" + a, "--server", "b=" + b}
	succeed(t, append(strings.Fields("shard init --count 4 --yes"), right...)...)
	succeed(t, append(strings.Fields("shard move 0 --to b"), right...)...)
	leaves(t, a, append(strings.Fields("shard move 1 --to b"), right...))
	nameA, _ := databaseName(t, a, "")
	nameB, _ := databaseName(t, b, "")
	empty := database(t, postgres, "wrong")
	nameWrong, _ := databaseName(t, empty, "")
	standing := func() string {
		const rows = "SELECT string_agg(concat_ws(' ', shard, state, term, attempt), ',' ORDER BY shard) FROM firn.shard"
		return one[string](t, a, rows) + "; " + one[string](t, b, rows)
	}
	copyA, copyB := copyDatabase(t, postgres, a, "acopy"), copyDatabase(t, postgres, b, "bcopy")
	before := standing()
	for _, tt := range []struct {
		name, a, b, want, do string
	}{
		{"a is empty", empty, b, "server a: its address leads to the database " + nameWrong + ", which is in no cluster, and the other servers have a server a in theirs", "--server a=postgres://USER@HOST/DATABASE"},
		{"b is empty", a, empty, "server b: its address leads to the database " + nameWrong + ", which is in no cluster", "--server b=postgres://USER@HOST/DATABASE"},
		{"a is a copy", copyA, b, "server a: its address leads to the database " + nameA + "copy, which is a copy of the database " + nameA + " beside it", "--server a=postgres://USER@HOST/" + nameA},
		{"b is a copy", a, copyB, "server b: its address leads to the database " + nameB + "copy, which is a copy of the database " + nameB + " beside it", "--server b=postgres://USER@HOST/" + nameB},
		{"b is a", a, a, "server b: its address leads to the database " + nameA + ", which calls itself a", "--server b=postgres://USER@HOST/DATABASE"},
		{"exchanged", b, a, "server a: its address leads to the database " + nameB + ", which calls itself b", "--server a=postgres://USER@HOST/DATABASE"},
	} {
		flags := []string{"--server", "a=" + tt.a, "--server", "b=" + tt.b}
		for _, words := range []string{
			"status", "doctor", "doctor --clean", "finish 0 --yes", "finish 0-1", "abort 1", "move 1 --to b", "move 2 --to a", "revert 0",
			"rebalance --dry-run", "reopen a --yes", "reopen b --yes", "ls", "ls --map",
		} {
			out, errs, code := called(t, append(strings.Fields("shards "+words), flags...)...)
			said := out + errs
			if !strings.Contains(said, tt.want) {
				t.Errorf("%s: firn shard %s does not say %q:\n%s", tt.name, words, tt.want, said)
			}
			if code == 0 && words != "ls" {
				t.Errorf("%s: firn shard %s exits with 0:\n%s", tt.name, words, said)
			}
			if !strings.Contains(said, tt.do) && !slices.Contains([]string{"ls", "ls --map"}, words) {
				t.Errorf("%s: firn shard %s does not say %q:\n%s", tt.name, words, tt.do, said)
			}
			if told := toldMoves(said); len(told) > 0 {
				t.Errorf("%s: firn shard %s leads to %q:\n%s", tt.name, words, told, said)
			}
		}
	}
	if after := standing(); after != before {
		t.Errorf("the servers said %s, and now %s", before, after)
	}
	// Where the original is not to serve any more, the hint of reopen leads to a copy that serves.
	said := refuse(t, 1, append(strings.Fields("shard reopen b --yes"), "--server", "a="+a, "--server", "b="+copyB)...)
	if !strings.Contains(said, "ALTER DATABASE "+nameB+" RENAME TO another_name") {
		t.Fatal(said)
	}
	await(t, "b is renamed", func() bool {
		onDatabase(t, postgres.URL(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+nameB+"'")
		c, err := pgx.Connect(t.Context(), postgres.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		_, err = c.Exec(t.Context(), "ALTER DATABASE "+nameB+" RENAME TO "+nameB+"old")
		return err == nil
	})
	succeed(t, append(strings.Fields("shard reopen b --yes"), "--server", "a="+a, "--server", "b="+copyB)...)
	one[int64](t, copyB, "SELECT insta2.next_id()")
	_, old := databaseName(t, b, nameB+"old")
	if code := sqlCode(t, old, "SELECT insta2.next_id()"); code != "ID003" {
		t.Errorf("the original gives ids: %q", code)
	}
}
