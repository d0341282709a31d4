//go:build !windows

package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// reopenCommand finds the commands that doctor hints for shards that two servers serve.
var reopenCommand = regexp.MustCompile(`firn shard reopen [a-z]+ --shards [0-9,-]+`)

// TestShardsOpenTwice: where two servers serve a shard, as after the disk of one was put back
// to an earlier state, doctor says what to type; typed literally that leaves the shard on the
// server that opened it last, keeps the rows of the other, and starts ids above those of both.
func TestShardsOpenTwice(t *testing.T) {
	t.Parallel()
	addresses, flags := twoServers(t, 4) // shards 0 and 1 are a's
	a, b := addresses[0], addresses[1]
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	onDatabase(t, b, "SELECT firn.create_shard(0, 'insta0'), firn.create_shard(1, 'insta1')")
	for _, address := range addresses {
		onDatabase(t, address, "CREATE TABLE insta0.t (id bigint PRIMARY KEY DEFAULT insta0.next_id()); INSERT INTO insta0.t DEFAULT VALUES; SELECT insta1.next_id()")
	}
	// b is ahead of its clock: what it gave must not be given again.
	onDatabase(t, b, "SELECT firn.close(0); SELECT firn.open(0, firn.now_state() + 60000 * 512)")
	onDatabase(t, a, "UPDATE firn.shard SET term = (SELECT term + 9 FROM firn.shard WHERE shard = 0) WHERE shard = 0")
	given := one[int64](t, b, "SELECT insta0.next_id()")
	onDatabase(t, b, "UPDATE firn.shard SET term = 1 WHERE shard IN (0, 1)")
	onDatabase(t, a, "UPDATE firn.shard SET term = 1 WHERE shard = 1")

	out, errs, _ := called(t, with("doctor")...)
	doctor := out
	hints := reopenCommand.FindAllString(out, -1)
	slices.Sort(hints)
	want := []string{"firn shard reopen a --shards 0", "firn shard reopen a --shards 1", "firn shard reopen b --shards 1"}
	if !slices.Equal(hints, want) {
		t.Fatalf("doctor hints %q, not %q\n%s%s", hints, want, out, errs)
	}
	// The server that has the older one does not get it, and says what to type.
	out, errs, code := called(t, with("reopen b --shards 0 --yes")...)
	if code != 3 || !strings.Contains(out, "there is nothing to open on server b") || !strings.Contains(errs, "firn shard reopen a --shards 0") {
		t.Errorf("the older one: exit code %d\n%s%s", code, out, errs)
	}
	// It is said what is closed where, and nothing is done unasked.
	out, errs, code = called(t, with("reopen a --shards 0")...)
	if code != 2 || !strings.Contains(errs, "shard 0 to be closed on server b") || !strings.Contains(errs, "Its rows on b stay in the schema insta0") {
		t.Errorf("without --yes: exit code %d\n%s%s", code, out, errs)
	}
	if got := one[string](t, b, "SELECT state FROM firn.shard WHERE shard = 0"); got != "open" {
		t.Errorf("nobody agreed, and it is %s on b", got)
	}
	for _, hint := range []string{"firn shard reopen a --shards 0", "firn shard reopen b --shards 1"} {
		at := strings.Index(doctor, hint)
		succeed(t, append(shellWords(doctor[at : at+commandEnd(doctor[at:])])[1:], "--yes")...)
	}
	if out := succeed(t, with("ls --map")...); !regexp.MustCompile(`(?m)^a +1 +0$`).MatchString(out) || !regexp.MustCompile(`(?m)^b +3 +1-3$`).MatchString(out) {
		t.Error(out)
	}
	if out, errs, code := called(t, with("doctor")...); code != 0 || strings.Contains(out, "clean") {
		t.Errorf("doctor: exit code %d\n%s%s", code, out, errs)
	}
	for _, tt := range []struct{ address, sql string }{{b, "INSERT INTO insta0.t VALUES (1)"}, {b, "SELECT insta0.next_id()"}, {a, "SELECT insta1.next_id()"}} {
		if code := sqlCode(t, tt.address, tt.sql); code != "ID002" {
			t.Errorf("%s: %q", tt.sql, code)
		}
	}
	if id := one[int64](t, a, "SELECT insta0.next_id()"); id <= given {
		t.Errorf("a gives %d, and b has given %d", id, given)
	}
	if n := one[int64](t, b, "SELECT count(*) FROM insta0.t"); n != 1 {
		t.Errorf("%d rows are left on b", n)
	}
}

// TestShardsCleanAfterTwice: while two servers serve a shard, doctor does not offer to remove what is
// left of moves: one of the copies may be that. When one server serves it, doctor does.
func TestShardsCleanAfterTwice(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	a, b := addresses[0], addresses[1]
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	onDatabase(t, a, "CREATE PUBLICATION firn_move_abcdefghijkl; UPDATE firn.shard SET term = 9 WHERE shard = 0")
	onDatabase(t, b, "SELECT firn.create_shard(0, 'insta0')")
	const left = "left of a move: publication firn_move_abcdefghijkl: it does nothing; "
	out, _, _ := called(t, with("doctor")...)
	if strings.Contains(out, "--clean") || !strings.Contains(out, left+"first do what is said of the shards that more than one server serves, then: firn shard doctor --server ") {
		t.Error(out)
	}
	succeed(t, with("reopen a --shards 0 --yes")...)
	if out, _, _ := called(t, with("doctor")...); !strings.Contains(out, left+"to remove it: firn shard doctor --clean --server ") {
		t.Error(out)
	}
}

