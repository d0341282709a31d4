//go:build !windows

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// This file types what firn says of moves that were killed.

// shardsCommand finds the commands that say what to do about moves.
var shardsCommand = regexp.MustCompile(`firn shard ((?:move|revert|abort|finish|reopen|doctor|rebalance)(?: [0-9,-]+)?(?: --to [a-z]| --clean)?)`)

// toldMoves are those commands, in order.
func toldMoves(said string) (all []string) {
	for _, found := range shardsCommand.FindAllStringSubmatch(said, -1) {
		all = append(all, found[1])
	}
	return all
}

// beginsToMove has a mover begin to move a shard to the server of a name, and do nothing more.
func beginsToMove(t *testing.T, from string, shard int) (attempt string, term int64) {
	t.Helper()
	term = one[int64](t, from, fmt.Sprintf("SELECT term + 1 FROM firn.shard WHERE shard = %d", shard))
	attempt = fmt.Sprintf("killed%d", term)
	onDatabase(t, from, fmt.Sprintf("SELECT firn.begin_move(shard, %d, '%s', batch, target, false) FROM firn.move WHERE shard = %d", term, attempt, shard))
	return attempt, term
}

// letsGo has a server let a shard go to another one, and nothing more: so a mover leaves it
// that is killed at that instant.
func letsGo(t *testing.T, from, to, name string, shard int) {
	t.Helper()
	attempt, term := beginsToMove(t, from, shard)
	m := one[string](t, from, fmt.Sprintf("SELECT format('%%L, %%L, %%L', batch, source, target) FROM firn.move WHERE shard = %d", shard))
	onDatabase(t, to, fmt.Sprintf("SELECT firn.claim(%d, 'insta%[1]d', %d, '%s', %s, true)", shard, term, attempt, m))
	onDatabase(t, from, fmt.Sprintf("BEGIN; SELECT firn.lock_tables(%d, %d, '%s'); SELECT firn.let_go(%[1]d, %[2]d, '%[3]s', '%s', '{}'); COMMIT", shard, term, attempt, name))
	await(t, "the word has come", func() bool {
		return one[bool](t, to, fmt.Sprintf("SELECT EXISTS (SELECT FROM insta%d.firn_mark WHERE term = %d)", shard, term))
	})
}

