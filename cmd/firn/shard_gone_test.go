//go:build !windows

package main

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// TestShardsMoveBrokenOff has a move that waits broken off: it says how it stands and what
// to type, and ends at once where it is told twice. Then its target is permanently lost, and
// what is left does without it.
func TestShardsMoveBrokenOff(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	away := movesServer(t)
	a, b := database(t, testserver.Shared(t, movesServer), "a"), database(t, away, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	with := func(flags []string, args ...string) []string {
		return append(append([]string{"shards"}, args...), flags...)
	}
	succeed(t, with(flags[:2], "init", "--count", "2", "--yes")...)
	succeed(t, with(flags[:2], "add-server", "b="+b)...)
	onDatabase(t, a, "CREATE TABLE insta1.users (id bigint PRIMARY KEY DEFAULT insta1.next_id(), name text)")

	holder, err := pgx.Connect(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	if _, err := holder.Exec(t.Context(), "BEGIN; INSERT INTO insta1.users (name) VALUES ('x')"); err != nil {
		t.Fatal(err)
	}
	p := waitingMove(t, a, with(flags, "move", "1", "--to", "b"))
	p.Process.Signal(syscall.SIGINT)
	at := " --server 'a=" + a + "' --server 'b=" + b + "'"
	if code := p.code(t); code != 130 || !strings.HasSuffix(p.errs.String(), "Broken off: shard 1 serves on a.\n            Nothing is copied to b yet.\n"+
		"To continue, from any host: firn shard move 1 --to b"+at+"\nTo abort it:                firn shard abort 1"+at+"\n") {
		t.Errorf("exit code %d\n%s", code, &p.errs)
	}
	p = waitingMove(t, a, with(flags, "move", "1", "--to", "b"))
	away.Freeze(t)
	begun := time.Now()
	p.Process.Signal(syscall.SIGINT)
	time.Sleep(200 * time.Millisecond) // it asks b, which does not answer
	p.Process.Signal(syscall.SIGINT)
	p.Wait()
	if took := time.Since(begun); took > lastLook/2 || p.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("told twice it ended after %s: %s", took, p.ProcessState)
	}
	away.Thaw(t)
	if said := refuse(t, 1, with(flags, "abort", "1", "--gone", "b")...); !strings.Contains(said, "server b is not gone, it answers") || !strings.Contains(said, "hint: to see which server serves each shard, and what to type: firn shard status --server ") {
		t.Error(said)
	}
	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}

	away.Kill(t)
	for _, what := range []string{"abort 1", "move 1 --to b"} {
		if said := refuse(t, 1, with(flags, strings.Fields(what)...)...); !strings.Contains(said, "hint: start server b, or check its address") {
			t.Errorf("%s: %s", what, said)
		}
	}
	if said := refuse(t, 1, with(flags, "remove-server", "b", "--gone", "b")...); !strings.Contains(said, "is not finished") || !strings.Contains(said, "hint: to end it without b: firn shard abort 1 --gone b --server ") {
		t.Error(said)
	}
	if said := refuse(t, 2, with(flags, "abort", "1", "--gone", "b")...); !strings.Contains(said, "nobody can confirm: Is server b permanently gone?") {
		t.Error(said)
	}
	if out := succeed(t, with(flags, "abort", "1", "--gone", "b", "--yes")...); out != "1 move aborted\n" {
		t.Error(out)
	}
	if out := succeed(t, with(flags, "remove-server", "b", "--gone", "b", "--yes")...); !strings.Contains(out, "no longer in the cluster") {
		t.Error(out)
	}
	doctor := command(t, "none", with(flags[:2], "doctor")...)
	if out, _ := doctor.Output(); !strings.Contains(string(out), "fsync") || strings.Contains(string(out), "left of") || strings.Contains(string(out), "cluster") {
		t.Errorf("it finds more than that fsync is off:\n%s", out)
	}
	onDatabase(t, a, "INSERT INTO insta1.users (name) VALUES ('x')")
}

// waitingMove starts a move that waits for a transaction of its source.
func waitingMove(t *testing.T, source string, args []string) *process {
	t.Helper()
	p := command(t, "none", args...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() }) // if it has not ended
	c, err := pgx.Connect(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	await(t, "a slot is being made", func() bool {
		var making bool
		err := c.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid() AND query ~ 'pg_create_logical')").Scan(&making)
		return err == nil && making
	})
	return p
}

