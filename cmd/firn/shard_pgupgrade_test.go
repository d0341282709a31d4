//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
)

// TestShardsPgUpgrade: a server of shards that pg_upgrade has made of another one gives no ids and refuses transactions, until
// somebody types what status says. Ids and the application's own numbers continue, and a move that was not finished ends. The
// versions are those of FIRN_TEST_POSTGRES=15-18.
func TestShardsPgUpgrade(t *testing.T) {
	testserver.OnlyLong(t) // pg_upgrade starts each server several times
	t.Parallel()
	before := movesServer(t)
	a, b := database(t, before, "a"), database(t, testserver.Shared(t, newerServer), "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(words string) []string { return append(strings.Fields("shard "+words), flags...) }
	succeed(t, with("init --count 4 --yes")...)
	dir := writeFiles(t, map[string]string{"1.sql": "CREATE TABLE photo (id bigint PRIMARY KEY DEFAULT next_id(), n bigserial); INSERT INTO photo DEFAULT VALUES"})
	succeed(t, with("apply "+dir)...)
	succeed(t, with("move 0 --to b")...)
	last := one[int64](t, a, "SELECT insta1.next_id()")

	after := testserver.PostgresUpgraded(t, before, movesSettings...)
	a = testdb.URL(after.URL(), strings.ToLower(t.Name())+"a")
	flags[1] = "a=" + a
	for _, sql := range []string{"SELECT insta1.next_id()", "INSERT INTO insta1.photo DEFAULT VALUES", "SELECT firn.enter(1, (SELECT cluster FROM firn.server))"} {
		if code := sqlCode(t, a, sql); code != "ID003" {
			t.Errorf("%s: %q", sql, code)
		}
	}
	said := refuse(t, 1, with("move 1 --to b")...)
	out, _, code := called(t, with("status")...)
	for _, text := range []string{said, out} {
		if !strings.Contains(text, "a is a copy, or was promoted or restored. If what it is a copy of is permanently gone: firn shard reopen a") {
			t.Error(text)
		}
	}
	if code != 3 {
		t.Errorf("firn shard status ends with %d", code)
	}
	succeed(t, with("reopen a --yes")...)
	if next := one[int64](t, a, "SELECT insta1.next_id()"); next <= last {
		t.Errorf("after id %d comes %d", last, next)
	}
	if n := one[int64](t, a, "INSERT INTO insta1.photo DEFAULT VALUES RETURNING n"); n != 2 {
		t.Errorf("after 1 comes %d", n)
	}

	// What is left of the move that was under way.
	succeed(t, with("finish 0 --yes")...)
	called(t, with("doctor --clean")...)
	if out, _, _ := called(t, with("doctor")...); strings.Contains(out, "left of a move") || strings.Contains(out, "old copy") {
		t.Error(out)
	}
	succeed(t, with("move 1 --to b")...)
	succeed(t, with("finish 1 --yes")...)
	succeed(t, with("status")...)
}
