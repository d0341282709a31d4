package move

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/topology"
)

func init() { child["move"] = moveChild }

// moveChild is a mover that kills itself before or after a message: its arguments are
// what to do, with which shard, the addresses of a and b, when, and at which message.
func moveChild() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	what, a, b, when, pattern := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	die := func() {
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			p.Kill()
		}
		select {}
	}
	h := hook{}
	switch when {
	case "before":
		h.before = once(pattern, die)
	case "after":
		h.after = once(pattern, die)
	}
	m := New(hooked(serverAt("a", a), h), hooked(serverAt("b", b), h), hasty())
	var err error
	switch what {
	case "move":
		_, err = m.Move(ctx, []int64{1})
	case "revert":
		_, err = m.Revert(ctx, []int64{1})
	case "finish":
		_, err = m.Finish(ctx, []int64{1})
	case "abort":
		_, err = m.Abort(ctx, []int64{1})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// run runs a mover in a process of its own, and says whether it was killed.
func runChild(t *testing.T, a, b *site, what, when, pattern string) (killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], what, a.Server.Config.ConnString(), b.Server.Config.ConnString(), when, pattern)
	cmd.Env = append(os.Environ(), "FIRN_MOVE_CHILD=move", "PGAPPNAME="+moverName)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &ended) && ended.Sys().(syscall.WaitStatus).Signaled():
		return true
	}
	t.Fatalf("%s, killed %s %s: %v\n%s", what, when, pattern, err, out)
	return false
}

// The messages by which a mover changes something, in their order.
var (
	moveSteps = []string{
		`firn\.begin_move`, `firn\.claim`, `firn\.begin_load`, `CREATE SCHEMA`, `firn\.end_load`, `commit`, `firn\.publish`, `pg_create_logical`, `firn\.subscribe`,
		`firn\.publish`, `firn\.subscribe`, `firn\.empty_publication`, `pg_create_logical`, `firn\.enable_subscription`, `INTO "insta1".firn_mark`, `firn\.lock_tables`, `firn\.let_go`, `firn\.take`,
	}
	revertSteps = []string{`firn\.begin_move`, `firn\.claim`, `firn\.lock_tables`, `firn\.let_go`, `firn\.take`}
	finishSteps = []string{`firn\.end_move`, `firn\.unsubscribe`, `firn\.discard`, `firn\.drop_leftovers`}
	abortSteps  = []string{`firn\.begin_move`, `firn\.claim`, `firn\.end_move`, `firn\.unsubscribe`, `firn\.discard`, `firn\.drop_leftovers`}
)

// some are steps: all of them in the long form of these tests (FIRN_LONG=1), else a few.
func some(all []string, few ...string) []string {
	if testserver.Long() {
		return all
	}
	return few
}

// TestKilled kills movers at each of their steps, when it was sent, one after the other;
// each goes on where the one before was killed, while others write.
func TestKilled(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	w := write(t, 1, a, b)
	where := ownersOf(a, b)
	through := func(what string, steps []string) {
		t.Helper()
		for _, pattern := range steps {
			begun := time.Now()
			if !runChild(t, a, b, what, "after", pattern) {
				t.Fatalf("%s came to its end, and there was no %s", what, pattern)
			}
			servers := where("1")
			t.Logf("%s killed at %s after %s: served by %s", what, pattern, time.Since(begun).Round(time.Millisecond), servers)
			if len(servers) > 1 {
				t.Fatalf("%s killed at %s: it is served by %s", what, pattern, servers)
			}
		}
		if runChild(t, a, b, what, "never", "") {
			t.Fatalf("%s was killed by somebody else", what)
		}
	}
	through("move", some(moveSteps, `CREATE SCHEMA`, `pg_create_logical`, `firn\.let_go`))
	w.some(t, 20)
	through("revert", some(revertSteps, `firn\.let_go`))
	w.some(t, 20)
	if runChild(t, a, b, "move", "never", "") || where("1") != "b" {
		t.Fatal("it has not moved again")
	}
	w.some(t, 20)
	through("finish", some(finishSteps, `firn\.end_move`, `firn\.discard`))
	w.some(t, 20)
	w.stop(t, b, 1)
	nothingLeft(t, a, b)
}

