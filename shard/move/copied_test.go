package move

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/topology"
)

// clone is a base backup of a server that was promoted, as for a drill: it has the subscriptions of
// the original, and reaches what they read from.
func clone(t *testing.T, server *testserver.Server, of *site) (*testserver.Standby, *site) {
	t.Helper()
	standby := testserver.PostgresStandby(t, server, "wal_level=logical", "max_replication_slots=20", "max_wal_senders=20",
		"max_logical_replication_workers=20", "max_worker_processes=30", "max_prepared_transactions=4", "wal_retrieve_retry_interval=100ms")
	standby.Promote(t)
	url := fmt.Sprintf("postgres://t@%s/%s?sslmode=disable", standby.Addr(), of.Server.Config.Database)
	return standby, &site{serverAt(of.Name, url), dial(t, url)}
}

// again connects to a server that was started again.
func (s *site) again(t *testing.T) {
	t.Helper()
	s.Conn = dial(t, s.Server.Config.ConnString())
}

// TestCopiedSource has a copy of the old server read what is sent back to that server, while that
// server is down and while it is up. The copy takes nothing of it: the old copy of the shard stays
// complete, and the shard goes back with all rows.
func TestCopiedSource(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	source, target := sourceServer(t), targetServer(t)
	a, b := pairOn(t, source, target, 2)
	for n := range 2 {
		a.must(t, fmt.Sprintf(shop, n))
	}
	m := mover(t, a, b)
	mustMove(t, m.Move, 0, 1)
	standby, drill := clone(t, source, a)
	m.Close()
	source.Stop(t)
	// The copy has the slot now, and nobody else.
	b.eventually(t, "SELECT count(*)::text FROM pg_replication_slots WHERE slot_name LIKE 'firn_back_%' AND active", "1")
	b.must(t, "UPDATE insta1.users SET n = n + 1 WHERE number <= 60; INSERT INTO insta1.users (name) VALUES ('new'); UPDATE insta0.users SET n = 7")
	time.Sleep(2 * time.Second)
	source.Start(t)
	a.again(t)
	if got := drill.one(t, "SELECT count(*)::text FROM insta1.users WHERE n > 0"); got != "0" {
		t.Errorf("the copy has taken %s rows", got)
	}
	standby.Kill(t)
	want0, want1 := b.rows(t, 0), b.rows(t, 1)
	m = mover(t, a, b)
	mustMove(t, m.Revert, 0, 1)
	if a.rows(t, 0) != want0 || a.rows(t, 1) != want1 {
		t.Error("rows are lost")
	}
}

// TestCopiedTarget has a copy of the new server read what is sent to that server, when the shard has gone back.
func TestCopiedTarget(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	source, target := sourceServer(t), targetServer(t)
	a, b := pairOn(t, source, target, 2)
	a.must(t, fmt.Sprintf(shop, 1))
	m := mover(t, a, b)
	mustMove(t, m.Move, 1)
	standby, drill := clone(t, target, b)
	mustMove(t, m.Revert, 1)
	m.Close()
	target.Stop(t)
	a.eventually(t, "SELECT count(*)::text FROM pg_replication_slots WHERE slot_name LIKE 'firn_move_%' AND active", "1")
	a.must(t, "UPDATE insta1.users SET n = n + 1 WHERE number <= 60; DELETE FROM insta1.users WHERE number = 500")
	time.Sleep(2 * time.Second)
	target.Start(t)
	b.again(t)
	if got := drill.one(t, "SELECT count(*) || ',' || count(*) FILTER (WHERE n > 0) FROM insta1.users"); got != "500,0" {
		t.Errorf("the copy has taken rows: %s", got)
	}
	standby.Kill(t)
	want := a.rows(t, 1)
	mustMove(t, mover(t, a, b).Move, 1)
	if b.rows(t, 1) != want {
		t.Error("rows are lost")
	}
}

// TestSlotOfAnother: a copy of the old server has the slot that the old server waits for, and status says so.
func TestSlotOfAnother(t *testing.T) {
	t.Parallel()
	source, target := sourceServer(t), testserver.Shared(t, targetServer)
	a, b := pairOn(t, source, target, 2)
	a.must(t, fmt.Sprintf(shop, 1))
	mustMove(t, mover(t, a, b).Move, 1)
	clone(t, source, a)
	a.must(t, "ALTER SUBSCRIPTION "+a.one(t, "SELECT subname::text FROM pg_subscription")+" DISABLE")
	b.eventually(t, "SELECT count(*)::text FROM pg_replication_slots WHERE slot_name LIKE 'firn_back_%' AND active AND database = current_database()", "1")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		moves, err := Moves(t.Context(), []topology.Server{a.Server, b.Server})
		if err != nil {
			t.Fatal(err)
		}
		if len(moves) == 1 && strings.Contains(moves[0].Problem, "in the place of a: stop it") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", moves)
		}
	}
}

