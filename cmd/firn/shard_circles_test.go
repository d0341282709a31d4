//go:build !windows

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// This file types what firn says of shards that no move opens, and of what they leave behind.

// openCommand finds the commands that open shards.
var openCommand = regexp.MustCompile(`firn shard (reopen [a-z]+(?: --shards [0-9,-]+)?(?: --incomplete)?)`)

// TestShardsPutBackNowhere: a shard was taken back to a server, which was then put back to before
// that. No server serves the shard. Whatever is asked names the command that opens it, and says why
// it is that server; typed literally the command opens the shard with the newest rows.
func TestShardsPutBackNowhere(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	away := movesServer(t)
	a, b := database(t, away, "a"), database(t, testserver.Shared(t, movesServer), "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 2 --yes")...) // shard 0 is a's
	onDatabase(t, a, "CREATE TABLE insta0.t (id bigint PRIMARY KEY DEFAULT insta0.next_id()); INSERT INTO insta0.t DEFAULT VALUES")
	succeed(t, with("move 0 --to b")...)
	onDatabase(t, b, "INSERT INTO insta0.t DEFAULT VALUES")
	away.Stop(t)
	old := away.Copy(t)
	away.Start(t)
	succeed(t, with("revert 0")...)
	given := one[int64](t, a, "SELECT insta0.next_id()")
	away.Stop(t)
	away.PutBack(t, old)
	away.Start(t)

	const do = "reopen b --shards 0"
	for _, words := range []string{"status", "doctor", "revert 0", "move 0 --to b", "move 0 --to a", "finish 0", "abort 0", "reopen a", "reopen b", "reopen a --shards 0 --yes", "rebalance --dry-run"} {
		out, errs, _ := called(t, with(words)...)
		told := openCommand.FindAllStringSubmatch(out+errs, -1)
		if len(told) == 0 {
			t.Errorf("firn shard %s does not say what opens shard 0:\n%s%s", words, out, errs)
		}
		for _, one := range told {
			if one[1] != do {
				t.Errorf("firn shard %s says %q, and not %q:\n%s%s", words, one[1], do, out, errs)
			}
		}
		if other := toldMoves(out + errs); strings.Contains(strings.Join(other, ","), "doctor") {
			t.Errorf("firn shard %s sends to another command that does not open it:\n%s%s", words, out, errs)
		}
		if words == "doctor" && (!strings.Contains(out, "b knows more of it than a, which was put back to an earlier state") || strings.Count(out, "no server serves") != 1) {
			t.Errorf("doctor does not say why it is b, once:\n%s", out)
		}
	}
	_, errs, code := called(t, with(do)...)
	if code != 2 || !strings.Contains(errs, "Is there no newer backup and no standby of a?") || strings.Contains(errs, "Is what b is a copy of") {
		t.Errorf("%s: exit code %d\n%s", do, code, errs)
	}
	succeed(t, with(do+" --yes")...)
	if id := one[int64](t, b, "INSERT INTO insta0.t DEFAULT VALUES RETURNING id"); id <= given {
		t.Errorf("b gives %d, and a gave %d", id, given)
	}
	if n := one[int64](t, b, "SELECT count(*) FROM insta0.t"); n != 3 {
		t.Errorf("b has %d rows", n)
	}
}

