//go:build !windows

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// This file makes copies of servers that a move has part in, as a promotion or a restored backup does.

const promoted = "UPDATE firn.shard SET timeline = '000000EE'"

// leadsTo asks for all commands of firn shard that are to be typed, and wants the first to be one.
func leadsTo(t *testing.T, with func(string) []string, do string, commands ...string) {
	t.Helper()
	for _, words := range commands {
		out, errs, _ := called(t, with(words)...)
		told := steps(out + errs)
		if len(told) == 0 || slices.ContainsFunc(told, func(one string) bool { return one != do }) {
			t.Errorf("firn shard %s leads to %q, and not to %q:\n%s%s", words, told, do, out, errs)
		}
	}
}

// steps are the commands that texts say to type and that change something, without --server.
func steps(text string) (all []string) {
	for _, at := range toType.FindAllStringIndex(text, -1) {
		from := text[at[1]-len("firn shard"):]
		line, _, _ := strings.Cut(from[:commandEnd(from)], " --server")
		if !slices.Contains([]string{"firn shard status", "firn shard doctor", "firn shard ls"}, line) {
			all = append(all, strings.TrimPrefix(line, "firn shard "))
		}
	}
	return all
}

// TestShardsTargetCopied: the mover was killed, and the target promoted. Whatever is asked names the
// command that lets the target serve again; then the move goes on, or is given up.
func TestShardsTargetCopied(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 4 --yes")...)
	leaves(t, a, with("move 1 --to b"))
	onDatabase(t, b, promoted+" WHERE shard = 1")
	leadsTo(t, with, "reopen b", "status", "doctor", "move 1 --to b", "abort 1", "finish 1 --yes")
	succeed(t, with("reopen b --yes")...)
	meetsOldCopy(t, with)
	succeed(t, with("abort 1")...)
	succeed(t, with("finish 1 --yes")...)
	succeed(t, with("move 1 --to b")...)
	succeed(t, with("finish 1 --yes")...)
}

// TestShardsBothCopied: a move has arrived, and both servers were promoted. The command that opens the
// shard is named, and the shard can move back in the end.
func TestShardsBothCopied(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 4 --yes")...)
	onDatabase(t, a, "CREATE TABLE insta0.t (id bigint PRIMARY KEY DEFAULT insta0.next_id()); INSERT INTO insta0.t DEFAULT VALUES")
	succeed(t, with("move 0-1 --to b")...)
	for _, address := range []string{a, b} {
		onDatabase(t, address, promoted)
	}
	leadsTo(t, with, "reopen b", "status", "doctor", "move 0-1 --to b", "abort 0-1", "finish 0-1 --yes", "revert 0-1")
	succeed(t, with("reopen b --yes")...)
	one[int64](t, b, "SELECT insta0.next_id()")
	if _, errs, _ := called(t, with("doctor --clean")...); strings.Contains(errs, "firn: error: server") {
		t.Error(errs)
	}

	// What a knows of the shard is of before it was promoted: whoever moves the shard there is told so.
	if said := refuse(t, 3, with("move 0 --to a")...); !strings.Contains(said, "  firn shard reopen a\n") {
		t.Error(said)
	}
	succeed(t, with("reopen a --yes")...)
	// The old copy on a is the operator's, and that is said too.
	said := refuse(t, 3, with("move 0 --to a")...)
	if !strings.Contains(said, "an old copy that serves nothing") || !strings.Contains(said, ": firn shard finish 0") {
		t.Error(said)
	}
	succeed(t, with("finish 0 --yes")...)
	succeed(t, with("move 0 --to a")...)
	one[int64](t, a, "SELECT insta0.next_id()")
}

// meetsOldCopy wants a move of shard 1 to say how the move ends, and how the copy that is in its way is dropped.
func meetsOldCopy(t *testing.T, with func(string) []string) {
	t.Helper()
	said := refuse(t, 1, with("move 1 --to b")...)
	if told := strings.Join(steps(said), "; "); told != "abort 1; finish 1" {
		t.Errorf("it tells %q:\n%s", told, said)
	}
}

// TestShardsAbortKeepsCopy: the target of a move was promoted, and its copy has a row that the source lacks. The
// move meets that copy, and to end the move does not drop it: finish compares it first, and keeps it.
func TestShardsAbortKeepsCopy(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 4 --yes")...)
	leaves(t, a, with("move 1 --to b"))
	onDatabase(t, b, promoted+" WHERE shard = 1")
	succeed(t, with("reopen b --yes")...)
	onDatabase(t, a, "CREATE TABLE insta1.t (id bigint PRIMARY KEY)")
	onDatabase(t, b, "CREATE TABLE insta1.t (id bigint PRIMARY KEY); INSERT INTO insta1.t VALUES (7)")
	meetsOldCopy(t, with)
	succeed(t, with("abort 1")...)
	if n := one[int64](t, b, "SELECT count(*) FROM insta1.t WHERE id = 7"); n != 1 {
		t.Fatal("abort has dropped a copy with a row that no other server has")
	}
	refuse(t, 3, with("finish 1 --yes")...)
	succeed(t, with("finish 1 --yes --drop-rows-of b")...)
	succeed(t, with("move 1 --to b")...)
}
