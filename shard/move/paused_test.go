package move

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/topology"
)

// TestPause: a mover stops when somebody pauses its move, and no mover continues it before it is resumed. It can be
// aborted all the same.
func TestPause(t *testing.T) {
	a, b := pair(t, 3)
	a.must(t, "CREATE TABLE insta1.users (id bigint PRIMARY KEY); INSERT INTO insta1.users SELECT generate_series(1, 1000); CREATE TABLE insta2.users (id bigint PRIMARY KEY)")
	servers := []topology.Server{a.Server, b.Server}
	moves := func() Move {
		t.Helper()
		all, err := Moves(t.Context(), servers)
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0]
	}
	other := New(a.Server, b.Server, nil)
	defer other.Close()
	var stuck *StuckError
	if _, err := other.Pause(t.Context(), []int64{1}); err != nil {
		t.Fatalf("of a shard in no move: %v", err)
	}

	// The copy is verified, and what comes next is the cutover.
	var paused []int64
	m := New(a.Server, b.Server, &Options{Progress: func(p Progress) {
		if p.Phase == Verifying && paused == nil {
			var err error
			if paused, err = other.Pause(t.Context(), []int64{1}); err != nil {
				t.Error(err)
			}
		}
	}})
	defer m.Close()
	var is *PausedError
	if moved, err := m.Move(t.Context(), []int64{1, 2}); !errors.As(err, &is) || len(moved) > 0 || !slices.Equal(paused, []int64{1, 2}) {
		t.Fatalf("paused %d, moved %v: %v", paused, moved, err)
	}
	if moved, err := m.Move(t.Context(), []int64{2}); !errors.As(err, &is) || len(moved) > 0 {
		t.Errorf("moved %v: %v", moved, err)
	}
	a.must(t, "INSERT INTO insta1.users VALUES (1001)")
	f := moves()
	if !f.Paused || f.Phase != Ready || !strings.Contains(f.Problem, "it is paused") || !strings.Contains(f.Next()[0].String(), "firn shard resume 1-2; then: firn shard move 1-2 --to b") {
		t.Errorf("%+v, %v", f, f.Next())
	}
	if got := b.one(t, "SELECT count(*)::text FROM insta1.users"); got != "1000" {
		t.Errorf("the copy has %s rows", got)
	}
	for range 2 {
		if again, err := other.Pause(t.Context(), []int64{2}); err != nil || !slices.Equal(again, []int64{1, 2}) {
			t.Errorf("%d, %v", again, err)
		}
	}

	if resumed, err := other.Resume(t.Context(), []int64{1}); err != nil || !slices.Equal(resumed, []int64{1, 2}) {
		t.Fatalf("%d, %v", resumed, err)
	}
	if _, err := other.Resume(t.Context(), []int64{1}); !errors.As(err, &stuck) {
		t.Errorf("resumed twice: %v", err)
	}
	b.eventually(t, "SELECT count(*)::text FROM insta1.users", "1001")
	if moves().Paused {
		t.Errorf("%+v", moves())
	}
	if moved, err := m.Move(t.Context(), []int64{1}); err != nil || len(moved) != 1 {
		t.Fatalf("%v, %v", moved, err)
	}

	// One shard has moved, and the other one is paused. What has moved can go back.
	if again, err := other.Pause(t.Context(), []int64{1, 2}); err != nil || !slices.Equal(again, []int64{2}) {
		t.Fatalf("%d, %v", again, err)
	}
	if moved, err := m.Move(t.Context(), []int64{1, 2}); !errors.As(err, &is) || len(moved) > 0 || !slices.Equal(is.Shards, []int64{2}) {
		t.Errorf("%v, %v", moved, err)
	}
	if ended, err := m.Abort(t.Context(), []int64{2}); err != nil || !slices.Equal(ended, []int64{2}) {
		t.Fatalf("%d, %v", ended, err)
	}
	if _, err := other.Pause(t.Context(), []int64{1}); !errors.As(err, &stuck) || !strings.Contains(stuck.Why, "has moved") {
		t.Errorf("of a move that has arrived: %v", err)
	}
	if ended, err := m.Finish(t.Context(), []int64{1}); err != nil || !slices.Equal(ended, []int64{1}) {
		t.Fatalf("%d, %v", ended, err)
	}
	if got := left(t, a, b); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	// What the cutover took is known also after that.
	all := AllPauses(t.Context(), append(servers, topology.Server{Name: "away", Config: broken(t)}))
	if p := all["b"]; p.Cutovers != 1 || p.Last <= 0 || p.Seconds != p.Last || all["a"] != (Pauses{}) || len(all) != 2 {
		t.Errorf("pauses: %+v", all)
	}
}

// broken is an address at which nothing answers.
func broken(t *testing.T) *pgx.ConnConfig {
	t.Helper()
	c, err := pgx.ParseConfig("postgres://t@127.0.0.1:1/x")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPauseAtEachMessage: a mover is paused at one of its messages after the other, up to the cutover. Either the shard
// moves before the pause, and the pause fails, or it stays where it is until the move is resumed. The points around
// the cutover, and one before it, are in the short form.
func TestPauseAtEachMessage(t *testing.T) {
	short := []string{"after firn.claim", "before firn.let_go", "after firn.let_go"}
	for _, message := range []string{"firn.begin_move", "firn.claim", "firn.guard", "firn.lock_tables", "firn.let_go", "firn.take"} {
		for _, when := range []string{"before", "after"} {
			t.Run(when+" "+message, func(t *testing.T) {
				if !slices.Contains(short, when+" "+message) {
					testserver.OnlyLong(t)
				}
				t.Parallel()
				a, b := pair(t, 2)
				a.must(t, "CREATE TABLE insta1.users (id bigint PRIMARY KEY)")
				ctx, stop := context.WithCancel(t.Context())
				first := New(a.Server, b.Server, &Options{Progress: func(p Progress) {
					if p.Phase == Copying {
						stop()
					}
				}})
				first.Move(ctx, []int64{1}) // it is begun, and has a subscription
				first.Close()
				var paused []int64
				var wrong error
				pauses := func() {
					ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
					defer cancel()
					other := New(a.Server, b.Server, nil)
					defer other.Close()
					paused, wrong = other.Pause(ctx, []int64{1})
				}
				source, target := at(a, when, message, pauses), at(b, when, message, pauses)
				if message == "firn.take" || message == "firn.claim" {
					source = a.Server
				} else {
					target = b.Server
				}
				m := New(source, target, nil)
				defer m.Close()
				moved, err := m.Move(t.Context(), []int64{1})
				serves := b.one(t, "SELECT count(*)::text FROM firn.shard WHERE shard = 1 AND state = 'open'") == "1"
				t.Logf("moved %v, %v; paused %d, %v", moved, err, paused, wrong)
				switch {
				case serves != (len(moved) == 1):
					t.Errorf("b serves it: %t", serves)
				case serves && wrong == nil && len(paused) > 0:
					t.Error("it has moved after it was paused")
				case !serves && wrong == nil && !errors.As(err, new(*PausedError)):
					t.Errorf("it is paused, and the error is %v", err)
				case !serves && a.one(t, "SELECT count(*)::text FROM firn.shard WHERE shard = 1 AND state = 'open'") != "1":
					t.Error("no server serves it")
				}
			})
		}
	}
}