// TestShardsLetGo: a mover was killed when it had let a shard go, either way, and shards that
// moved with it are elsewhere. Whatever is asked names the command that opens this shard, and
// moves no other one; typed literally it does so.
func TestShardsLetGo(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	served := func(state, want string) {
		t.Helper()
		got := ""
		for name, address := range map[string]string{"a": a, "b": b} {
			for _, n := range []int{0, 1} {
				if one[bool](t, address, fmt.Sprintf("SELECT EXISTS (SELECT FROM firn.shard AS s WHERE shard = %d AND state = 'open' AND firn.is_here(s))", n)) {
					got += fmt.Sprintf("%d%s ", n, name)
				}
			}
		}
		all := strings.Fields(got)
		slices.Sort(all)
		if got := strings.Join(all, " "); got != want {
			t.Fatalf("%s: served are %s, and not %s", state, got, want)
		}
	}
	// tells is what each of some commands tells to type.
	tells := func(state string, want []string, commands ...string) {
		t.Helper()
		for _, words := range commands {
			out, errs, _ := called(t, with(words)...)
			got := slices.DeleteFunc(toldMoves(out+errs), func(told string) bool { return told == "reopen" }) // of doctor, where no move is under way
			if !slices.Equal(got, want) {
				t.Errorf("%s: firn shard %s tells %q, and not %q:\n%s%s", state, words, got, want, out, errs)
			}
		}
	}
	alone := flags[:2]
	succeed(t, append([]string{"shard", "init", "--count", "2", "--yes"}, alone...)...)
	succeed(t, append([]string{"shard", "add-server", "b=" + b}, alone...)...)
	onDatabase(t, a, "CREATE TABLE insta0.t (id bigint PRIMARY KEY DEFAULT insta0.next_id()); INSERT INTO insta0.t DEFAULT VALUES")
	succeed(t, with("move 0-1 --to b")...)
	served("moved", "0b 1b")

	// A revert of one of the two is killed, first before it lets the shard go, and then after.
	beginsToMove(t, b, 0)
	tells("a revert was begun", []string{"revert 0", "finish 0-1"}, "status", "rebalance", "rebalance --dry-run")
	served("a revert was begun", "0b 1b")
	letsGo(t, b, a, "a", 0)
	served("let go to a", "1b")
	tells("let go to a", []string{"revert 0"}, "status", "doctor", "finish 0", "abort 0", "reopen b --shards 0 --yes", "rebalance --dry-run")
	succeed(t, with("revert 0")...)
	served("reverted", "0a 1b")

	// What was reverted stays where it is, with the copy that it came from.
	tells("reverted", []string{"abort 0", "move 0 --to b"}, "status", "rebalance", "rebalance --dry-run")
	served("reverted", "0a 1b")

	// It moves again, and the mover is killed at that instant.
	letsGo(t, a, b, "b", 0)
	served("let go to b", "1b")
	tells("let go to b", []string{"move 0-1 --to b"}, "status", "doctor")
	tells("let go to b", []string{"move 0 --to b"}, "finish 0", "abort 0", "reopen a --shards 0 --yes")
	succeed(t, with("move 0-1 --to b")...)
	served("moved again", "0b 1b")

	// rebalance ends a revert as it was meant, and drops nothing.
	letsGo(t, b, a, "a", 0)
	tells("rebalanced", []string{"abort 0", "move 0 --to b"}, "rebalance")
	served("rebalanced", "0a 1b")
	succeed(t, with("move 0 --to b")...)
	succeed(t, with("finish 0-1 --yes")...)
	served("finished", "0b 1b")
	if n := one[int64](t, b, "SELECT count(*) FROM insta0.t"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestShardsNotOpened: a move that fails when it has let a shard go says that no server serves
// the shard, and names the command that opens it; nothing else would.
func TestShardsNotOpened(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 1 --yes")...)
	succeed(t, with("move 0 --to b")...)
	for _, tt := range []struct{ from, to, name, command string }{{b, a, "a", "revert 0"}, {a, b, "b", "move 0 --to b"}} {
		letsGo(t, tt.from, tt.to, tt.name, 0)
		onDatabase(t, tt.to, "ALTER TABLE insta0.firn_mark RENAME TO hidden")
		for _, words := range []string{"revert 0", "move 0 --to b"} {
			said := refuse(t, 1, with(words)...)
			if told := toldMoves(said); !slices.Equal(told, []string{tt.command}) || !strings.Contains(said, "firn: warning: no server that answers serves shard 0: programs wait for it\n") {
				t.Errorf("let go to %s: firn shard %s tells %q:\n%s", tt.name, words, told, said)
			}
		}
		onDatabase(t, tt.to, "ALTER TABLE insta0.hidden RENAME TO firn_mark")
		succeed(t, with(tt.command)...)
	}
}

// TestShardsCleanLeaves: doctor --clean says what it leaves, as somebody may be at work on it,
// and what ends it at once.
func TestShardsCleanLeaves(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	onDatabase(t, addresses[0], "SELECT firn.begin_move(shard, term + 1, 'somebody', '0123456789ab', 'b', true) FROM firn.shard WHERE shard = 0")
	_, errs, _ := called(t, with("doctor --clean")...)
	if told := toldMoves(errs); !slices.Equal(told, []string{"move 0 --to b", "abort 0"}) || !strings.Contains(errs, "firn: warning: the move of shard 0 from a to b began less than a minute ago: it is left, because somebody may be at work on it") {
		t.Errorf("it tells %q:\n%s", told, errs)
	}
	if out := succeed(t, with("abort 0")...); out != "1 move aborted\n" {
		t.Error(out)
	}
	if out, errs, _ := called(t, with("doctor --clean")...); len(toldMoves(out+errs)) > 0 {
		t.Errorf("%s%s", out, errs)
	}
}
