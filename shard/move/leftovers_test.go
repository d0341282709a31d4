package move

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/shard/topology"
)

// left is what Leftovers finds on both servers.
func left(t *testing.T, a, b *site) []string {
	t.Helper()
	found, err := Leftovers(t.Context(), []topology.Server{a.Server, b.Server})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, l := range found {
		texts = append(texts, fmt.Sprintf("%s: %s %s, %s", l.Server, l.Kind, l.Name, l.Harm))
	}
	return texts
}

// TestLeftovers makes everything that a move could leave behind, finds it, and removes
// it; and nothing else.
func TestLeftovers(t *testing.T) {
	a, b := pair(t, 3)
	a.must(t, "CREATE TABLE insta0.users (id bigint PRIMARY KEY); CREATE TABLE insta1.users (id bigint PRIMARY KEY)")
	if got := left(t, a, b); len(got) > 0 {
		t.Fatalf("of servers on which nothing moved: %q", got)
	}
	batch := "aa" + fmt.Sprintf("%010d", time.Now().UnixNano()%1e10)
	sync := fmt.Sprintf("pg_99999_sync_4711_%s", b.one(t, "SELECT (pg_control_system()).system_identifier::text"))
	a.must(t, fmt.Sprintf(`CREATE PUBLICATION firn_move_%s; CREATE PUBLICATION firn_mine; CREATE TABLE insta1.firn_mark (term bigint PRIMARY KEY, attempt text NOT NULL, moved_to text, floor bigint, sequences jsonb);
		SELECT firn.raise_fence(0, 'insta0'); SELECT firn.raise_fence(1, 'insta1'); SELECT firn.lower_fence('insta1')`, batch))
	for _, slot := range []string{"firn_move_" + batch, sync, fmt.Sprintf("pg_99999_sync_4711_%d", time.Now().UnixNano())} {
		a.must(t, "SELECT pg_create_logical_replication_slot('"+slot+"', 'pgoutput')")
	}
	b.must(t, fmt.Sprintf("CREATE SUBSCRIPTION firn_move_%s CONNECTION '%s' PUBLICATION firn_move_%[1]s WITH (connect = false, slot_name = NONE)", batch, a.reached()))
	// Shard 2 is on a, and its copy on b was forgotten. That of shard 1 is younger than
	// what is open on a, and that of shard 7 is the only one.
	b.must(t, `SELECT firn.create_shard(2, 'insta2'); SELECT firn.close(2); UPDATE firn.shard SET state = 'moved', moved_to = 'a', term = 1, attempt = 'x' WHERE shard = 2; CREATE TABLE insta2.old (id bigint PRIMARY KEY);
		SELECT firn.create_shard(1, 'insta1'); SELECT firn.close(1); UPDATE firn.shard SET state = 'moved', moved_to = 'a', attempt = 'x' WHERE shard = 1;
		SELECT firn.create_shard(7, 'insta7'); SELECT firn.close(7); UPDATE firn.shard SET state = 'moved', moved_to = 'a' WHERE shard = 7; CREATE SCHEMA insta8`)
	want := []string{
		"a: fence insta0.users, they refuse all writes to the table",
		"a: fence insta1.users, they are not in use: programs used the table when a move ended",
		"a: mark insta1.firn_mark, it does nothing",
		"a: publication firn_move_" + batch + ", it does nothing",
		"a: slot firn_move_" + batch + ", it keeps WAL for nobody, until the disk is full",
		"a: slot " + sync + ", it keeps WAL for nobody, until the disk is full",
		"b: copy insta2, it takes room",
		"b: subscription firn_move_" + batch + ", it would continue to write",
	}
	if got := left(t, a, b); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// What other schemas have is not dropped with a copy.
	b.must(t, "CREATE VIEW public.olds AS SELECT id FROM insta2.old")
	found, err := Leftovers(t.Context(), []topology.Server{a.Server, b.Server})
	if err != nil {
		t.Fatal(err)
	}
	found = slices.DeleteFunc(found, func(l Leftover) bool { return l.Kind != Copy })
	if err := Clean(t.Context(), []topology.Server{a.Server, b.Server}, found, func(Leftover) {}); sqlstate(err) != "2BP01" || !strings.Contains(err.Error(), "olds") {
		t.Errorf("a copy that a view reads is dropped: %v", err)
	}
	b.must(t, "DROP VIEW public.olds")
	clean(t, a, b, len(want))
	if got := left(t, a, b); len(got) > 0 {
		t.Errorf("after that: %q", got)
	}
	a.must(t, "INSERT INTO insta0.users VALUES (1); DROP PUBLICATION firn_mine")
	if got := b.one(t, "SELECT string_agg(nspname, ' ' ORDER BY 1) FROM pg_namespace WHERE nspname LIKE 'insta%'"); got != "insta1 insta7 insta8" {
		t.Errorf("b has %s", got)
	}
}

