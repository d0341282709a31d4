//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// This file puts two older states in the place of one server, one after the other.

// TestShardsPutBackTwice: b was put back to before a shard came there, and then serves its other shards again. A newer
// backup in its place would lose what was written to these since. Status says so, and so does reopen before it asks
// where the backup was put there all the same. The page's way to the rows of the first shard works.
func TestShardsPutBackTwice(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	away := movesServer(t)
	a, b := database(t, testserver.Shared(t, movesServer), "a"), database(t, away, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	wants := func(words string, want, not []string) {
		t.Helper()
		out, errs, _ := called(t, with(words)...)
		for _, text := range want {
			if !strings.Contains(out+errs, text) {
				t.Errorf("firn shard %s: no %q in\n%s%s", words, text, out, errs)
			}
		}
		for _, text := range not {
			if strings.Contains(out+errs, text) {
				t.Errorf("firn shard %s: %q in\n%s%s", words, text, out, errs)
			}
		}
	}
	copied := func() string {
		t.Helper()
		away.Stop(t)
		defer away.Start(t)
		return away.Copy(t)
	}
	putBack := func(to string) {
		t.Helper()
		away.Stop(t)
		away.PutBack(t, to)
		away.Start(t)
		onDatabase(t, b, promoted)
	}
	succeed(t, with("init --count 4 --yes")...) // 0 and 1 are a's, 2 and 3 b's
	for _, schema := range []string{"insta0", "insta2"} {
		onDatabase(t, map[string]string{"insta0": a, "insta2": b}[schema], "CREATE TABLE "+schema+".t (id bigint PRIMARY KEY DEFAULT "+schema+".next_id()); INSERT INTO "+schema+".t DEFAULT VALUES")
	}
	oldest := copied()
	onDatabase(t, b, promoted)
	succeed(t, with("reopen b --yes")...) // which a is told
	succeed(t, with("move 0 --to b")...)
	succeed(t, with("finish 0 --yes")...)
	backup := dumpOf(t, "insta0", b)
	newer := copied()

	putBack(oldest)
	const first = "if there is a newer backup or a standby of b, put it in its place first. If there is neither, b opens it with the rows of its backup, and rows that were written since are lost: firn shard reopen b --shards 2,3"
	wants("status", []string{"only a newer backup or a standby of b has its rows: put it in the place of b, then: firn shard reopen b", first}, []string{"to continue it"})
	wants("reopen b --shards 2,3", []string{"Is there no newer backup and no standby of b?"}, nil)
	succeed(t, with("reopen b --shards 2,3 --yes")...)
	onDatabase(t, b, "INSERT INTO insta2.t DEFAULT VALUES")
	since := []string{"b has served 2 shards since, and a newer backup or a standby in its place would lose what was written there since", `docs/reference/shards-recovery.md, "A server that was put back"`}
	wants("status", since, []string{"put it in the place of b", "put it in its place"})
	wants("doctor", since, []string{"put it in the place of b", "put it in its place"})

	// What somebody copied of shard 0, from the backup beside b to the server that had given it away.
	onDatabase(t, a, backup)
	onDatabase(t, a, "SELECT firn.create_shard(0, 'insta0')")
	wants("status", since, []string{"put it in the place of b", "put it in its place"})
	succeed(t, with("reopen a --shards 0 --incomplete --yes")...)
	onDatabase(t, a, "INSERT INTO insta0.t DEFAULT VALUES")
	if n, other := one[int64](t, a, "SELECT count(*) FROM insta0.t"), one[int64](t, b, "SELECT count(*) FROM insta2.t"); n != 2 || other != 2 {
		t.Errorf("%d rows are left of shard 0, and %d of shard 2", n, other)
	}
	succeed(t, with("move 0 --to b")...)
	succeed(t, with("finish 0 --yes")...)

	putBack(newer)
	const lost = "on a it is written that b had shards 0,2,3 at a later term than b knows: "
	wants("reopen b --dry-run", []string{lost}, nil)
	wants("reopen b", []string{lost, "rows that were written to shards 0,2,3 since, on b or another server, are lost. Is there no newer backup and no standby of b?"}, nil)
}

// TestShardsPutBackBefore: b was reopened, and then a backup was put in its place of before shard 0 came there. b has no
// copy of shard 0, so no hint says to open shard 0 on b. The hint of the other shard names newer backups first.
func TestShardsPutBackBefore(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	with := func(words string) []string { return append(strings.Fields("shard "+words), flags...) }
	onDatabase(t, addresses[0], lettingGo+"; DROP SCHEMA insta0 CASCADE; UPDATE firn.shard SET term = 5, attempt = NULL WHERE shard = 0; SELECT firn.revoke(1, 'insta1', 5, 'b', 0)")
	onDatabase(t, addresses[1], knowsOf("moved", "'a'", 1)+"; "+promoted)
	const lost = "only a newer backup or a standby of b has its rows: put it in the place of b, then: firn shard reopen b"
	for _, words := range []string{"status", "doctor", "reopen b --shards 0,1 --yes", "reopen a --yes"} {
		out, errs, _ := called(t, with(words)...)
		said := plain(out + errs)
		if !strings.Contains(said, lost) || strings.Contains(said, "to continue it") || strings.Contains(said, "--shards 0") {
			t.Errorf("firn shard %s:\n%s", words, said)
		}
		const opens = "put it in its place first. If there is neither, b opens it with the rows of its backup"
		if !strings.Contains(words, "reopen") && !strings.Contains(said, opens) {
			t.Errorf("firn shard %s: no %q in\n%s", words, opens, said)
		}
	}
	succeed(t, with("reopen b --shards 1 --yes")...)
}
