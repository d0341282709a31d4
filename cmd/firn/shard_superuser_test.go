//go:build !windows

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/move"
)

// TestMoveCommandsAsSuperuser: in what is said of a move, each command that takes the mover's role is found.
func TestMoveCommandsAsSuperuser(t *testing.T) {
	for text, want := range map[string]string{
		"to continue: firn shard move 4 --to b; to abort: firn shard abort 4":                 "to continue: firn shard move 4 --to b +; to abort: firn shard abort 4 +",
		"to continue: firn shard resume 1-2; then: firn shard move 1-2,5 --to db.2; to abort": "to continue: firn shard resume 1-2 +; then: firn shard move 1-2,5 --to db.2 +; to abort",
		"to drop it: firn shard finish 0. Then: firn shard status":                            "to drop it: firn shard finish 0 +. Then: firn shard status",
		"to open it: firn shard reopen a":                                                     "to open it: firn shard reopen a",
	} {
		if got := ofMover.ReplaceAllString(text, "$0 +"); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// TestFixObstacles: nothing on a server is wrong where only the role is.
func TestFixObstacles(t *testing.T) {
	role := move.Obstacle{Server: "a", Shard: -1, Fix: "give all addresses with a superuser's name, for moves only: --server NAME=postgres://SUPERUSER@HOST/DATABASE"}
	other := move.Obstacle{Server: "a", Shard: 0, Fix: "ALTER TABLE t ADD PRIMARY KEY (id)"}
	const again = "firn shard move 7 --to b --dry-run"
	for _, tt := range []struct {
		all  []move.Obstacle
		want string
	}{
		{[]move.Obstacle{other}, "fix these on the named servers, then check again: " + again},
		{[]move.Obstacle{role, role}, "give the addresses with the name of a superuser: " + again + " " + asSuperuser},
		{[]move.Obstacle{role, other}, "fix the others on the named servers, then check again with the name of a superuser: " + again + " " + asSuperuser},
	} {
		if got := fixObstacles(tt.all, again); got != tt.want {
			t.Errorf("%s, not %s", got, tt.want)
		}
	}
}

// TestShardsMoveTakesASuperuser types the hints of a move before PostgreSQL 16, where the owner of the shards is no
// superuser: of the plan, and of each command that says what comes next of a move that has just begun.
func TestShardsMoveTakesASuperuser(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	flags, super := ownedServers(t, "plainowner")
	if one[int](t, strings.TrimPrefix(super[1], "a="), "SELECT current_setting('server_version_num')::int") >= 160000 {
		t.Skip("a role that is no superuser moves shards there")
	}
	with := func(words string) []string { return append(strings.Fields("shard "+words), flags...) }
	typed := func(said, behind string) []string {
		t.Helper()
		_, told, ok := strings.Cut(said, behind)
		if !ok || !strings.Contains(told, "a=postgres://SUPERUSER@127.0.0.1:") || !strings.Contains(told, "b=postgres://SUPERUSER@127.0.0.1:") {
			t.Fatalf("%s\ndoes not say %q with the addresses of superusers", said, behind)
		}
		return shellWords(strings.ReplaceAll(told[:commandEnd(told)], "SUPERUSER", "t"))[1:]
	}
	said := refuse(t, 3, with("move 0 --to b")...)
	if strings.Contains(said, "fix these on the named servers") {
		t.Error(said)
	}
	succeed(t, typed(said, "hint: give the addresses with the name of a superuser: ")...)

	onDatabase(t, super[3][2:], strings.ReplaceAll(knowsOf("moved", "'a'", 0), "'000000EE'", "timeline"))
	for _, address := range []string{super[1], super[3]} {
		onDatabase(t, address[2:], "INSERT INTO firn.move (shard, batch, source, target, loaded, began) VALUES (0, 'abcdefghijkl', 'a', 'b', false, now() - interval '1 hour')")
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "001_t.sql"), "CREATE TABLE t (n integer)")
	for _, words := range []string{"apply " + dir, "status", "rebalance --dry-run"} {
		out, errs, _ := called(t, with(words)...)
		typed(out+errs, "to continue: ")
		typed(out+errs, "to abort: ")
	}
	out, _, _ := called(t, with("status")...)
	succeed(t, typed(out, "to abort: ")...)
	succeed(t, with("apply "+dir)...)
}
