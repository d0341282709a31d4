//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsTwoStandbys: two standbys of a server are promoted, which have one system identifier and one
// timeline. One is reopened. The other one gives no ids and takes no shard, whatever is typed, until
// somebody says that rows may be missing.
func TestShardsTwoStandbys(t *testing.T) {
	t.Parallel()
	server := movesServer(t)
	a, b := database(t, server, "a"), database(t, testserver.Shared(t, movesServer), "b")
	with := func(words, a string) []string {
		return append(strings.Fields("shard "+words), "--server", "a="+a, "--server", "b="+b)
	}
	succeed(t, with("init --count 6 --yes", a)...) // 0 to 2 are a's
	onDatabase(t, b, "CREATE TABLE insta3.u (id bigint PRIMARY KEY); INSERT INTO insta3.u VALUES (1)")
	standby := func() (*testserver.Standby, string) {
		s := testserver.PostgresStandby(t, server, movesSettings...)
		return s, strings.Replace(a, server.Addr(), s.Addr(), 1)
	}
	s1, first := standby()
	s2, second := standby()
	server.Stop(t)
	s1.Promote(t)
	s2.Promote(t)
	// Nobody has opened anything yet: a shard does not come to either by a move.
	if said := refuse(t, 3, with("move 3 --to a", second)...); !strings.Contains(said, "firn shard reopen a") || one[int](t, b, "SELECT count(*) FROM firn.move") > 0 {
		t.Error(said)
	}
	succeed(t, with("reopen a --yes", first)...)
	if code := sqlCode(t, first, "SELECT insta0.next_id()"); code != "" {
		t.Fatal(code)
	}
	const what = "server a: its address leads to a second copy of a. b knows another copy, which was reopened"
	for _, words := range []string{"reopen a --yes", "reopen a --shards 0 --yes", "move 3 --to a", "move 0 --to b", "rebalance --drain b", "init", "remove-server a"} {
		said := refuse(t, 1, with(words, second)...)
		if !strings.Contains(said, what) || !strings.Contains(said, "give the address of the reopened copy") {
			t.Errorf("firn shard %s:\n%s", words, said)
		}
	}
	for _, words := range []string{"status", "doctor"} {
		out, errs, _ := called(t, with(words, second)...)
		if !strings.Contains(out+errs, what) || strings.Contains(out+errs, "to continue it") {
			t.Errorf("firn shard %s:\n%s%s", words, out, errs)
		}
	}
	if code := sqlCode(t, second, "SELECT insta0.next_id()"); code != "ID003" {
		t.Errorf("the second standby: %q", code)
	}
	// What reads rows of before the promotion, as an older program does, gives no ids either.
	if code := sqlCode(t, second, "SELECT firn.claim(3, 'insta3', 1000, 'somebody', 'abcdefghijkl', 'b', 'a', false)"); code != "ID003" {
		t.Errorf("a shard comes to the second standby: %q", code)
	}
	succeed(t, with("move 3 --to a", first)...)
	s1.Stop(t)
	succeed(t, with("reopen a --shards 0-2 --incomplete --yes", second)...)
	if code := sqlCode(t, second, "SELECT insta0.next_id()"); code != "" {
		t.Errorf("the operator knows that the first one is gone: %q", code)
	}
}