// TestPutBackAsItIs: the old copy lacks what the old server lost when its disk was put back to an earlier
// state, which nothing but its rows shows. The shard does not go back.
func TestPutBackAsItIs(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	m := mover(t, a, b)
	mustMove(t, m.Move, 1)
	a.must(t, "SET session_replication_role = replica; UPDATE insta1.users SET n = 7 WHERE number = 60; RESET session_replication_role")
	_, err := m.Revert(t.Context(), []int64{1})
	var backless *NoWayBackError
	if !errors.As(err, &backless) || !errors.As(err, new(*DifferentError)) || ownersOf(a, b)("1") != "b" {
		t.Errorf("the shard goes back to a copy that is another: %v", err)
	}
	mustEnd(t, m.Finish, 1)
}

// TestSurplus: what a comparison found in one copy alone is not dropped, unless somebody names that copy; and a
// shard goes back to the copy that it was let go of with all rows.
func TestSurplus(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	m := mover(t, a, b)
	mustMove(t, m.Move, 0, 1)
	a.must(t, "SET session_replication_role = replica; INSERT INTO insta0.users (id, name) VALUES (1, 'only here'); RESET session_replication_role")
	var surplus *SurplusError
	for range 2 { // also when it is asked for again
		if _, err := m.Revert(t.Context(), []int64{0}); !errors.As(err, &surplus) || surplus.Server != "a" || surplus.Owner != "b" || !surplus.Old {
			t.Errorf("the shard goes back to a copy with another row: %v", err)
		}
	}
	if _, err := m.Finish(t.Context(), []int64{0}); !errors.As(err, &surplus) {
		t.Errorf("the copy is dropped: %v", err)
	}
	moves, err := Moves(t.Context(), []topology.Server{a.Server, b.Server})
	if err != nil || len(moves) != 1 || !slices.Equal(moves[0].Surplus, []int64{0}) || !strings.Contains(moves[0].Next()[0].String(), "firn shard finish 0 --drop-rows-of a") {
		t.Errorf("%+v, %v", moves, err)
	}
	named := New(a.Server, b.Server, &Options{DropRowsOf: "a"})
	defer named.Close()
	mustEnd(t, named.Finish, 0)

	// Shard 1 loses a row on its way back, after the comparison.
	m.Close()
	m = New(a.Server, at(b, "before", seizes, func() {
		a.must(t, "SET session_replication_role = replica; DELETE FROM insta1.users WHERE number = 60; RESET session_replication_role")
	}), hasty())
	defer m.Close()
	_, err = m.Revert(t.Context(), []int64{1})
	var wrong *WrongError
	if !errors.As(err, &wrong) || !wrong.Missing || wrong.From != "b" || !strings.Contains(wrong.Do(), "firn shard move 1 --to b") {
		t.Fatalf("%v", err)
	}
	m = mover(t, a, b)
	if _, err := m.Abort(t.Context(), []int64{1}); !errors.As(err, &surplus) || surplus.Server != "b" {
		t.Errorf("the complete copy is dropped: %v", err)
	}
	mustMove(t, m.Move, 1)
	if got := b.one(t, "SELECT count(*)::text FROM insta1.users"); got != "500" {
		t.Errorf("%s rows", got)
	}
	mustEnd(t, m.Finish, 1)
}

// TestTruncatedWhileCounted: a TRUNCATE of the moment in which the rows are counted hides rows even from
// a transaction that began before it. No row is missing.
func TestTruncatedWhileCounted(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	a.must(t, "CREATE TABLE insta1.draft (id bigint PRIMARY KEY); INSERT INTO insta1.draft VALUES (1), (2)")
	truncated := false
	m := New(a.Server, at(b, "before", `count\(\*\) FROM ONLY`, func() {
		b.must(t, "TRUNCATE insta1.draft")
		truncated = true
	}), hasty())
	defer m.Close()
	moved := mustMove(t, m.Move, 1)
	if _, known := moved[0].Rows["draft"]; known || moved[0].Rows["users"] != 500 || !truncated {
		t.Errorf("%v rows, truncated: %t", moved[0].Rows, truncated)
	}
	a.eventually(t, "SELECT count(*)::text FROM insta1.draft", "0")
	mustEnd(t, m.Finish, 1)
}
