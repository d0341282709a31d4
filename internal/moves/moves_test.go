package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) {
	if err := asMover(); !errors.Is(err, errNoMover) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitFailed)
		}
		os.Exit(0)
	}
	testserver.Main(m)
}

// small is what a test has the time for: one shard, with fewer rows and writers than the command has.
func small() settings {
	set := defaults
	set.runs, set.rows, set.writers, set.seed = 1, 2000, 4, uint64(time.Now().UnixNano())
	set.long, set.around, set.behind = 200*time.Millisecond, 200*time.Millisecond, 0
	return set
}

// moveAll fails the test if anything is found that should not be.
func moveAll(t *testing.T, set settings) *report {
	t.Helper()
	var out bytes.Buffer
	r := &report{out: &out, faults: set.faults}
	err := all(t.Context(), t, set, r)
	r.end()
	t.Logf("\n%s", out.String())
	if err != nil || r.bad > 0 {
		t.Errorf("%d bad, %v", r.bad, err)
	}
	return r
}

// TestMoves: a shard moves while writers write to it, to a server whose clock is an
// hour behind.
func TestMoves(t *testing.T) {
	set := small()
	set.behind = time.Hour
	moveAll(t, set)
}

// TestRevert: one moves there and back, between servers that somebody else started. What was made there is
// removed, and a server with a schema firn is refused.
func TestRevert(t *testing.T) {
	set := small()
	set.revert, set.behind = true, 0
	a, b := testserver.Postgres(t, "wal_level=logical"), testserver.Postgres(t, "wal_level=logical")
	set.given = map[string]string{"a": a.URL(), "b": b.URL()}
	moveAll(t, set)
	for _, s := range []*testserver.Server{a, b} {
		c, err := pgx.Connect(t.Context(), s.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		var left []string
		err = c.QueryRow(t.Context(), `SELECT array(SELECT nspname::text FROM pg_namespace WHERE nspname !~ '^(pg_|public$|information_schema$)' UNION ALL SELECT rolname FROM pg_roles WHERE rolname ~ 'firn'
			UNION ALL SELECT slot_name FROM pg_replication_slots UNION ALL SELECT subname FROM pg_subscription UNION ALL SELECT pubname FROM pg_publication)`).Scan(&left)
		if err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
		if _, err := c.Exec(t.Context(), "CREATE SCHEMA firn"); err != nil {
			t.Fatal(err)
		}
	}
	err := all(t.Context(), t, set, &report{out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "server a: this database has a schema firn") {
		t.Errorf("a server with a schema firn: %v", err)
	}
}

// TestParseServers: both servers, by their names.
func TestParseServers(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "a=postgres://h/d,b=postgres://i/d": true, "a=postgres://h/d": false, "a=postgres://h/d,a=postgres://i/d": false,
		"a=postgres://h/d,c=postgres://i/d": false, "a=h,b=i": false, "a,b": false,
	} {
		if all, err := parseServers(text); (err == nil) != ok {
			t.Errorf("%q: %v, %v", text, all, err)
		}
	}
}

// TestParseOnly: the harm of -only is one that a run can have, and comes with -faults.
func TestParseOnly(t *testing.T) {
	for _, tt := range []struct {
		args []string
		ok   bool
	}{
		{[]string{"-faults", "-only", "link cut"}, true},
		{[]string{"-only", "link cut"}, false},
		{[]string{"-faults", "-only", "link cutt"}, false},
		{[]string{"-faults", "-only", "mover killed"}, false},
	} {
		if _, err := parse(tt.args); (err == nil) != tt.ok {
			t.Errorf("%q: %v", tt.args, err)
		}
	}
}

// TestFaults: one moves although the mover is killed, servers are, and a second mover works at it.
func TestFaults(t *testing.T) {
	set := small()
	set.faults, set.only = true, "second mover"
	if r := moveAll(t, set); len(r.all) == 1 && len(r.all[0].Struck) == 0 {
		t.Error("nothing was done to it")
	}
}

// TestHarms: one moves for each harm, and each is done.
func TestHarms(t *testing.T) {
	testserver.OnlyLong(t)
	set := small()
	set.faults, set.runs = true, len(harms)
	r := moveAll(t, set)
	for _, h := range harms {
		if done := slices.ContainsFunc(r.all, func(o outcome) bool { return slices.Contains(o.Struck, h.name) }); !done && !h.usual && len(r.skipped) == 0 {
			t.Errorf("never: %s", h.name)
		}
	}
}

// TestHinted: the command to type next is one of the hint's that was not typed yet, and claims nothing.
func TestHinted(t *testing.T) {
	for _, tt := range []struct{ said, want string }{
		{"firn: hint: to abort the move, before it is moved again: firn shard abort 3", "firn shard abort 3"},
		{"firn: hint: firn shard finish 17, then firn shard move 17 --to a", "firn shard finish 17"},
		{"to open it: firn shard reopen b --shards 3 --incomplete; or: firn shard reopen a --shards 3", "firn shard reopen a --shards 3"},
		{"firn shard reopen a --gone b", ""},
		{"drop them all the same: firn shard finish 3 --drop-rows-of b --server 'a=x'", "firn shard finish 3 --drop-rows-of b"},
		{"to continue: firn shard move 3 --to b; to abort what has not changed over: firn shard abort 3", "firn shard abort 3"},
		{"firn shard reopen b --server 'a=postgres://t@h:1/d?sslmode=disable' --server 'b=postgres://t@h:2/d'. Then: firn shard status --server 'a=x'", "firn shard reopen b"},
		{"firn shard reopen b --shards 3 --server 'a=x' --incomplete", ""},
		{"to see which server serves it: firn shard status", "firn shard status"},
	} {
		if got := hinted(tt.said, []string{"firn shard move 3 --to b"}); got != tt.want {
			t.Errorf("%s: %q", tt.said, got)
		}
	}
}

// TestComplete: of a source that was promoted the command is found that does without what only the copy has.
func TestComplete(t *testing.T) {
	said := "to open the copy on b: firn shard reopen b --shards 3 --server 'a=x'; if the rows that a lacks are not needed: firn shard reopen a --shards 3 --incomplete --server 'a=x'"
	if got := complete.FindString(said); got != "firn shard reopen a --shards 3 --incomplete" {
		t.Errorf("%q", got)
	}
	if got := complete.FindString("firn shard reopen b --shards 3 --incomplete"); got != "" {
		t.Errorf("%q", got)
	}
}
