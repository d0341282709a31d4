package move

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/shard/topology"
)

// TestMovesIdle: of a move that is not finished, the servers say whether a mover is at work on it, and how much of
// its log each keeps for it.
func TestMovesIdle(t *testing.T) {
	a, b := pair(t, 2)
	a.must(t, "CREATE TABLE insta1.users (id bigint PRIMARY KEY); INSERT INTO insta1.users SELECT generate_series(1, 1000)")
	servers := []topology.Server{a.Server, b.Server}
	look := func() Move {
		t.Helper()
		moves, err := Moves(t.Context(), servers)
		if err != nil || len(moves) != 1 {
			t.Fatalf("%+v, %v", moves, err)
		}
		return moves[0]
	}
	ctx, stop := context.WithCancel(t.Context())
	m := New(a.Server, b.Server, &Options{Progress: func(p Progress) {
		if p.Phase == Copying && ctx.Err() == nil {
			if f := look(); f.Idle {
				t.Errorf("while a mover is at work: %+v", f)
			}
			stop()
		}
	}})
	if _, err := m.Move(ctx, []int64{1}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	m.Close()
	for begun := time.Now(); !look().Idle; time.Sleep(20 * time.Millisecond) { // a session ends some time after its connection
		if time.Since(begun) > 30*time.Second {
			t.Fatal("a mover is still seen that has ended")
		}
	}
	a.must(t, "INSERT INTO insta1.users SELECT generate_series(1001, 9000)")
	if f := look(); f.WAL["a"] < 100_000 || f.WAL["b"] != 0 {
		t.Errorf("%+v", f)
	}
	// A role that sees no sessions of others does not say that there is no mover.
	if one := moveOf("x", map[string]*account{"a": {source: "a", target: "b", mover: ""}, "b": {source: "a", target: "b", mover: "no"}}); one.Idle {
		t.Errorf("%+v", one)
	}
}
