package move

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/shard/topology"
)

// TestBroken: a copy whose slot is gone, because the target has forgotten that it was
// complete, is no copy to wait for.
func TestBroken(t *testing.T) {
	t.Parallel()
	a, b := pair(t, 1)
	a.must(t, "CREATE TABLE insta0.users (id bigint PRIMARY KEY)")
	m := New(a.Server, b.Server, nil)
	defer m.Close()
	if _, err := m.Move(t.Context(), []int64{0}); err != nil {
		t.Fatal(err)
	}
	if err := m.broken(t.Context(), []pairOf{{}}); err != nil {
		t.Fatal(err)
	}
	b.must(t, "SET allow_system_table_mods = on; UPDATE pg_subscription_rel SET srsubstate = 'f' WHERE srrelid = 'insta0.users'::regclass")
	if err := m.broken(t.Context(), []pairOf{{}}); err != nil {
		t.Errorf("at first sight: %v", err) // the slot goes a moment before the word that it may
	}
	for slot := range m.slotless {
		m.slotless[slot] = time.Now().Add(-2 * brokenTime)
	}
	if err := m.broken(t.Context(), []pairOf{{}}); !errors.As(err, new(*StuckError)) || !strings.Contains(err.Error(), "the copy of insta0.users is broken: its replication slot on server a is gone") {
		t.Errorf("%v", err)
	}
	a.must(t, "SELECT pg_create_logical_replication_slot('"+b.one(t, "SELECT format('pg_%s_sync_%s_%s', s.oid, 'insta0.users'::regclass::oid, (pg_control_system()).system_identifier) FROM pg_subscription AS s WHERE subname LIKE 'firn_move_%' AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())")+"', 'pgoutput')")
	if err := m.broken(t.Context(), []pairOf{{}}); err != nil {
		t.Errorf("with the slot: %v", err)
	}
}

// TestAbortUnclaimed gives up a move that the target knows nothing of, or not of all
// shards.
func TestAbortUnclaimed(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	for _, when := range []string{"before", "after"} {
		ctx, cancel := context.WithCancel(t.Context())
		broken := New(a.Server, at(b, when, `firn\.claim`, cancel), hasty())
		if _, err := broken.Move(ctx, []int64{0, 1}); err == nil {
			t.Fatalf("%s: it has moved", when)
		}
		broken.Close()
		mustEnd(t, mover(t, a, b).Abort, 0, 1)
		nothingLeft(t, a, b)
	}
}

// TestSweep ends a finish before it has dropped what replicated.
func TestSweep(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	mustMove(t, mover(t, a, b).Move, 1)
	ctx, cancel := context.WithCancel(t.Context())
	broken := New(at(a, "before", `firn\.drop_leftovers`, cancel), b.Server, hasty())
	defer broken.Close()
	if _, err := broken.Finish(ctx, []int64{1}); err == nil {
		t.Fatal("it has finished")
	}
	if err := DropLeftovers(t.Context(), []topology.Server{a.Server, b.Server}); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, a, b)
}