// clean removes what is found, which is so many things.
func clean(t *testing.T, a, b *site, many int) {
	t.Helper()
	servers := []topology.Server{a.Server, b.Server}
	found, err := Leftovers(t.Context(), servers)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	if err := Clean(t.Context(), servers, found, func(Leftover) { told++ }); err != nil || told != many {
		t.Errorf("%d of %d: %v", told, many, err)
	}
}

// TestDropFencesBesideWriter: a transaction on a table as its move ends, which itself ends soon, leaves no triggers there.
func TestDropFencesBesideWriter(t *testing.T) {
	a, _ := pair(t, 2)
	a.must(t, "CREATE TABLE insta0.users (id bigint PRIMARY KEY); SELECT firn.raise_fence(0, 'insta0'); SELECT firn.lower_fence('insta0'); UPDATE firn.shard SET attempt = 'x', term = 2 WHERE shard = 0")
	fenced := copyOf{schema: "insta0", term: 2, attempt: "x"}
	e := newEnd(a.Server)
	defer e.close()
	if err := e.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	writer := dialConfig(t, a.Server.Config)
	triggers := ""
	for n := range 10 { // on a busy machine each try may take longer than it may keep others waiting
		mustExec(t, writer, fmt.Sprintf("BEGIN; INSERT INTO insta0.users VALUES (%d)", n))
		if e.dropFences(t.Context(), 0, fenced) {
			t.Fatal("dropped under a transaction")
		}
		ended := make(chan error, 1)
		time.AfterFunc(300*time.Millisecond, func() {
			_, err := writer.Exec(context.Background(), "COMMIT")
			ended <- err
		})
		e.dropAllFences(t.Context(), map[int64]copyOf{0: fenced})
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if triggers = a.one(t, "SELECT count(*)::text FROM pg_trigger WHERE tgname = 'firn_fence'"); triggers == "0" {
			return
		}
	}
	t.Errorf("%s triggers are left", triggers)
}

// TestMoves: what a move shows while it is under way, and when it has arrived; what it
// needs is not left over. One whose end was broken off is.
func TestMoves(t *testing.T) {
	a, b := pair(t, 2)
	servers := []topology.Server{a.Server, b.Server}
	a.must(t, "CREATE TABLE insta0.users (id bigint PRIMARY KEY); INSERT INTO insta0.users SELECT generate_series(1, 500); CREATE TABLE insta1.users (id bigint PRIMARY KEY); ANALYZE")
	m := New(a.Server, b.Server, nil)
	defer m.Close()
	if _, err := m.Move(t.Context(), []int64{0, 1}); err != nil {
		t.Fatal(err)
	}
	moves, err := Moves(t.Context(), servers)
	if err != nil || len(moves) != 1 {
		t.Fatalf("%+v, %v", moves, err)
	}
	f := moves[0]
	if f.Source != "a" || f.Target != "b" || !slices.Equal(f.Shards, []int64{0, 1}) || !slices.Equal(f.Moved, f.Shards) || f.Phase != Arrived || f.Problem != "" || f.Unapplied < 0 || time.Since(f.Began) > time.Minute {
		t.Errorf("%+v", f)
	}
	if got := left(t, a, b); len(got) > 0 {
		t.Errorf("what a move needs is left: %q", got)
	}
	if moves, err = Moves(t.Context(), servers[:1]); err != nil || len(moves) != 1 || moves[0].Phase != Unknown || moves[0].Problem != "b was not asked" || moves[0].Unasked != "b" {
		t.Errorf("without b: %+v, %v", moves, err)
	}
	a.must(t, "ALTER TABLE insta1.users DISABLE TRIGGER firn_fence")
	if moves, err = Moves(t.Context(), servers); err != nil || !strings.HasPrefix(moves[0].Problem, "programs can write to the copy on a, because fences are out of use (insta1.users): on a ALTER TABLE") {
		t.Errorf("%+v, %v", moves, err)
	}
	a.must(t, "ALTER TABLE insta1.users ENABLE TRIGGER firn_fence")
	a.must(t, "ALTER SUBSCRIPTION firn_back_"+f.Batch+" DISABLE")
	b.eventually(t, "SELECT active::text FROM pg_replication_slots WHERE slot_name = 'firn_back_"+f.Batch+"'", "false")
	if moves, err = Moves(t.Context(), servers); err != nil || moves[0].Problem != "nobody reads firn_back_"+f.Batch {
		t.Errorf("%+v, %v", moves, err)
	}
	a.must(t, "ALTER SUBSCRIPTION firn_back_"+f.Batch+" ENABLE")
	// The end of the move of shard 0 is broken off after its first step.
	b.must(t, "SELECT firn.end_move(0, term, attempt) FROM firn.shard WHERE shard = 0; UPDATE firn.move SET began = began - interval '1 hour'")
	a.must(t, "UPDATE firn.move SET began = began - interval '1 hour'")
	b.must(t, "SELECT firn.end_move(1, term, attempt) FROM firn.shard WHERE shard = 1")
	if got := left(t, a, b); len(got) < 2 || got[len(got)-1] != "a: move "+f.Batch+" of shard 1 to b, it was broken off when it was ended" {
		t.Errorf("%q", got)
	}
	clean(t, a, b, len(left(t, a, b)))
	if got := left(t, a, b); len(got) > 0 {
		t.Errorf("after that: %q", got)
	}
	if got := a.one(t, "SELECT count(*)::text FROM pg_namespace WHERE nspname LIKE 'insta%'"); got != "0" {
		t.Errorf("%s old copies on a", got)
	}
	if moves, err = Moves(t.Context(), servers); err != nil || len(moves) > 0 {
		t.Errorf("%+v, %v", moves, err)
	}
}