// TestShardsCleanNamesMoves: doctor --clean leaves a move that is not finished, and says so.
func TestShardsCleanNamesMoves(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	const begun = "INSERT INTO firn.move (shard, batch, source, target, loaded, began) VALUES (0, 'abcdefghijkl', 'a', 'b', false, now() - interval '1 hour')"
	onDatabase(t, addresses[0], begun)
	onDatabase(t, addresses[1], "SELECT firn.create_shard(0, 'insta0'); UPDATE firn.shard SET state = 'moved', moved_to = 'a', term = 0 WHERE shard = 0; "+begun)
	out, errs, code := called(t, append(strings.Fields("shard doctor --clean"), flags...)...)
	if code != 0 || !strings.Contains(errs, "the move of shard 0 from a to b is not finished (begun), and is left; to see how far it is, and what ends it: firn shard status --server ") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestShardsOpenTwiceBrokenOff: who is killed when he has closed one copy, and not opened the
// other one anew, leaves what the hint mends: ids go on above those of both copies.
func TestShardsOpenTwiceBrokenOff(t *testing.T) {
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	a, b := addresses[0], addresses[1]
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	onDatabase(t, b, "SELECT firn.create_shard(0, 'insta0'); SELECT firn.close(0); SELECT firn.open(0, firn.now_state() + 60000 * 512)")
	given := one[int64](t, b, "SELECT insta0.next_id()")
	onDatabase(t, a, "UPDATE firn.shard SET term = 9 WHERE shard = 0")
	onDatabase(t, b, "SELECT firn.overrule(0, 10, 'a', 9)")
	out, _, _ := called(t, with("doctor")...)
	if hints := reopenCommand.FindAllString(out, -1); !slices.Equal(hints, []string{"firn shard reopen a --shards 0"}) {
		t.Fatalf("%q\n%s", hints, out)
	}
	if !strings.Contains(out, "keep programs away from a, which may give ids again that b, or a after a reopen, has given, then: ") {
		t.Error(out)
	}
	succeed(t, with("reopen a --shards 0 --yes")...)
	if id := one[int64](t, a, "SELECT insta0.next_id()"); id <= given {
		t.Errorf("a gives %d, and b has given %d", id, given)
	}
	if out, errs, code := called(t, with("doctor")...); code != 0 {
		t.Errorf("doctor: exit code %d\n%s%s", code, out, errs)
	}
}

// TestShardsForgotten: a server that was put back to before it gave a shard away, and got it
// back, serves what it has forgotten. The hints lead to who knows more, and no further: what
// was written meanwhile may be nowhere.
func TestShardsForgotten(t *testing.T) {
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	a, b := addresses[0], addresses[1]
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	// a: let go to b at term 4. b: as it was at term 1.
	onDatabase(t, b, "SELECT firn.create_shard(0, 'insta0'); UPDATE firn.shard SET term = 1 WHERE shard = 0")
	onDatabase(t, a, `SELECT firn.close(0); UPDATE firn.shard SET state = 'moved', moved_to = 'b', term = 4, attempt = 'x' WHERE shard = 0;
		SELECT firn.make_mark('insta0'); INSERT INTO insta0.firn_mark VALUES (4, 'x', 'b', 0, '{}')`)
	out, _, _ := called(t, with("doctor")...)
	if hints := reopenCommand.FindAllString(out, -1); !slices.Equal(hints, []string{"firn shard reopen b --shards 0"}) {
		t.Fatalf("%q\n%s", hints, out)
	}
	said := refuse(t, 1, with("reopen b --shards 0 --yes")...)
	if !strings.Contains(said, "hint: firn shard reopen a --shards 0 --server ") {
		t.Error(said)
	}
	said = refuse(t, 1, with("reopen a --shards 0 --yes")...)
	if !strings.Contains(said, "a may lack rows of it") {
		t.Error(said)
	}
	if got := one[string](t, b, "SELECT state FROM firn.shard WHERE shard = 0"); got != "open" {
		t.Errorf("it was refused, and is %s on b", got)
	}
	succeed(t, with("reopen a --shards 0 --incomplete --yes")...)
	if code := sqlCode(t, b, "SELECT insta0.next_id()"); code != "ID002" {
		t.Errorf("b: %q", code)
	}
	one[int64](t, a, "SELECT insta0.next_id()")
}

// TestShardsForgottenOfThree: of three servers one refuses that another opens a shard. Nothing
// was taken from the third one by then, also with --dry-run, and the hint of the refusal works.
func TestShardsForgottenOfThree(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	a, b := addresses[0], addresses[1]
	c := database(t, testserver.Shared(t, testserver.Postgres), "c")
	flags = append(flags, "--server", "c="+c)
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("add-server c")...)
	onDatabase(t, b, "SELECT firn.create_shard(0, 'insta0'); UPDATE firn.shard SET term = 1 WHERE shard = 0")
	onDatabase(t, a, `SELECT firn.close(0); UPDATE firn.shard SET state = 'moved', moved_to = 'b', term = 4, attempt = 'x' WHERE shard = 0;
		SELECT firn.make_mark('insta0'); INSERT INTO insta0.firn_mark VALUES (4, 'x', 'b', 0, '{}')`)
	onDatabase(t, c, "INSERT INTO firn.shard (shard, schema, state, term, moved_to) VALUES (0, 'insta0', 'moved', 0, 'a')")
	for _, words := range []string{"reopen b --shards 0 --dry-run", "reopen b --shards 0 --yes", "reopen b --shards 0 --yes"} {
		if said := refuse(t, 1, with(words)...); !strings.Contains(said, "hint: firn shard reopen a --shards 0 --server ") {
			t.Errorf("%s: %s", words, said)
		}
		if got := one[int64](t, c, "SELECT term FROM firn.shard WHERE shard = 0"); got != 0 {
			t.Fatalf("%s was refused, and c knows term %d", words, got)
		}
	}
	succeed(t, with("reopen a --shards 0 --incomplete --yes")...)
}
