//go:build !windows

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// This file puts an older state in the place of a server that a shard has moved to, before its move is finished:
// the old copy of the shard, which is kept up to date, has rows that the server lacks.

// TestShardsOlderBackup: each command leads to the copy that has all rows, and typed literally the
// commands open that one. The copy that lacks rows is opened, and the other one dropped, only by a claim.
func TestShardsOlderBackup(t *testing.T) {
	testserver.OnlyLong(t) // TestOlderBackup of package move looks at the same two copies
	t.Parallel()
	a, b, with := olderBackup(t)
	for _, words := range []string{"reopen b --yes", "reopen b --dry-run", "reopen b --shards 0 --yes", "reopen b --shards 0 --dry-run"} {
		said := refuse(t, 1, with(words)...)
		if !strings.Contains(said, "shard 0: the copy on a has 500 rows that b lacks, such as t: row {") || !strings.Contains(said, "; b has no row that the copy on a lacks") {
			t.Errorf("firn shard %s does not say which copy has more:\n%s", words, said)
		}
		if told := steps(said); len(told) == 0 || told[0] != "reopen a --shards 0" {
			t.Errorf("firn shard %s leads to %q:\n%s", words, told, said)
		}
	}
	succeed(t, with("reopen a --shards 0 --yes")...)
	succeed(t, with("reopen b --yes")...)
	if n := one[int64](t, a, "SELECT count(*) FROM insta0.t"); n != 501 {
		t.Errorf("%d rows are served", n)
	}
	one[int64](t, a, "INSERT INTO insta0.t DEFAULT VALUES RETURNING id")
	called(t, with("doctor --clean")...)
	// b's copy is dropped once it is known that a lacks none of its rows.
	leadsTo(t, with, "finish 0", "doctor")
	if said := refuse(t, 3, with("move 0 --to b")...); !strings.Contains(said, ": firn shard finish 0") {
		t.Error(said)
	}
	succeed(t, with("finish 0 --yes")...)
	if n := one[int64](t, b, "SELECT count(*) FROM pg_namespace WHERE nspname = 'insta0'"); n != 0 {
		t.Error("b has the old copy still")
	}
	succeed(t, with("move 0 --to b")...)
}

// TestShardsOlderBackupAsItIs: who wants the older copy says so, and the rows that only the other copy has are
// there until somebody says that they are not needed.
func TestShardsOlderBackupAsItIs(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	a, b, with := olderBackup(t)
	said := refuse(t, 1, with("reopen b --yes")...)
	if told := steps(said); len(told) != 2 || told[1] != "reopen b --shards 0 --incomplete" {
		t.Errorf("it leads to %q:\n%s", told, said)
	}
	succeed(t, with("reopen b --shards 0 --incomplete --yes")...)
	succeed(t, with("reopen b --yes")...)
	one[int64](t, b, "SELECT insta0.next_id()")
	called(t, with("doctor --clean")...)
	leadsTo(t, with, "finish 0", "doctor")
	if said = refuse(t, 3, with("move 0 --to a")...); !strings.Contains(said, ": firn shard finish 0") {
		t.Error(said)
	}
	for _, words := range []string{"finish 0", "finish 0 --yes", "finish 0 --yes --drop-rows-of b"} {
		said := refuse(t, 3, with(words)...)
		if !strings.Contains(said, "the copy on a has rows that b lacks, which serves: 500 rows, such as t: row ") || !strings.Contains(said, "firn shard finish 0 --drop-rows-of a") {
			t.Errorf("firn shard %s:\n%s", words, said)
		}
	}
	if code := sqlCode(t, a, "SELECT firn.drop_copy(0)"); code != "ID007" {
		t.Errorf("the function drops rows that nobody has compared: %q", code)
	}
	if n := one[int64](t, a, "SELECT count(*) FROM insta0.t"); n != 501 {
		t.Fatalf("%d rows are left in the old copy", n)
	}
	// Nobody stops the server that has the only copy of these rows.
	succeed(t, with("move 1 --to b")...)
	succeed(t, with("finish 1 --yes")...)
	said = refuse(t, 1, with("remove-server a")...)
	if told := steps(said); len(told) != 1 || told[0] != "finish 0" || !strings.Contains(said, "server a has an old copy of shard 0") {
		t.Errorf("firn shard remove-server a leads to %q:\n%s", told, said)
	}
	succeed(t, with("finish 0 --yes --drop-rows-of a")...)
	succeed(t, with("move 0 --to a")...)
}

// olderBackup are two servers. Shard 0 has moved from a to b, 500 rows were written to b, and came to a;
// then the data of b was put back to before that, and began a new timeline.
func olderBackup(t *testing.T) (a, b string, with func(string) []string) {
	t.Helper()
	away := movesServer(t)
	a, b = database(t, testserver.Shared(t, movesServer), "a"), database(t, away, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with = func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("init --count 4 --yes")...)
	onDatabase(t, a, "CREATE TABLE insta0.t (id bigint PRIMARY KEY DEFAULT insta0.next_id()); INSERT INTO insta0.t DEFAULT VALUES")
	succeed(t, with("move 0 --to b")...)
	away.Stop(t)
	old := away.Copy(t)
	away.Start(t)
	onDatabase(t, b, "INSERT INTO insta0.t SELECT insta0.next_id() FROM generate_series(1, 500)")
	for deadline := time.Now().Add(time.Minute); one[int64](t, a, "SELECT count(*) FROM insta0.t") < 501; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the old copy is not kept up to date")
		}
	}
	away.Stop(t)
	away.PutBack(t, old)
	away.Start(t)
	onDatabase(t, b, promoted)
	return a, b, with
}

// TestShardsJustBegun: only the source knows of a move yet. Status says which server serves the shard, and what a
// dry run does of a move that is there already.
func TestShardsJustBegun(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	a, flags := movable(t, 2)
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	onDatabase(t, a[0], "SELECT firn.begin_move(shard, term + 1, 'somebody', '0123456789ab', 'b', true) FROM firn.shard WHERE shard = 0")
	if out := succeed(t, with("status")...); !strings.Contains(out, "\nshard 0 serves on a\n") || strings.Contains(out, "ending") || !strings.Contains(out, "begun") {
		t.Errorf("of a move that has just begun:\n%s", out)
	}
	if out := succeed(t, with("move 0 --to b --dry-run")...); out != "the move of shard 0 from a to b is not finished: the command continues it\n" {
		t.Errorf("a dry run says %q", out)
	}
	if out := succeed(t, with("move 0 --to b --dry-run --json")...); out != `{"from":"a","to":"b","bytes":0,"wal_bytes_per_second":0,"pause_ms":0,"shards":[],"continued":[0]}`+"\n" {
		t.Errorf("a dry run says %q", out)
	}
	if out := succeed(t, with("move 1 --to b --dry-run")...); out != "there is nothing to do: they are there\n" {
		t.Errorf("a dry run says %q", out)
	}
}
