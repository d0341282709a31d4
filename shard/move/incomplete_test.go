package move

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// reopenAlone opens a shard on the server that is left, as it is if that is said.
func reopenAlone(t *testing.T, s *site, gone string, incomplete bool) error {
	t.Helper()
	v, err := topology.Look(t.Context(), s.Conn)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := setup.PlanReopen(s.Name, map[string]*topology.View{s.Name: v}, []string{gone}, []string{gone}, func(n int64) bool { return n == 1 })
	if err != nil || len(plan.Shards) != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	plan.Incomplete = incomplete
	return plan.Reopen(t.Context(), s.Conn, nil, plan.Shards[0], 0)
}

// asItIs opens a shard on the server that is left, which refuses that unless it is said
// that rows may be missing.
func asItIs(t *testing.T, s *site, gone string) {
	t.Helper()
	var incomplete *setup.IncompleteError
	if err := reopenAlone(t, s, gone, false); !errors.As(err, &incomplete) || incomplete.Shard != 1 || incomplete.Server != s.Name {
		t.Errorf("%s may lack rows, and is opened: %v", s.Name, err)
	}
	if got := ownersOf(s)("1"); got != "" {
		t.Fatalf("it is served by %q", got)
	}
	if err := reopenAlone(t, s, gone, true); err != nil {
		t.Fatal(err)
	}
	if got := ownersOf(s)("1"); got != s.Name {
		t.Errorf("it is served by %q", got)
	}
	if got := s.one(t, "SELECT count(*)::text FROM firn.leftovers() WHERE kind = 'subscription'"); got != "0" {
		t.Errorf("%s subscriptions would go on writing", got)
	}
}

// TestIncomplete loses a target that has served, with all that it has, after the source was
// told something else than that it let the shard go: its own word is no more, so only who
// says that rows may be missing opens it.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(t *testing.T, a, b *site){
		"promoted and opened again": func(t *testing.T, a, b *site) {
			b.must(t, forgotten)
			reopen(t, b, a, 1)
		},
		"promoted, and lost before it was opened again": func(t *testing.T, a, b *site) {
			term := number(t, b.one(t, "SELECT term::text FROM firn.shard WHERE shard = 1"))
			a.must(t, fmt.Sprintf("SELECT firn.revoke(1, 'insta1', %d, 'b', %d)", term+1, term))
		},
		"on its way back": func(t *testing.T, a, b *site) {
			letGo(t, New(hooked(a.Server, hook{after: once(`firn\.claim`, runtime.Goexit)}), b.Server, hasty()).Revert)
			a.eventually(t, "SELECT (attempt = (SELECT attempt FROM insta1.firn_mark WHERE moved_to = 'b'))::text FROM firn.shard WHERE shard = 1", "false")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := shops(t, 2)
			mustMove(t, mover(t, a, b).Move, 1)
			last := number(t, b.one(t, "SELECT insta1.next_id()::text"))
			then(t, a, b)
			asItIs(t, a, "b")
			if id := number(t, a.one(t, "INSERT INTO insta1.users (name) VALUES ('x') RETURNING id::text")); id <= last {
				t.Errorf("id %d after %d", id, last)
			}
		})
	}
}

// TestIncompleteTarget has the source's word come to a target that is promoted, and the
// source lost: the target may lack rows, and is the only one that has any.
func TestIncompleteTarget(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	a.must(t, "SELECT setval('insta1.users_number_seq', 5000)")
	letGo(t, New(hooked(a.Server, hook{after: diesWhenLetGo(a)}), b.Server, hasty()).Move)
	b.eventually(t, "SELECT count(*)::text FROM insta1.firn_mark WHERE floor IS NOT NULL", "1")
	b.must(t, forgotten)
	asItIs(t, b, "a")
	if got := b.one(t, "SELECT nextval('insta1.users_number_seq')::text"); got != "5001" {
		t.Errorf("a sequence of its own goes on with %s", got)
	}
}

// TestIncompleteSource loses a target that has served, and that is none of the cluster any
// more by what the source says: what is there is opened only by who says that the target
// is gone, and that rows may be missing.
func TestIncompleteSource(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	mustMove(t, mover(t, a, b).Move, 1)
	last := number(t, b.one(t, "INSERT INTO insta1.users (name) VALUES ('x') RETURNING id::text"))
	a.must(t, "UPDATE firn.server SET servers = '{a}'")
	v, err := topology.Look(t.Context(), a.Conn)
	if err != nil {
		t.Fatal(err)
	}
	var away *setup.AwayError
	if _, err := setup.PlanReopen("a", map[string]*topology.View{"a": v}, nil, nil, func(n int64) bool { return n == 1 }); !errors.As(err, &away) || away.Away != "b" {
		t.Errorf("b has the shard, and is not asked: %v", err)
	}
	asItIs(t, a, "b")
	if id := number(t, a.one(t, "INSERT INTO insta1.users (name) VALUES ('x') RETURNING id::text")); id <= last {
		t.Errorf("id %d after %d", id, last)
	}
}

// TestIncompleteNothing asks for a shard of which the old copy was dropped.
func TestIncompleteNothing(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	mustMove(t, mover(t, a, b).Move, 1)
	mustEnd(t, mover(t, a, b).Finish, 1)
	for _, incomplete := range []bool{false, true} {
		var nothing *setup.NothingError
		if err := reopenAlone(t, a, "b", incomplete); !errors.As(err, &nothing) || nothing.MovedTo != "b" {
			t.Errorf("a has no copy, and is opened: %v", err)
		}
	}
	if got := ownersOf(a, b)("1"); got != "b" {
		t.Errorf("it is served by %q", got)
	}
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// version is the version of a server, such as 150018.
func version(t *testing.T, s *site) int64 {
	t.Helper()
	return number(t, s.one(t, "SELECT current_setting('server_version_num')"))
}

// TestIncompleteForwarded: a was told where the shard has gone from b, as remove-server tells. Its copy has no
// more rows for that.
func TestIncompleteForwarded(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	mustMove(t, mover(t, a, b).Move, 1)
	a.must(t, "UPDATE firn.shard SET moved_to = 'c' WHERE shard = 1; DELETE FROM firn.move")
	v, err := topology.Look(t.Context(), a.Conn)
	if err != nil {
		t.Fatal(err)
	}
	gone := []string{"b", "c"}
	plan, err := setup.PlanReopen("a", map[string]*topology.View{"a": v}, gone, gone, func(n int64) bool { return n == 1 })
	if err != nil || len(plan.Shards) != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if err := plan.Reopen(t.Context(), a.Conn, nil, plan.Shards[0], 0); !errors.As(err, new(*setup.IncompleteError)) {
		t.Errorf("%v", err)
	}
}
