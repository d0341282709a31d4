//go:build !windows

package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// This file holds what status, doctor and reopen say of one state of a cluster against each other.

// halfMove is the row of a move of shard 0 from a to b, on the server where it is run.
const halfMove = "INSERT INTO firn.move (shard, batch, source, target, loaded, began) VALUES (0, 'abcdefghijkl', 'a', 'b', true, now() - interval '1 hour')"

// knowsOf has a server know of shard 0, which is elsewhere, in a state, as what it is a copy of knew it.
func knowsOf(state, movedTo string, term int) string {
	return fmt.Sprintf(`INSERT INTO firn.shard (shard, schema, state, moved_to, term, system, timeline, database, relation, incarnation)
		SELECT 0, 'insta0', '%s', %s, %d, system, '000000EE', database, relation, incarnation FROM firn.shard LIMIT 1`, state, movedTo, term)
}

// TestShardsLostSaysReopen: a server was put back to an earlier state, and no other server has a copy of the shard. Its
// older copy is not nothing: status and doctor name the command that opens it, and that command opens it.
func TestShardsLostSaysReopen(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	a, b := addresses[0], addresses[1]
	with := func(words string) []string { return append(strings.Fields("shard "+words), flags...) }
	says := func(want string) {
		t.Helper()
		for _, words := range []string{"status", "doctor"} {
			out, errs, _ := called(t, with(words)...)
			if !strings.Contains(out, want) || strings.Contains(out, "only a newer backup") || strings.Contains(out, "the rows are lost") || strings.Contains(out, "its rows are lost") {
				t.Errorf("firn shard %s: no %q in\n%s%s", words, want, out, errs)
			}
		}
	}
	onDatabase(t, b, "SELECT firn.create_shard(0, 'insta0'); CREATE TABLE insta0.t (id bigint PRIMARY KEY DEFAULT insta0.next_id()); INSERT INTO insta0.t DEFAULT VALUES")
	onDatabase(t, a, lettingGo+"; DROP SCHEMA insta0 CASCADE")
	onDatabase(t, b, "UPDATE firn.shard SET term = 1 WHERE shard = 0; "+promoted)
	const opens = "b opens it with the rows of its backup, and rows that were written since are lost: firn shard reopen b --shards 0"
	says("if there is a newer backup or a standby of b, put it in its place first. If there is neither, " + opens)
	out, errs, _ := called(t, with("reopen a --shards 0 --incomplete --yes")...)
	if !strings.Contains(errs, opens) {
		t.Errorf("a has no copy:\n%s%s", out, errs)
	}
	succeed(t, with("reopen b --shards 1 --yes")...)
	says("leave b as it is, and copy the rows of shard 0 from it: docs/reference/shards-recovery.md, \"A server that was put back\". If there is neither, " + opens)
	succeed(t, with("reopen b --shards 0 --yes")...)
	if n := one[int64](t, b, "SELECT count(*) FROM insta0.t"); n != 1 {
		t.Errorf("it has %d rows", n)
	}
	onDatabase(t, b, "INSERT INTO insta0.t DEFAULT VALUES")
}

// elsewhere has shard 0 be on another server, by what the server knows that this one is a copy of.
const elsewhere = "UPDATE firn.shard SET state = 'moved', moved_to = '%s', term = %d, timeline = '000000EE' WHERE shard = 0; SELECT firn.halt(0)"

// TestShardsReopenBegunMove: reopen says of a move that had only begun what status says then.
func TestShardsReopenBegunMove(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	reopenAgrees(t, halfMove, knowsOf("moved", "'a'", 0), "b", "to continue: firn shard move 0 --to b; to abort: firn shard abort 0")
}

// TestShardsReopenArrivedMove: the same of a move that had changed over.
func TestShardsReopenArrivedMove(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	there := "SELECT firn.create_shard(0, 'insta0'); UPDATE firn.shard SET term = 4 WHERE shard = 0; " + halfMove
	reopenAgrees(t, fmt.Sprintf(elsewhere, "b", 3)+"; "+halfMove, there, "a", "to end it: firn shard finish 0")
}

// TestShardsReopenOldCopyOfMove: the same where the copy of the move stays on the target, and is in the way of the move.
func TestShardsReopenOldCopyOfMove(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	there := "SELECT firn.create_shard(0, 'insta0'); " + fmt.Sprintf(elsewhere, "a", 0) + "; " + halfMove
	reopenAgrees(t, "UPDATE firn.shard SET term = 2 WHERE shard = 0; "+halfMove, there, "b", "to end it: firn shard abort 0; then: firn shard finish 0")
}

// reopenAgrees wants reopen to say of the move of shard 0 what status says afterwards.
func reopenAgrees(t *testing.T, a, b, reopen, want string) {
	t.Helper()
	addresses, flags := twoServers(t, 2)
	with := func(words string) []string { return append(strings.Fields("shard "+words), flags...) }
	onDatabase(t, addresses[0], a)
	onDatabase(t, addresses[1], b)
	_, errs, code := called(t, with("reopen "+reopen+" --yes")...)
	if got := plain(errs); code != 0 || !strings.Contains(got, "afterwards, "+want+"\n") {
		t.Errorf("reopen: exit code %d, no %q in\n%s", code, want, got)
	}
	out, errs, _ := called(t, with("status")...)
	if got := plain(out); !strings.Contains(got, "  "+want+"\n") {
		t.Errorf("status: no %q in\n%s%s", want, got, errs)
	}
}

var serverFlags = regexp.MustCompile(` --server [^ ;,\n]+`)

// plain is a text without the addresses that its commands repeat.
func plain(text string) string { return serverFlags.ReplaceAllString(text, "") }

