//go:build !windows

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsMoveAltered: a move was broken off, and somebody changed a table of one of its shards. Continued, the move says
// of that shard what status says.
func TestShardsMoveAltered(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	a, flags := movable(t, 4)
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	for _, schema := range []string{"insta0", "insta1"} {
		onDatabase(t, a[0], "CREATE TABLE "+schema+".t (id bigint PRIMARY KEY)")
	}
	holder, err := pgx.Connect(t.Context(), a[0])
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	if _, err := holder.Exec(t.Context(), "BEGIN; INSERT INTO insta0.t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	// Its slot waits for the transaction.
	refuse(t, 1, with("move 0-1 --to b --lock-wait 2s")...)
	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	onDatabase(t, a[0], "ALTER TABLE insta1.t ADD COLUMN nick text")
	for _, words := range []string{"status", "doctor", "move 0-1 --to b"} {
		out, errs, _ := called(t, with(words)...)
		if !strings.Contains(out+errs, "the two copies of shard 1 are not alike any more") {
			t.Errorf("firn shard %s does not say that the copies differ:\n%s%s", words, out, errs)
		}
		if told := steps(out + errs); !strings.HasPrefix(strings.Join(told, "; "), "abort ") {
			t.Errorf("firn shard %s leads to %q:\n%s%s", words, told, out, errs)
		}
	}
	said := refuse(t, 1, with("move 0-1 --to b")...)
	if !strings.Contains(plain(said), "to stay on a: firn shard abort 1; to move to b all the same: firn shard abort 1; then: firn shard move 1 --to b") {
		t.Error(said)
	}
	succeed(t, with("abort 1")...)
	succeed(t, with("move 0-1 --to b")...)
}
