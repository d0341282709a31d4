package move

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/topology"
)

// What a mover that was killed has sent may still be at work: a finish and a status that meet its
// drop of the old copy wait for that, and look again.
func TestLookWhileCopyIsDropped(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	for name, meets := range map[string]func(t *testing.T, a, b *site) error{
		"finish": func(t *testing.T, a, b *site) error {
			_, err := mover(t, a, b).Finish(t.Context(), []int64{1})
			return err
		},
		"status": func(t *testing.T, a, b *site) error {
			all, err := Moves(t.Context(), []topology.Server{a.Server, b.Server})
			if err == nil && (len(all) == 0 || all[0].Phase != Arrived) { // that of shard 0 is the oldest
				err = fmt.Errorf("the move of shard 0 has arrived, and the moves are said to be %+v", all)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := shops(t, 2)
			mustMove(t, mover(t, a, b).Move, 0)
			mustMove(t, mover(t, a, b).Move, 1)
			b.must(t, "SELECT firn.end_move(shard, term, attempt) FROM firn.shard WHERE shard = 1")
			a.must(t, "SELECT firn.unsubscribe(m.batch, ARRAY[m.shard], ARRAY[s.term], ARRAY[s.attempt]) FROM firn.move AS m JOIN firn.shard AS s ON s.shard = m.shard WHERE m.shard = 1")
			killed := dropping(t, a)
			met := make(chan error, 1)
			go func() { met <- meets(t, a, b) }()
			a.eventually(t, "SELECT (count(*) > 0)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'", "true")
			if err := killed.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-met; err != nil {
				t.Fatal(err)
			}
			mustEnd(t, mover(t, a, b).Finish, 0, 1)
			nothingLeft(t, a, b)
		})
	}
}

// dropping is a transaction that has dropped the copy of shard 1, and has not committed.
func dropping(t *testing.T, a *site) pgx.Tx {
	t.Helper()
	c, err := a.Server.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.WithoutCancel(t.Context())) })
	tx, err := c.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "SELECT firn.discard(shard, term, attempt) FROM firn.shard WHERE shard = 1")
	}
	if err != nil {
		t.Fatal(err)
	}
	return tx
}