// TestShardsReopenKilled: a reopen was killed after each of its steps on the other server. What
// doctor says is true of the servers, its command opens the shard, and the server that was told to
// leave the shard alone does not get it.
func TestShardsReopenKilled(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	for i, tt := range []struct {
		name, a, b string // what the servers were, and what was done to b
		do         string
	}{
		{"both served it", "UPDATE firn.shard SET term = 9 WHERE shard = 0", "SELECT firn.create_shard(0, 'insta0'); SELECT firn.overrule(0, 10, 'a', 9)", "reopen a --shards 0"},
		{"a was closed", "SELECT firn.close(0); UPDATE firn.shard SET term = 9 WHERE shard = 0", "SELECT firn.revoke(0, 'insta0', 10, 'a', 9)", "reopen a --shards 0"},
		{"a was restored", "UPDATE firn.shard SET term = 9, timeline = 'FFFFFFFF' WHERE shard = 0", "SELECT firn.revoke(0, 'insta0', 10, 'a', 9)", "reopen a --shards 0"},
		{"a had let it go", `SELECT firn.close(0); UPDATE firn.shard SET state = 'moved', moved_to = 'b', term = 9, attempt = 'x' WHERE shard = 0;
			SELECT firn.make_mark('insta0'); INSERT INTO insta0.firn_mark VALUES (9, 'x', 'b', 0, '{}')`, "SELECT firn.revoke(0, 'insta0', 10, 'a', 9)", "reopen a --shards 0"},
		{"a had a copy", "SELECT firn.close(0); UPDATE firn.shard SET state = 'moved', moved_to = 'b', term = 9, attempt = 'x' WHERE shard = 0", "SELECT firn.revoke(0, 'insta0', 10, 'a', 9)", "reopen a --shards 0"},
	} {
		func() {
			a, b := database(t, postgres, fmt.Sprint("a", i)), database(t, postgres, fmt.Sprint("b", i))
			flags := []string{"--server", "a=" + a, "--server", "b=" + b}
			with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
			succeed(t, with("init --count 2 --yes")...)
			onDatabase(t, a, tt.a)
			onDatabase(t, b, tt.b)
			for _, words := range []string{"status", "doctor", "reopen b --shards 0 --yes", "reopen b --shards 0 --incomplete --yes"} {
				out, errs, _ := called(t, with(words)...)
				if strings.HasPrefix(words, "reopen") && one[string](t, b, "SELECT state FROM firn.shard WHERE shard = 0") != "moved" {
					t.Fatalf("%s: firn shard %s opens it on b", tt.name, words)
				}
				if tt.name == "a had a copy" && words != "doctor" && words != "status" {
					continue // neither is known to be complete
				}
				told := openCommand.FindStringSubmatch(out + errs)
				if told == nil || told[1] != tt.do {
					t.Errorf("%s: firn shard %s says %q, and not %q\n%s%s", tt.name, words, told, tt.do, out, errs)
				}
				if words == "doctor" && (strings.Contains(out, "put back") && !strings.Contains(out, "a reopen was broken off") || strings.Contains(out, "gave it to")) {
					t.Errorf("%s: doctor says what may be wrong:\n%s", tt.name, out)
				}
			}
			_, errs, code := called(t, with(tt.do+" --yes")...)
			if told := openCommand.FindAllStringSubmatch(errs, -1); code != 0 && len(told) > 0 {
				succeed(t, with(told[len(told)-1][1]+" --yes")...)
			}
			one[int64](t, a, "SELECT insta0.next_id()")
			if out, _, _ := called(t, with("doctor")...); strings.Contains(out, "cluster:") {
				t.Errorf("%s: doctor\n%s", tt.name, out)
			}
		}()
	}
}

