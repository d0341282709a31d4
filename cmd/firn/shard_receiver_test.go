//go:build !windows

package main

import (
	"strings"
	"testing"
)

// This file has a shard that was let go, and whose last changes have not come. The server that let it go was
// promoted from a standby that lacks a row which the other one has received.

// TestShardsReceiverHasMore: the command that a refusal names for the receiver, typed literally, opens the shard there.
func TestShardsReceiverHasMore(t *testing.T) {
	t.Parallel()
	receiverHasMore(t, 1, 2)
}

// TestShardsReceiverHasMoreThanNeeded: so does the one for the server that was promoted.
func TestShardsReceiverHasMoreThanNeeded(t *testing.T) {
	t.Parallel()
	receiverHasMore(t, 0, 1)
}

func receiverHasMore(t *testing.T, opensAt int, rows int64) {
	addresses, flags := twoServers(t, 2)
	a, b, at := addresses[0], addresses[1], []string{"a", "b"}[opensAt]
	onDatabase(t, a, `CREATE TABLE insta0.t (id bigint PRIMARY KEY); INSERT INTO insta0.t VALUES (1);
		SELECT firn.begin_move(0, 3, 'x', 'aaaaaaaaaaaa', 'b', true)`)
	onDatabase(t, b, `SELECT firn.claim(0, 'insta0', 3, 'x', 'aaaaaaaaaaaa', 'a', 'b', true)`)
	onDatabase(t, b, `CREATE SCHEMA insta0; CREATE TABLE insta0.t (id bigint PRIMARY KEY); INSERT INTO insta0.t VALUES (1), (2);
		SELECT firn.end_load(0, 3, 'x', 'next_id')`)
	onDatabase(t, a, `UPDATE firn.shard SET state = 'moved', moved_to = 'b', timeline = '00000000' WHERE shard = 0;
		INSERT INTO insta0.firn_mark (term, attempt, moved_to, floor, sequences) VALUES (3, 'x', 'b', 0, '{}')`)
	said := refuse(t, 1, append(strings.Fields("shard reopen a --shards 0 --yes"), flags...)...)
	if !strings.Contains(said, "the copy on b has 1 row that a lacks") {
		t.Fatal(said)
	}
	var opens string
	for _, words := range steps(said) {
		if strings.HasPrefix(words, "reopen "+at) {
			opens = words
		}
	}
	if opens == "" {
		t.Fatalf("no command opens it on %s:\n%s", at, said)
	}
	succeed(t, append(strings.Fields("shard "+opens+" --yes"), flags...)...)
	if n := one[int64](t, addresses[opensAt], "SELECT count(*) FROM insta0.t"); n != rows {
		t.Errorf("%d rows are served", n)
	}
}