// TestBrokenText: what a move that was broken off says, by how it stands.
func TestBrokenText(t *testing.T) {
	one := func(phase move.Stage, moved ...int64) move.Move {
		return move.Move{Source: "a", Target: "b", Shards: []int64{1, 2}, Moved: moved, Phase: phase, Rows: 5000, RowsTotal: 9000}
	}
	for _, tt := range []struct {
		moves       []move.Move
		says, never string
	}{
		{nil, "no move is under way, the shards serve where they are", "abort"},
		{[]move.Move{one(move.Begun)}, "shards 1-2 serve on a.\n            Nothing is copied to b yet.", "finish"},
		{[]move.Move{one(move.Filling)}, "b has about 5,000 of 9,000 rows, and PostgreSQL continues the copy.", "finish"},
		{[]move.Move{one(move.Ready, 1)}, "shard 1 serves on b already; shard 2 serves on a.", "abort 1"},
		{[]move.Move{one(move.Ready, 1)}, "firn shard abort 2\n", "finish"},
		{[]move.Move{{Source: "a", Target: "b", Shards: []int64{1, 2}, Moved: []int64{1}, Waiting: []int64{2}, Phase: move.Between}}, "shard 1 serves on b, no server serves shard 2,\n            and programs wait for it. Continue at once.", "abort"},
		{[]move.Move{{Source: "a", Target: "b", Shards: []int64{1, 2}, Moved: []int64{1, 2}, Back: []int64{1}, Phase: move.Arrived}}, "shards 1-2 serve on b.", "finish"},
		{[]move.Move{{Source: "a", Target: "b", Shards: []int64{1, 2}, Moved: []int64{2}, Back: []int64{1, 2}, Phase: move.Ready}}, "shard 1 serves on a.", "abort"},
		{[]move.Move{one(move.Arrived, 1, 2)}, "shards 1-2 serve on b.\n            The old copies on a are kept up to date.", "abort"},
		{[]move.Move{one(move.Arrived, 1, 2)}, "firn shard finish 1-2\n", "abort"},
		{[]move.Move{one(move.Unknown, 1), one(move.Arrived, 1, 2)}, "Start the server that does not answer, or check its address.\n", "finish"},
		{[]move.Move{one(move.Unknown), one(move.Ready)}, "nobody can say", "abort"},
		{[]move.Move{one(move.HalfLeft)}, "it has just begun, or is being ended.\n            The shards serve.", "abort"},
	} {
		text := brokenText(tt.moves, []int64{1, 2}, "firn shard move 1-2 --to b")
		if !strings.Contains(text, tt.says) || strings.Contains(text, "firn shard "+tt.never) || !strings.Contains(text, "To continue, from any host: firn shard move 1-2 --to b\n") {
			t.Errorf("%+v\n%s", tt.moves, text)
		}
	}
}

