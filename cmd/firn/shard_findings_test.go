//go:build !windows

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsRebalanceRefused: a rebalance that has obstacles says to check the same plan again, and names an obstacle
// of a server once, however many servers its shards go to.
func TestShardsRebalanceRefused(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	server := testserver.Shared(t, testserver.Postgres) // with wal_level = replica
	var flags []string
	for _, name := range []string{"a", "b", "c"} {
		flags = append(flags, "--server", name+"="+database(t, server, name))
	}
	with := func(words string) []string { return append(strings.Fields("shard "+words), flags...) }
	succeed(t, with("init --count 12 --yes")...)
	said := refuse(t, 3, with("rebalance --drain c --keep --parallel 2 --by rate --sample 10ms")...)
	if want := "firn shard rebalance --by rate --drain c --keep --parallel 2 --sample 10ms --dry-run --server "; !strings.Contains(said, want) {
		t.Errorf("no %q in\n%s", want, said)
	}
	if n := len(regexp.MustCompile(`(?m)^ *[abc] .*wal_level is`).FindAllString(said, -1)); n != 3 {
		t.Errorf("3 servers have %d obstacles:\n%s", n, said)
	}
	said = refuse(t, 3, with("move 8 --to a --lock-wait 5s")...)
	if want := "firn shard move 8 --lock-wait 5s --to a --dry-run --server "; !strings.Contains(said, want) {
		t.Errorf("no %q in\n%s", want, said)
	}
}

// TestShardsFewRights: a role that may draw ids looks at the servers. Each cause is one line, and stands there once.
func TestShardsFewRights(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	server := testserver.Postgres(t) // its own: other tests would meet the role
	var flags []string
	for _, name := range []string{"a", "b"} {
		flags = append(flags, "--server", name+"="+database(t, server, name))
	}
	succeed(t, append([]string{"shard", "init", "--count", "4", "--yes"}, flags...)...)
	onDatabase(t, server.URL(), "CREATE ROLE fewrights LOGIN IN ROLE firn_app")
	for i, flag := range flags {
		flags[i] = strings.Replace(flag, "postgres://t@", "postgres://fewrights@", 1)
	}
	for _, words := range []string{"status", "doctor"} {
		out, errs, _ := called(t, append([]string{"shard", words}, flags...)...)
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "shard:") || strings.Contains(line, "shard: server") || strings.Count(line, "permission denied for table generator") > 1 {
				t.Errorf("firn shard %s: the line %q in\n%s%s", words, line, out, errs)
			}
		}
	}
}

// TestShardsReopenEndsMove: reopen says before it asks which moves it ends, and names the commands that remove what is
// left of them. Typed literally they remove it.
func TestShardsReopenEndsMove(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := movable(t, 4)
	with := func(words string) []string { return append(strings.Fields("shard "+words), flags...) }
	for _, n := range []string{"0", "1"} {
		onDatabase(t, addresses[0], "CREATE TABLE insta"+n+".u (id bigint PRIMARY KEY); INSERT INTO insta"+n+".u VALUES (1)")
		succeed(t, with("move "+n+" --to b")...)
	}
	onDatabase(t, addresses[1], promoted+" WHERE shard < 2")
	for _, words := range []string{"reopen b --dry-run", "reopen b", "reopen b --yes"} {
		_, errs, _ := called(t, with(words)...)
		for _, want := range []string{
			"the move of shard 0 from a to b ends, and cannot be continued or reverted; afterwards, to drop the copy on a: ",
			"the move of shard 1 from a to b ends",
			"firn shard finish 0 --server ", "firn shard doctor --clean --server ",
		} {
			if at := strings.Index(errs, want); at < 0 || strings.Contains(errs, "firn: error") && at > strings.Index(errs, "firn: error") {
				t.Errorf("firn shard %s: no %q before the question in\n%s", words, want, errs)
			}
		}
	}
	succeed(t, with("finish 0 --yes")...)
	succeed(t, with("finish 1 --yes")...)
	called(t, with("doctor --clean")...)
	if out, errs, _ := called(t, with("doctor")...); strings.Contains(out, "left of a move") || strings.Contains(out, "old copy") {
		t.Errorf("it is not removed:\n%s%s", out, errs)
	}
}