// TestShardsReopenWithoutCopy: the other server of the move has no copy of the shard, so reopen names no command that
// drops one.
func TestShardsReopenWithoutCopy(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	onDatabase(t, addresses[0], "CREATE TABLE insta0.t (id bigint PRIMARY KEY); "+lettingGo+"; "+halfMove)
	_, errs, code := called(t, append(strings.Fields("shard reopen a --shards 0 --yes"), flags...)...)
	if code != 0 || strings.Contains(errs, "firn shard finish") || !strings.Contains(errs, "the move of shard 0 from a to b ends, and cannot be continued or reverted; afterwards, to remove what is left of the move: firn shard doctor --clean") {
		t.Errorf("exit code %d:\n%s", code, errs)
	}
}

// TestShardsStatusTwice: two servers serve the shard of a move. What ends the move is refused then, so status and doctor
// name what is right to do first.
func TestShardsStatusTwice(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	with := func(words string) []string { return append(strings.Fields("shard "+words), flags...) }
	onDatabase(t, addresses[1], "SELECT firn.create_shard(0, 'insta0'); UPDATE firn.shard SET term = 4 WHERE shard = 0; "+halfMove)
	for _, words := range []string{"status", "doctor", "abort 0"} {
		out, errs, _ := called(t, with(words)...)
		if told := steps(out + errs); strings.Contains(strings.Join(told, ";"), "finish") || len(told) == 0 {
			t.Errorf("firn shard %s leads to %q:\n%s%s", words, told, out, errs)
		}
		if words == "status" && !strings.Contains(out, "\n1 shard: a and b serve it at once") {
			t.Errorf("it says that one server serves it:\n%s", out)
		}
	}
	succeed(t, with("reopen b --shards 0 --yes")...)
	if out, errs, code := called(t, with("status")...); code != 0 {
		t.Errorf("exit code %d:\n%s%s", code, out, errs)
	}
}

// TestShardsCleanOnce: one run of doctor --clean removes also what shows only when a move has ended.
func TestShardsCleanOnce(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	onDatabase(t, addresses[0], "CREATE TABLE insta0.t (id bigint PRIMARY KEY); "+halfMove+"; SELECT firn.guard_tables(0, 'insta0')")
	out, errs, code := called(t, append(strings.Fields("shard doctor --clean"), flags...)...)
	if code != 0 || strings.Contains(out, "left of a move") || !strings.Contains(errs, "removed from server a: move abcdefghijkl of shard 0 to b") ||
		!strings.Contains(errs, "removed from server a: triggers that checked who applies a move, on insta0.t") {
		t.Errorf("exit code %d:\n%s%s", code, out, errs)
	}
}

// TestShardsCleanLocksOneTable: a program writes to two tables in one transaction while doctor --clean removes triggers
// of both. Neither waits for what the other one holds, so the program is no victim of a deadlock.
func TestShardsCleanLocksOneTable(t *testing.T) {
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	a := addresses[0]
	onDatabase(t, a, "CREATE TABLE insta0.t1 (id bigint PRIMARY KEY); CREATE TABLE insta0.t2 (id bigint PRIMARY KEY); SELECT firn.guard_tables(0, 'insta0'); SELECT firn.raise_fence(0, 'insta0'), firn.lower_fence('insta0')")
	program, err := pgx.Connect(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close(context.Background())
	if _, err := program.Exec(t.Context(), "SET lock_timeout = '500ms'; BEGIN; INSERT INTO insta0.t2 VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	clean := command(t, "none", append(strings.Fields("shard doctor --clean"), flags...)...)
	if err := clean.Start(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); !one[bool](t, a, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'insta0.t2'::regclass)"); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("it does not come to the table")
		}
	}
	if _, err := program.Exec(t.Context(), "INSERT INTO insta0.t1 VALUES (1); COMMIT"); err != nil {
		t.Errorf("the program: %v", err)
		program.Exec(t.Context(), "ROLLBACK")
	}
	if err := clean.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &clean.errs)
	}
	onDatabase(t, a, "SELECT firn.guard_tables(0, 'insta0')")
	if _, err := program.Exec(t.Context(), "BEGIN; INSERT INTO insta0.t2 VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := called(t, append(strings.Fields("shard doctor --clean"), flags...)...); code != 1 || !strings.Contains(errs, "hint: programs use the table, and it was not waited for any longer: run the same command again") {
		t.Errorf("exit code %d:\n%s", code, errs)
	}
	if _, err := program.Exec(t.Context(), "COMMIT"); err != nil {
		t.Error(err)
	}
	succeed(t, append(strings.Fields("shard doctor --clean"), flags...)...)
	if n := one[int64](t, a, "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'firn%'"); n != 0 {
		t.Errorf("%d triggers are left", n)
	}
}

// TestShardsAddedAgain: a server was taken out of the cluster, and an older backup of it says that it is still in. The
// others are told, and it is said that it is in again.
func TestShardsAddedAgain(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	c := database(t, testserver.Shared(t, testserver.Postgres), "c")
	add := append(strings.Fields("shard add-server c="+c), flags...)
	succeed(t, add...)
	for _, address := range addresses {
		onDatabase(t, address, "UPDATE firn.server SET servers = array_remove(servers, 'c')")
	}
	if out := succeed(t, add...); !strings.Contains(out, "server c is in the cluster again; ") {
		t.Error(out)
	}
	for _, address := range addresses {
		if !one[bool](t, address, "SELECT 'c' = ANY (servers) FROM firn.server") {
			t.Error("it was not told")
		}
	}
	if out := succeed(t, add...); !strings.Contains(out, "server c is in the cluster already") {
		t.Error(out)
	}
}