// TestMoveOf: the stages of a move, by what both servers say.
func TestMoveOf(t *testing.T) {
	for _, tt := range []struct {
		a, b    account
		want    Stage
		problem string
	}{
		{account{serves: map[int64]bool{1: true}}, account{serves: map[int64]bool{1: false}}, Begun, ""},
		{account{serves: map[int64]bool{1: true}, slot: "used"}, account{serves: map[int64]bool{1: false}, known: 2, ready: 1}, Filling, ""},
		{account{serves: map[int64]bool{1: true}, slot: "used"}, account{serves: map[int64]bool{1: false}, known: 2, ready: 2}, Ready, ""},
		{account{serves: map[int64]bool{1: true}, slot: "idle", stream: "firn_move_x"}, account{serves: map[int64]bool{1: false}, known: 2, ready: 2}, Ready, "nobody reads firn_move_x"},
		{account{serves: map[int64]bool{1: true}, slot: "lost", stream: "firn_move_x"}, account{serves: map[int64]bool{1: false}, known: 2, ready: 2}, Ready, "the replication slot firn_move_x has lost what it kept"},
		{account{serves: map[int64]bool{1: false, 2: true}}, account{serves: map[int64]bool{1: false, 2: false}, known: 2, ready: 2}, Between, ""},
		{account{serves: map[int64]bool{1: false, 2: true}, slot: "used"}, account{serves: map[int64]bool{1: true, 2: false}, slot: "used", known: 2, ready: 2}, Ready, ""},
		{account{serves: map[int64]bool{1: false}, slot: "used"}, account{serves: map[int64]bool{1: true}, slot: "used"}, Arrived, ""},
		{account{serves: map[int64]bool{1: false}, slot: "used", changed: map[int64]bool{1: true}}, account{serves: map[int64]bool{1: true}, slot: "used"}, Arrived, "the two copies of shard 1 are not alike any more"},
		{account{serves: map[int64]bool{1: true}, slot: "used"}, account{serves: map[int64]bool{1: false}, slot: "used", known: 2, ready: 2, changed: map[int64]bool{1: true}}, Ready, "the two copies of shard 1 are not alike any more"},
		// Of shard 1 the server that has it has ended the move, and the other one not yet.
		{account{serves: map[int64]bool{1: false, 2: false}, slot: "used"}, account{serves: map[int64]bool{2: true}, slot: "used"}, Arrived, ""},
		{account{serves: map[int64]bool{2: true}}, account{serves: map[int64]bool{1: false, 2: false}, known: 2, ready: 2}, Ready, ""},
	} {
		tt.a.source, tt.a.target, tt.b.source, tt.b.target = "a", "b", "a", "b"
		for _, w := range []*account{&tt.a, &tt.b} {
			w.loaded = make(map[int64]bool)
			for n := range w.serves {
				w.loaded[n] = true
			}
		}
		if f := moveOf("x", map[string]*account{"a": &tt.a, "b": &tt.b}); f.Phase != tt.want || f.Problem != tt.problem {
			t.Errorf("%+v and %+v: %+v", tt.a, tt.b, f)
		}
	}
}