// TestNextText: what status says of a move, by how it stands.
func TestNextText(t *testing.T) {
	one, two, both := []int64{1}, []int64{2}, []int64{1, 2}
	for _, tt := range []struct {
		f    move.Move
		want string
	}{
		{move.Move{Phase: move.Begun, Kept: both}, "shards 1-2 serve on a: to continue: firn shard move 1-2 --to b; to abort: firn shard abort 1-2"},
		{move.Move{Phase: move.Ready, Kept: one, Moved: two}, "shard 2 serves on b, shard 1 serves on a: to continue: firn shard move 1-2 --to b; to abort what has not moved: firn shard abort 1"},
		{move.Move{Phase: move.Ready, Kept: one, Moved: two, Back: one}, "shard 2 serves on b, shard 1 serves on a: to drop the other copies, after the revert: firn shard abort 1; to move there again: firn shard move 1 --to b"},
		{move.Move{Phase: move.Ready, Kept: one, Moved: two, Back: both}, "shard 2 serves on b, shard 1 serves on a: to continue the revert: firn shard revert 2; to move all to b: firn shard move 1-2 --to b"},
		{move.Move{Phase: move.Ready, Kept: both, Back: two}, "shards 1-2 serve on a: to continue: firn shard move 1-2 --to b; to abort: firn shard abort 1-2"},
		{move.Move{Phase: move.Between, Kept: two, Waiting: one}, "shard 2 serves on a, no server serves shard 1: programs wait until it is opened: firn shard move 1-2 --to b"},
		{move.Move{Phase: move.Between, Moved: two, Waiting: one}, "shard 2 serves on b, no server serves shard 1: programs wait until it is opened: firn shard move 1-2 --to b"},
		{move.Move{Phase: move.Between, Kept: two, Waiting: one, Back: two}, "shard 2 serves on a, no server serves shard 1: programs wait until it is opened: firn shard move 1 --to b"},
		{move.Move{Phase: move.Between, Moved: two, Waiting: one, Back: one}, "shard 2 serves on b, no server serves shard 1: programs wait until it is opened: firn shard revert 1"},
		{move.Move{Phase: move.Between, Waiting: both, Back: two}, "no server serves shard 1-2: programs wait until it is opened: firn shard revert 2; then: firn shard move 1 --to b"},
		{move.Move{Phase: move.Arrived, Moved: both}, "shards 1-2 serve on b: to drop the old copies: firn shard finish 1-2; to go back: firn shard revert 1-2"},
		{move.Move{Phase: move.Arrived, Moved: both, Back: two}, "shards 1-2 serve on b: to continue the revert: firn shard revert 2; to stay on b, and drop the copies on a: firn shard finish 1-2"},
		// Its schema was changed since the copy began, or the copy was put back.
		{move.Move{Phase: move.Arrived, Moved: both, Parted: two}, "shards 1-2 serve on b: to stay on b, and drop the old copies on a: firn shard finish 1-2; to go back to a: firn shard revert 1; then: firn shard finish 2; then: firn shard move 2 --to a"},
		{move.Move{Phase: move.Arrived, Moved: both, Back: two, Parted: two}, "shards 1-2 serve on b: to stay on b, and drop the old copies on a: firn shard finish 1-2; to go back to a: firn shard revert 1; then: firn shard finish 2; then: firn shard move 2 --to a"},
		{move.Move{Phase: move.Ready, Kept: both, Parted: one}, "shards 1-2 serve on a: to stay on a: firn shard abort 1-2; to move to b all the same: firn shard abort 1-2; then: firn shard move 1-2 --to b"},
		// One of the servers does not answer, or knows nothing of the move.
		{move.Move{Phase: move.Unknown}, "no server that answers serves shard 1-2: start the server that does not answer, or check its address; what to type then says: firn shard status; if it is permanently lost: docs/guides/shards-operating.md, \"A server that is lost\""},
		{move.Move{Phase: move.Unknown, Kept: one}, "shard 1 serves on a, no server that answers serves shard 2: start the server that does not answer, or check its address; what to type then says: firn shard status; if it is permanently lost: docs/guides/shards-operating.md, \"A server that is lost\""},
		{move.Move{Phase: move.HalfLeft, Forgot: "b", Kept: both}, "shards 1-2 serve on a: to continue: firn shard move 1-2 --to b; to abort: firn shard abort 1-2"},
		{move.Move{Phase: move.HalfLeft, Forgot: "b", Kept: both, Old: two}, "shards 1-2 serve on a: to end it: firn shard abort 1-2; then: firn shard finish 2"},
		{move.Move{Phase: move.HalfLeft, Forgot: "b"}, "b has forgotten the move of shard 1-2: to end it: firn shard finish 1-2"},
		{move.Move{Phase: move.HalfLeft, Forgot: "a"}, "a has forgotten the move of shard 1-2: to end it: firn shard abort 1-2"},
		{move.Move{Phase: move.HalfLeft, Forgot: "a", Moved: both}, "shards 1-2 serve on b: to end it: firn shard finish 1-2"},
		{move.Move{Phase: move.HalfLeft, Forgot: "a", Moved: one}, "shard 1 serves on b, a has forgotten the move of shard 2: to end it: firn shard abort 2; then: firn shard finish 1"},
	} {
		tt.f.Source, tt.f.Target, tt.f.Shards = "a", "b", both
		if got := standsText(tt.f) + ": " + nextText(tt.f); got != tt.want {
			t.Errorf("%+v\n%s\n%s", tt.f, got, tt.want)
		}
	}
}