// TestShardsOldCopy: a shard was taken away from a server, and its rows are there still. Doctor says
// so, and a move there says the same; doctor --clean leaves the rows, also when the shard has moved on.
func TestShardsOldCopy(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 2 --yes")...)
	onDatabase(t, b, "SELECT firn.create_shard(0, 'insta0'); CREATE TABLE insta0.t (id bigint PRIMARY KEY DEFAULT insta0.next_id()); INSERT INTO insta0.t DEFAULT VALUES; ANALYZE insta0.t")
	onDatabase(t, a, "UPDATE firn.shard SET term = 9 WHERE shard = 0")
	succeed(t, with("reopen a --shards 0 --yes")...)
	const text, do = "the schema insta0 is an old copy that serves nothing, with about 1 row:", ": firn shard finish 0"
	for _, words := range []string{"doctor", "doctor --clean", "move 0 --to b", "move 0 --to b --dry-run"} {
		out, errs, _ := called(t, with(words)...)
		if said := out + errs; !strings.Contains(said, text) || !strings.Contains(said, do) || strings.Contains(said, "to remove it: ") {
			t.Errorf("firn shard %s: no %q, or no %q in\n%s", words, text, do, said)
		}
	}
	// What a crash leaves of the statistics says nothing of the rows.
	onDatabase(t, b, "SET track_counts = off; CREATE TABLE insta0.u (n int) WITH (autovacuum_enabled = off); INSERT INTO insta0.u SELECT generate_series(1, 1000)")
	if out, errs, _ := called(t, with("doctor")...); !strings.Contains(out+errs, "serves nothing, and the number of its rows is not known: ") {
		t.Errorf("doctor says how many rows there are, which nobody knows: %s%s", out, errs)
	}
	// A higher term on a makes b's copy no older: nobody has looked at its rows.
	onDatabase(t, a, "UPDATE firn.shard SET term = term + 2 WHERE shard = 0")
	called(t, with("doctor --clean")...)
	if n := one[int64](t, b, "SELECT count(*) FROM insta0.t"); n != 1 {
		t.Fatalf("%d rows are left on b", n)
	}
	if said := refuse(t, 3, with("finish 0 --yes")...); !strings.Contains(said, "the copy on b has rows that a lacks, which serves: 1001 rows; ") && !strings.Contains(said, "serves: 1001 rows\n") {
		t.Error(said)
	}
	succeed(t, with("finish 0 --yes --drop-rows-of b")...)
	succeed(t, with("move 0 --to b")...)
	one[int64](t, b, "SELECT insta0.next_id()")
	if out, errs, _ := called(t, with("doctor")...); strings.Contains(out, "old copy") {
		t.Errorf("doctor: %s%s", out, errs)
	}
}

// TestShardsSchemaInTheWay: somebody made a schema on the target when the move had begun. The move
// says whose it is, and which command ends the move; typed literally that leads to a move that works.
func TestShardsSchemaInTheWay(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 2 --yes")...)
	onDatabase(t, a, "SELECT firn.begin_move(shard, term + 1, 'somebody', '0123456789ab', 'b', true) FROM firn.shard WHERE shard = 0")
	onDatabase(t, b, "CREATE SCHEMA insta0; CREATE TABLE insta0.mine (n integer)")
	said := refuse(t, 1, with("move 0 --to b")...)
	if told := toldMoves(said); strings.Join(told, "; ") != "abort 0" || !strings.Contains(said, "there is a schema insta0 already, and it is no copy of the shard") {
		t.Errorf("it tells %q:\n%s", told, said)
	}
	succeed(t, with("abort 0")...)
	one[int64](t, b, "SELECT count(*) FROM insta0.mine")
	said = refuse(t, 3, with("move 0 --to b")...)
	if !strings.Contains(said, "it is no copy of the shard") || !strings.Contains(said, `on server b: ALTER SCHEMA "insta0" RENAME TO "was_insta0"`) {
		t.Error(said)
	}
	onDatabase(t, b, `ALTER SCHEMA "insta0" RENAME TO "was_insta0"`)
	succeed(t, with("move 0 --to b")...)
}

// TestShardsOtherVersion: nobody is told to start a server whose functions or tables are of another
// version of firn, and the command for functions works.
func TestShardsOtherVersion(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	ofB := func() string {
		t.Helper()
		out, _, _ := called(t, with("doctor")...)
		return regexp.MustCompile(`(?m)^bad +server b: it cannot be examined.*$`).FindString(out)
	}
	onDatabase(t, addresses[1], "DROP FUNCTION firn.now_state()")
	if said := ofB(); strings.Contains(said, "start it") || !strings.Contains(said, "firn shard init") {
		t.Errorf("a function is missing: %q", said)
	}
	succeed(t, with("init")...)
	if said := ofB(); said != "" {
		t.Errorf("after init: %s", said)
	}
	onDatabase(t, addresses[1], "ALTER TABLE firn.shard DROP COLUMN relation")
	if said := ofB(); strings.Contains(said, "start it") || !strings.Contains(said, "use the version that made them") {
		t.Errorf("a column is missing: %q", said)
	}
}