// TestKilledBetween: of a mover that was killed when it had let a shard go, Moves say which
// way; and whoever comes next opens the shard, wherever he wants it to go.
func TestKilledBetween(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	a, b := shops(t, 2)
	w := write(t, 1, a, b)
	where := ownersOf(a, b)
	m := mover(t, a, b)
	mustMove(t, m.Move, 1)
	if moves, err := Moves(t.Context(), []topology.Server{a.Server, b.Server}); err != nil || len(moves) != 1 || moves[0].Phase != Arrived || moves[0].Back != nil {
		t.Fatalf("it has arrived: %+v, %v", moves, err)
	}
	if !runChild(t, a, b, "revert", "after", `firn\.lock_tables`) {
		t.Fatal("revert seized nothing")
	}
	settled(t, a, b)
	if moves, err := Moves(t.Context(), []topology.Server{a.Server, b.Server}); err != nil || len(moves) != 1 || moves[0].Phase != Arrived || len(moves[0].Back) == 0 {
		t.Fatalf("revert was killed early: %+v, %v", moves, err)
	}
	for _, tt := range []struct {
		killed string
		back   bool
		next   func(context.Context, []int64) ([]Moved, error)
		moved  int
		ends   string
	}{
		{"revert", true, m.Move, 1, "b"},
		{"revert", true, m.Revert, 1, "a"},
		{"move", false, m.Revert, 1, "a"},
		{"move", false, m.Move, 1, "b"},
	} {
		var moves []Move
		for range 20 { // on a slow machine a try to let it go may have taken too long
			if !runChild(t, a, b, tt.killed, "after", `firn\.let_go`) {
				t.Fatalf("%s let nothing go", tt.killed)
			}
			settled(t, a, b)
			var err error
			if moves, err = Moves(t.Context(), []topology.Server{a.Server, b.Server}); err != nil || len(moves) != 1 {
				t.Fatalf("%s was killed: %+v, %v", tt.killed, moves, err)
			}
			if moves[0].Phase == Between {
				break
			}
		}
		if moves[0].Phase != Between || (len(moves[0].Back) > 0) != tt.back {
			t.Fatalf("%s was killed: %+v", tt.killed, moves)
		}
		if moved := mustMove(t, tt.next, 1); len(moved) != tt.moved || where("1") != tt.ends {
			t.Fatalf("%s was killed: %v, and %s serves it", tt.killed, moved, where("1"))
		}
		w.some(t, 20)
	}
	mustEnd(t, m.Finish, 1)
	w.stop(t, b, 1)
	nothingLeft(t, a, b)
}

// nothingLeft fails if servers have anything of moves but fences, which are out of use.
func nothingLeft(t *testing.T, sites ...*site) {
	t.Helper()
	for _, s := range sites {
		if left := s.one(t, `SELECT coalesce(string_agg(x, ', '), '') FROM (SELECT 'move ' || shard FROM firn.move
			UNION ALL SELECT 'publication ' || pubname FROM pg_publication
			UNION ALL SELECT 'subscription ' || subname FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
			UNION ALL SELECT 'slot ' || slot_name FROM pg_replication_slots WHERE database = current_database()
			UNION ALL SELECT 'mark ' || oid::regclass FROM pg_class WHERE relname = 'firn_mark'
			UNION ALL SELECT 'fence ' || tgrelid::regclass FROM pg_trigger WHERE tgname = 'firn_fence' AND tgenabled <> 'D') AS x (x)`); left != "" {
			t.Errorf("on %s is left: %s", s.Name, left)
		}
	}
}

// moverName is by what servers know the sessions of movers in processes of their own.
const moverName = "mover"

// settled waits until servers have done what movers sent that were killed. A slot that is
// made after that is a leftover, which is for doctor.
func settled(t *testing.T, sites ...*site) {
	t.Helper()
	for _, s := range sites {
		s.eventually(t, `SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
			AND (application_name = '`+moverName+`' OR state = 'active' AND query ~ 'pg_create_logical|firn[.](begin_move|claim|begin_load|end_load|publish|empty_publication|subscribe|enable_subscription|lock_tables|let_go|take|end_move|unsubscribe|discard|drop_leftovers)')`, "0")
	}
}

// TestAborted gives moves up that were killed at each of their phases, by movers that are
// killed at each of theirs: nothing is left, and the shard serves where it was.
func TestAborted(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	w := write(t, 1, a, b)
	before := everything(t, a, b)
	check := func(what string) {
		t.Helper()
		// The target knows the shard now, and where it is.
		if left := difference(before, everything(t, a, b)); left != "" {
			t.Errorf("%s leaves\n%s", what, left)
		}
		w.some(t, 5)
	}
	phases := []string{`firn\.claim`, `firn\.end_load`, `pg_create_logical`, `firn\.subscribe`, `firn\.empty_publication`, `firn\.lock_tables`}
	for _, pattern := range some(phases, `firn\.empty_publication`) {
		begun := time.Now()
		if !runChild(t, a, b, "move", "after", pattern) {
			t.Fatalf("there was no %s", pattern)
		}
		took := time.Since(begun)
		settled(t, a, b)
		if runChild(t, a, b, "abort", "never", "") {
			t.Fatal("abort was killed")
		}
		t.Logf("killed at %s after %s, aborted in %s", pattern, took.Round(time.Millisecond), (time.Since(begun) - took).Round(time.Millisecond))
		check("abort after " + pattern)
	}
	if !runChild(t, a, b, "move", "after", `firn\.lock_tables`) {
		t.Fatal("there was no lock_tables")
	}
	for _, pattern := range some(abortSteps, `firn\.end_move`, `firn\.discard`) {
		settled(t, a, b)
		if !runChild(t, a, b, "abort", "after", pattern) {
			t.Fatalf("abort came to its end, and there was no %s", pattern)
		}
	}
	settled(t, a, b)
	if runChild(t, a, b, "abort", "never", "") {
		t.Fatal("abort was killed")
	}
	check("abort that was killed")
	m := mover(t, a, b)
	mustMove(t, m.Move, 1)
	w.some(t, 5)
	w.stop(t, b, 1)
}