// TestPhaseLine: the line that a terminal shows goes on one line of it.
func TestPhaseLine(t *testing.T) {
	p := move.Progress{Phase: move.Copying, Shards: 32, Done: 12, Rows: 123_456_789, RowsTotal: 234_567_890, Bytes: 79e9, BytesTotal: 123e9, Unapplied: 5_660_000, Left: 12*time.Minute + 30*time.Second}
	if got, want := moveLine(p), "12 of 32 shards moved; copy 64 % of 123 GB, 12m30s left, 5.66 MB behind, 123,456,789 rows"; got != want {
		t.Errorf("%s\n%s", got, want)
	}
	if got := moveLine(move.Progress{Phase: move.Copying, Shards: 1, Bytes: 149, BytesTotal: 113}); got != "0 of 1 shard moved; copy 100 % of 113 B" {
		t.Error(got)
	}
	if got := moveLine(move.Progress{Phase: move.Verifying, Shards: 1, Rows: 1000}); got != "0 of 1 shard moved; verify, 1,000 rows compared" {
		t.Error(got)
	}
}

// TestShardsReopenIncomplete loses the server that had a shard last: what another one has
// of it is opened only by who says that rows may be missing.
func TestShardsReopenIncomplete(t *testing.T) {
	t.Parallel()
	a, flags := twoServers(t, 4)
	onDatabase(t, a[0], "SELECT firn.close(0); UPDATE firn.shard SET state = 'moved', moved_to = 'b', term = term + 1 WHERE shard = 0")
	flags = []string{flags[0], flags[1], "--server", "b=postgres://127.0.0.1:1/x"}
	args := func(more ...string) []string {
		return append(append([]string{"shard", "reopen", "a", "--gone", "b", "--yes"}, more...), flags...)
	}
	if said := refuse(t, 2, args("--incomplete")...); !strings.Contains(said, "firn shard reopen a --incomplete --shards 17") {
		t.Error(said)
	}
	if said := refuse(t, 1, args("--shards", "0")...); !strings.Contains(said, "a may lack rows of it") || !strings.Contains(said, "hint: start server b, or put its standby or backup in its place, then: firn shard reopen b --server ") {
		t.Error(said)
	}
	if out := succeed(t, args("--shards", "0", "--incomplete")...); out != "1 shard opened on server a\n" {
		t.Error(out)
	}
	onDatabase(t, a[0], "SELECT insta0.next_id()")

	// A hint names all shards that it is about.
	onDatabase(t, a[0], "SELECT firn.close(shard), firn.close(shard + 1) FROM firn.shard WHERE shard = 0; UPDATE firn.shard SET state = 'moved', moved_to = 'b', attempt = NULL, term = term + 1 WHERE shard < 2")
	if said := refuse(t, 1, args("--shards", "0-1")...); !strings.Contains(said, "shard 0 and 1 more: a may lack rows of them") || !strings.Contains(said, "firn shard reopen a --shards 0-1 --incomplete --gone b --server ") {
		t.Error(said)
	}
	if out := succeed(t, args("--shards", "0-1", "--incomplete")...); out != "2 shards opened on server a\n" {
		t.Error(out)
	}
}

// TestGoneFailure: what was overtaken by a mover is run again.
func TestGoneFailure(t *testing.T) {
	for code, hint := range map[string]string{"ID002": "run it again", "ID007": "run it again"} {
		f := goneFailure(&topology.ServerError{Server: "a", Err: &pgconn.PgError{Code: code}})
		if len(f.Hints) != 1 || !strings.HasSuffix(f.Hints[0].Text, hint) && !strings.Contains(f.Hints[0].Text, hint+";") {
			t.Errorf("%s: %+v", code, f.Hints)
		}
	}
}

// TestMoveFailure: what belongs to the role that began a move, only that role ends.
func TestMoveFailure(t *testing.T) {
	for code, want := range map[string]string{"42501": whoseMove + ": in the same command give these addresses instead, with the role that began the move, or a superuser: --server SERVER=postgres://SUPERUSER@HOST/DATABASE", "2BP01": "drop it there"} {
		f := moveFailure(&topology.ServerError{Server: "a", Err: &pgconn.PgError{Code: code, Hint: "drop it there"}})
		if len(f.Hints) != 1 || f.Hints[0].Text != want {
			t.Errorf("%s: %+v", code, f.Hints)
		}
	}
}

