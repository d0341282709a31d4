package move

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/shard/topology"
)

// TestSlotBeingMade kills a mover while the slot back is being made, which waits for who
// writes on the target. It keeps nothing yet: nobody goes on before it does.
func TestSlotBeingMade(t *testing.T) {
	a, b := shops(t, 2)
	for _, pattern := range []string{`firn\.empty_publication`, `pg_create_logical`} {
		if pattern == `pg_create_logical` {
			b.must(t, "BEGIN; SELECT pg_current_xact_id()")
		}
		if !runChild(t, a, b, "move", "after", pattern) {
			t.Fatalf("there was no %s", pattern)
		}
	}
	b.eventually(t, "SELECT count(*)::text FROM pg_replication_slots WHERE slot_name ~ '^firn_back_' AND database = current_database()", "1")
	m := New(a.Server, b.Server, &Options{Lag: 5 * time.Second, LockWait: 300 * time.Millisecond})
	defer m.Close()
	var held *HoldersError
	if _, err := m.Move(t.Context(), []int64{1}); !errors.As(err, &held) || held.Shard != -1 || len(held.Holders) != 1 {
		t.Fatalf("with a slot that is being made: %v", err)
	}
	b.must(t, "COMMIT")
	m = mover(t, a, b)
	mustMove(t, m.Move, 1)
	id := b.one(t, "INSERT INTO insta1.users (name) VALUES ('late') RETURNING id::text")
	mustMove(t, m.Revert, 1)
	if a.one(t, "SELECT count(*)::text FROM insta1.users WHERE id = "+id) != "1" {
		t.Error("what was written on the target is lost")
	}
	mustEnd(t, m.Abort, 1)
}

// TestSettings moves a shard where the databases have settings of their own. A time limit for
// statements would end the copying of a large table: a move begins when the mover's role has none.
func TestSettings(t *testing.T) {
	a, b := shops(t, 2)
	for _, s := range []*site{a, b} {
		for _, setting := range []string{"default_transaction_isolation = 'repeatable read'", "default_transaction_deferrable = on", "statement_timeout = '50ms'", "lock_timeout = '1ms'"} {
			s.must(t, fmt.Sprintf("ALTER DATABASE %s SET %s", s.Server.Config.Database, setting))
		}
	}
	plan, err := NewPlan(t.Context(), a.Server, b.Server, []int64{1}, false, nil)
	if err != nil || len(plan.Obstacles) != 2 {
		t.Fatalf("%+v, %v", plan, err)
	}
	for i, s := range []*site{a, b} {
		if o := plan.Obstacles[i]; o.Object != "statement_timeout" || o.Server != s.Name {
			t.Errorf("%+v", o)
		}
		s.must(t, plan.Obstacles[i].Fix)
	}
	m := mover(t, a, b)
	if moved := mustMove(t, m.Move, 1); moved[0].Pause == 0 {
		t.Error("it was not opened at once")
	}
	mustMove(t, m.Revert, 1)
	mustEnd(t, m.Abort, 1)
}

// TestNotOurMark leaves a table alone that has the name of the mark and is somebody's.
func TestNotOurMark(t *testing.T) {
	a, b := shops(t, 2)
	a.must(t, "CREATE TABLE insta1.firn_mark (term bigint PRIMARY KEY, mine text); INSERT INTO insta1.firn_mark VALUES (1, 'precious')")
	m := mover(t, a, b)
	if _, err := m.Move(t.Context(), []int64{1}); sqlstate(err) != "42710" {
		t.Errorf("move: %v", err)
	}
	mustEnd(t, m.Abort, 1)
	left, err := Leftovers(t.Context(), []topology.Server{a.Server, b.Server})
	if err != nil || len(left) > 0 {
		t.Errorf("leftovers: %v, %v", left, err)
	}
	if got := a.one(t, "SELECT mine FROM insta1.firn_mark"); got != "precious" {
		t.Error(got)
	}
	// A trigger of the owner of a table would be run by the mover.
	a.must(t, `DROP TABLE insta1.firn_mark; CREATE TABLE insta1.firn_mark (term bigint PRIMARY KEY, attempt text NOT NULL, moved_to text, floor bigint, sequences jsonb);
		CREATE TRIGGER x BEFORE INSERT ON insta1.firn_mark FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`)
	if _, err := m.Move(t.Context(), []int64{1}); sqlstate(err) != "42710" {
		t.Errorf("move: %v", err)
	}
}

func TestPlain(t *testing.T) {
	body := "CREATE SCHEMA s;\nCOMMENT ON SCHEMA s IS 'x\n\\restrict y';\n\\unrestrict other\nSET transaction_timeout = 0;\n\n"
	dump := "--\n-- PostgreSQL database dump\n--\n\n\\restrict KeY1\n\nSET lock_timeout = 0;\nSET transaction_timeout = 0;\n\n--\n-- Name: s; Type: SCHEMA\n--\n\n" + body + "\\unrestrict KeY1\n\n"
	want := "--\n-- PostgreSQL database dump\n--\n\n\nSET lock_timeout = 0;\n\n--\n-- Name: s; Type: SCHEMA\n--\n\n" + body + "\n"
	if got := plain(dump); got != want {
		t.Errorf("%s", got)
	}
	older := strings.NewReplacer("\\restrict KeY1\n", "", "\\unrestrict KeY1\n", "").Replace(dump)
	if got := plain(older); got != want {
		t.Errorf("%s", got)
	}
}

// TestOthersDepend leaves what other schemas have in place when a copy is dropped.
func TestOthersDepend(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	m := mover(t, a, b)
	mustMove(t, m.Move, 1)
	a.must(t, "CREATE SCHEMA more; CREATE VIEW more.v AS SELECT id FROM insta1.users; CREATE TABLE more.t (n bigint DEFAULT nextval('insta1.users_number_seq'))")
	if _, err := m.Finish(t.Context(), []int64{1}); sqlstate(err) != "2BP01" || !strings.Contains(err.Error(), "more.v") {
		t.Errorf("finish: %v", err)
	}
	a.must(t, "SELECT FROM more.v; DROP SCHEMA more CASCADE")
	mustEnd(t, m.Finish, 1)
	nothingLeft(t, a, b)
}

// TestCompared does not let a shard go whose copy has a row that is not as the original:
// as many rows there are, and the schemas are alike.
func TestCompared(t *testing.T) {
	a, b := shops(t, 2)
	if !runChild(t, a, b, "move", "before", `firn\.lock_tables`) {
		t.Fatal("it was not ready")
	}
	b.must(t, "SET session_replication_role = replica; UPDATE insta1.users SET name = 'another' WHERE number = 77; RESET session_replication_role")
	m := mover(t, a, b)
	var different *DifferentError
	if _, err := m.Move(t.Context(), []int64{1}); !errors.As(err, &different) || ownersOf(a, b)("1") != "a" {
		t.Errorf("%v", err)
	}
	mustEnd(t, m.Abort, 1)
}
