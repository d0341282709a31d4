package move

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// TestGuardsInBatches: the triggers of a copy are made on a few tables at a time, since a transaction that makes
// them keeps writers from all of its tables.
func TestGuardsInBatches(t *testing.T) {
	t.Parallel()
	a, b := pair(t, 1)
	a.must(t, `DO $$ BEGIN FOR i IN 1..10 LOOP EXECUTE format('CREATE TABLE insta0.t%s (id bigint PRIMARY KEY)', i); END LOOP; END $$`)
	var left []string
	m := New(hooked(a.Server, hook{before: func(message string) {
		if strings.Contains(message, "SELECT firn.guard(") {
			left = append(left, a.one(t, "SELECT count(*)::text FROM firn.replicated('insta0') AS r WHERE NOT firn.is_guarded(r)"))
		}
	}}), b.Server, hasty())
	t.Cleanup(m.Close)
	mustMove(t, m.Move, 0)
	if want := []string{"11", "3"}; !slices.Equal(left, want) {
		t.Errorf("before each transaction %q tables had no guards, want %q", left, want)
	}
}

// TestManyTables moves a shard with hundreds of tables, each with a sequence: to lock them takes longer
// than one table may keep programs waiting. The plan says how long the pause is.
func TestManyTables(t *testing.T) {
	testserver.OnlyLong(t)
	a, b := pair(t, 1)
	a.must(t, `DO $$ BEGIN FOR i IN 1..500 LOOP
		EXECUTE format('CREATE TABLE insta0.t%s (id bigint PRIMARY KEY DEFAULT insta0.next_id(), a text NOT NULL, n serial)', i);
		IF i % 100 = 0 THEN COMMIT; END IF; END LOOP; END $$`)
	p, err := NewPlan(t.Context(), a.Server, b.Server, []int64{0}, false, nil)
	if err != nil || p.Err() != nil {
		t.Fatal(err, p.Err())
	}
	m := New(a.Server, b.Server, &Options{LockWait: time.Minute})
	t.Cleanup(m.Close)
	there := mustMove(t, m.Move, 0)
	back := mustMove(t, m.Revert, 0)
	t.Logf("planned %s, there %s, back %s", p.Pause, there[0].Pause, back[0].Pause)
	for _, pause := range []time.Duration{there[0].Pause, back[0].Pause} {
		if pause > 4*p.Pause || pause < p.Pause/4 {
			t.Errorf("the plan said %s, and it was %s", p.Pause, pause)
		}
	}
}