// TestAdoptFailure: a count that is too low is told with one that will do.
func TestAdoptFailure(t *testing.T) {
	f := adoptFailure(&setup.CountError{Found: 1, Highest: 5, Keys: "mod", Count: 3})
	if len(f.Hints) != 1 || !strings.HasPrefix(f.Hints[0].Text, "--count 6, ") || !strings.Contains(f.Error(), "there is a shard 5, so the cluster has at least 6 shards, not 3") {
		t.Errorf("%s: %+v", f, f.Hints)
	}
}

// TestShardsNoWayBack: a shard whose schema was changed since it moved does not go back to
// its old copy, and does what is said instead.
func TestShardsNoWayBack(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	succeed(t, append([]string{"shard", "init", "--count", "1", "--yes"}, flags[:2]...)...)
	succeed(t, append([]string{"shard", "add-server", "b=" + b}, flags[:2]...)...)
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("move 0 --to b")...)
	onDatabase(t, b, "CREATE TABLE insta0.late (id bigint PRIMARY KEY)")
	said := refuse(t, 1, with("revert 0")...)
	if !strings.Contains(said, "there: ") && !strings.Contains(said, "here: ") || !strings.Contains(said, "hint: firn shard finish 0 --server ") || !strings.Contains(said, ", then firn shard move 0 --to a --server ") || strings.Contains(said, "goes on") {
		t.Error(said)
	}
	// Nothing offers the way back that there is not.
	for _, words := range []string{"status", "doctor", "abort 0", "move 0 --to a"} {
		out, errs, _ := called(t, with(words)...)
		if told := toldMoves(out + errs); slices.Contains(told, "revert 0") || !strings.Contains(strings.Join(told, "; "), "finish 0; move 0 --to a") {
			t.Errorf("firn shard %s tells %q:\n%s%s", words, told, out, errs)
		}
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "001_t.sql"), "CREATE TABLE u (n integer)")
	_, errs, _ := called(t, with("apply --dry-run "+dir)...)
	if told := toldMoves(errs); slices.Contains(told, "revert 0") || !slices.Contains(told, "finish 0") {
		t.Errorf("apply tells %q:\n%s", told, errs)
	}
	succeed(t, with("finish 0 --yes")...)
	succeed(t, with("move 0 --to a")...)
}

// TestShardsCopyRestored: the server with the old copy was restored. The server is reopened first;
// after that no command offers the way back, which is gone, and each names one that works: it also drops the
// copy that the reopen has left.
func TestShardsCopyRestored(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	a, flags := movable(t, 2)
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("move 0 --to b")...)
	onDatabase(t, a[0], "UPDATE firn.shard SET timeline = 'FFFFFFFF'")
	for _, words := range []string{"status", "abort 0", "revert 0"} {
		out, errs, _ := called(t, with(words)...)
		if told := openCommand.FindStringSubmatch(out + errs); told == nil || told[1] != "reopen a" || slices.Contains(toldMoves(out+errs), "revert 0") {
			t.Errorf("firn shard %s:\n%s%s", words, out, errs)
		}
	}
	succeed(t, with("reopen a --yes")...)
	for _, words := range []string{"status", "abort 0", "move 0 --to a"} {
		out, errs, _ := called(t, with(words)...)
		if told := toldMoves(out + errs); len(told) == 0 || told[0] != "finish 0" || slices.Contains(told, "revert 0") {
			t.Errorf("firn shard %s tells %q:\n%s%s", words, told, out, errs)
		}
	}
	succeed(t, with("finish 0 --yes")...)
	succeed(t, with("move 0 --to a")...)
}

// movable are two servers between which shards move.
func movable(t *testing.T, shards int) (addresses, flags []string) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		address := database(t, testserver.Shared(t, movesServer), name)
		addresses, flags = append(addresses, address), append(flags, "--server", name+"="+address)
	}
	succeed(t, append([]string{"shard", "init", "--yes", "--count", strconv.Itoa(shards)}, flags...)...)
	return addresses, flags
}

