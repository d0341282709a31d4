//go:build !windows

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsUnasked: --server names only one of two servers. Nothing is said to be lost or forgotten because the
// other server was not asked, and every command says how to name it.
func TestShardsUnasked(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string, flags []string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 8 --yes", flags)...)
	succeed(t, with("move 0 --to b", flags)...) // arrived, and not finished
	leaves(t, a, with("move 1 --to b", flags))  // begun
	succeed(t, with("move 2 --to b", flags)...)
	succeed(t, with("finish 2 --yes", flags)...)
	const name = "--server b=postgres://USER@HOST/DATABASE"
	never := regexp.MustCompile(`forgotten|only a knows|no server knows|firn shard (finish|abort|reopen|init)|not served|in no move`)
	for _, words := range []string{"status", "doctor", "finish 0 --yes", "finish 1 --yes", "abort 1", "finish 2", "abort 3", "finish 7", "move 1 --to b", "move 7 --to a"} {
		out, errs, code := called(t, with(words, flags[:2])...)
		said := out + errs
		if code == 0 || !strings.Contains(said, "b was not asked") && !strings.Contains(said, "server b is in the cluster") || !strings.Contains(said, name) || never.MatchString(said) {
			t.Errorf("firn shard %s, exit code %d, %q\n%s", words, code, never.FindAllString(said, -1), said)
		}
	}
	if said := refuse(t, 1, with("reopen a --shards 0", flags[:2])...); !strings.Contains(said, name) {
		t.Error(said)
	}
	for _, words := range []string{"status", "doctor"} {
		out, _, _ := called(t, with(words, flags[:2])...)
		for _, want := range []string{"server b was not asked; the servers that were asked do not serve 6 shards: 0, 2, 4, 5, 6, 7"} {
			if !strings.Contains(out, want) {
				t.Errorf("firn shard %s: no %q\n%s", words, want, out)
			}
		}
	}
}

// TestShardsOutdated: the functions of one server are of another version of firn, as they are after an upgrade.
// Doctor and status say so, and firn shard init brings them up to date.
func TestShardsOutdated(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	const text = "the functions of server b are of another version of firn, so shards cannot move from or to it"
	onDatabase(t, addresses[1], "UPDATE firn.server SET code = 'x'")
	for _, words := range []string{"doctor", "status"} {
		out, errs, _ := called(t, with(words)...)
		if !strings.Contains(out, text) || !strings.Contains(out, "firn shard init") {
			t.Errorf("firn shard %s:\n%s%s", words, out, errs)
		}
	}
	succeed(t, with("init --yes")...)
	for _, words := range []string{"doctor", "status"} {
		if out, _, _ := called(t, with(words)...); strings.Contains(out, "another version") {
			t.Errorf("firn shard %s, after firn shard init:\n%s", words, out)
		}
	}
}

// TestShardsInitOfOlderFirn: where a newer firn has written the functions of one server, an older init stops before it
// changes any server, and says what to do. Doctor and status do not hint at it.
func TestShardsInitOfOlderFirn(t *testing.T) {
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	with := func(words string) []string { return append(strings.Fields("shard "+words), flags...) }
	const later = "CREATE OR REPLACE FUNCTION firn.sql_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT 99'"
	onDatabase(t, addresses[1], later)
	onDatabase(t, addresses[0], "UPDATE firn.server SET code = 'x'")
	for _, words := range []string{"init --yes", "init --dry-run", "init --json --yes"} {
		_, errs, code := called(t, with(words)...)
		if code != 1 || !strings.Contains(errs, "server b: a newer firn wrote its functions: they have version 99, and this firn would write version 1. Nothing was changed") ||
			!strings.Contains(errs, "run the same command with the newer firn; to see which version this one is: firn version") {
			t.Errorf("%s: %d\n%s", words, code, errs)
		}
	}
	if got := one[string](t, addresses[0], "SELECT code FROM firn.server"); got != "x" {
		t.Errorf("init has changed server a: %s", got)
	}
	for _, words := range []string{"doctor", "status"} {
		out, errs, _ := called(t, with(words)...)
		if !strings.Contains(out, "a newer firn wrote the functions of server b, so this firn cannot move shards from or to it") || !strings.Contains(out, "the functions of server a are of another version of firn") {
			t.Errorf("firn shard %s:\n%s%s", words, out, errs)
		}
	}
	if out, errs, code := called(t, with("move 0 --to b --dry-run")...); code == 0 || !strings.Contains(errs, "a newer firn wrote its functions") {
		t.Errorf("move: %d\n%s%s", code, out, errs)
	}
}