// TestShardsNoWayOn: a shard whose schema was changed while it was copied does not change over. Each
// command says to give the move up, and no command sends back to one that fails.
func TestShardsNoWayOn(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	a, flags := movable(t, 2)
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	onDatabase(t, a[0], "CREATE TABLE insta0.t (id bigint PRIMARY KEY DEFAULT insta0.next_id())")
	succeed(t, with("move 0 --to b")...)
	succeed(t, with("revert 0")...)
	onDatabase(t, a[0], "ALTER TABLE insta0.t ADD COLUMN n integer")
	for _, words := range []string{"status", "move 0 --to b"} {
		out, errs, _ := called(t, with(words)...)
		if told := toldMoves(out + errs); len(told) == 0 || told[0] != "abort 0" {
			t.Errorf("firn shard %s tells %q:\n%s%s", words, told, out, errs)
		}
	}
	succeed(t, with("abort 0")...)
	succeed(t, with("move 0 --to b")...)
}

// TestShardsRevertSome: of the shards of a revert one is in no move. What is printed is about the
// others, and typed it brings no shard where it never was.
func TestShardsRevertSome(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	_, flags := movable(t, 4)
	with := func(words string) []string { return append(strings.Fields("shards "+words), flags...) }
	succeed(t, with("move 0 --to b")...)
	out, errs, code := called(t, with("revert 0,1")...)
	if told := toldMoves(out + errs); code != 0 || !slices.Equal(told, []string{"abort 0", "move 0 --to b"}) || !strings.Contains(errs, "no move of shard 1 is there to be taken back") {
		t.Errorf("exit code %d, it tells %q:\n%s%s", code, told, out, errs)
	}
}

// TestShardsRebalanceBrokenOff has a rebalance broken off: it says how the moves stand that
// are under way, and run again it brings them to their ends.
func TestShardsRebalanceBrokenOff(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	succeed(t, append([]string{"shard", "init", "--count", "2", "--yes"}, flags[:2]...)...)
	succeed(t, append([]string{"shard", "add-server", "b=" + b}, flags[:2]...)...)
	holder, err := pgx.Connect(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	if _, err := holder.Exec(t.Context(), "BEGIN; CREATE TABLE public.t ()"); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"shard", "rebalance"}, flags...)
	p := waitingMove(t, a, args)
	p.Process.Signal(syscall.SIGINT)
	at := " --server 'a=" + a + "' --server 'b=" + b + "'"
	if code := p.code(t); code != 130 || !strings.HasSuffix(p.errs.String(), "Broken off: shard 0 serves on a.\n            Nothing is copied to b yet.\n"+
		"To continue, from any host: firn shard rebalance"+at+", with the same flags\nTo abort it:                firn shard abort 0"+at+"\n") {
		t.Errorf("exit code %d\n%s", code, &p.errs)
	}
	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if out := succeed(t, args...); !strings.Contains(out, "1 shard moved") || !strings.Contains(out, "nothing to move") {
		t.Error(out)
	}
}

// TestShardsRebalanceBegun: a rebalance that was killed when one server knew of a move, and
// the other one not yet, goes on when it is run again.
func TestShardsRebalanceBegun(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	a, b := database(t, postgres, "a"), database(t, postgres, "b")
	flags := []string{"--server", "a=" + a, "--server", "b=" + b}
	succeed(t, append([]string{"shard", "init", "--count", "2", "--yes"}, flags[:2]...)...)
	succeed(t, append([]string{"shard", "add-server", "b=" + b}, flags[:2]...)...)
	onDatabase(t, a, "SELECT firn.begin_move(shard, term + 1, 'somebody', '0123456789ab', 'b', true) FROM firn.shard WHERE shard = 0")
	if out := succeed(t, append([]string{"shard", "rebalance"}, flags...)...); !strings.Contains(out, "\n1 shard moved") {
		t.Error(out)
	}
}

// TestShardsSwept: a finish and a rebalance that were killed at their very end leave nothing
// when they are run again.
func TestShardsSwept(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	a, flags := twoServers(t, 2)
	for _, what := range []string{"finish 0", "abort 0", "rebalance"} {
		onDatabase(t, a[0], "CREATE PUBLICATION firn_move_0123456789ab")
		succeed(t, append(append([]string{"shards"}, strings.Fields(what)...), flags...)...)
		onDatabase(t, a[0], "CREATE PUBLICATION firn_move_0123456789ab; DROP PUBLICATION firn_move_0123456789ab")
	}
}
