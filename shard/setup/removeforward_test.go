package setup_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/shard/setup"
)

// TestRemoveForwards: after a server was taken out, no other server sends programs there: a shard that moved from a
// to c and from there to b has moved to b.
func TestRemoveForwards(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		a, b, c := newDatabase(t), newDatabase(t), newDatabase(t)
		servers := serversOf(a, b, c)
		mustInit(t, servers, setup.Wish{Count: 3})
		// Shard 0 went from a to c, and from there to b; shard 2 from c to a.
		a.must(t, "SELECT firn.close(0); UPDATE firn.shard SET state = 'moved', moved_to = 'c', term = 5 WHERE shard = 0; SELECT firn.create_shard(2, 'insta2'); UPDATE firn.shard SET term = 20 WHERE shard = 2")
		c.must(t, "SELECT firn.create_shard(0, 'insta0'); SELECT firn.close(0); UPDATE firn.shard SET state = 'moved', moved_to = 'b', term = 9 WHERE shard = 0; SELECT firn.close(2); UPDATE firn.shard SET state = 'moved', moved_to = 'a', term = 15 WHERE shard = 2")
		b.must(t, "SELECT firn.create_shard(0, 'insta0'); UPDATE firn.shard SET term = 20 WHERE shard = 0")
		if gone {
			servers = servers[:2]
		}
		opened, err := setup.Open(t.Context(), servers, true)
		if err != nil {
			t.Fatal(err)
		}
		plan := opened.Remove
		if gone {
			plan = opened.RemoveGone
		}
		r, err := plan("c")
		if err == nil {
			err = r.Run(t.Context())
		}
		opened.Close()
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Exec(t.Context(), "SELECT firn.enter(0, (SELECT cluster FROM firn.server))")
		var moved *pgconn.PgError
		if !errors.As(err, &moved) || moved.Code != "ID002" || moved.Detail != "b" {
			t.Errorf("gone %v: a sends programs of shard 0 to: %v", gone, err)
		}
		for _, d := range []*database{a, b} {
			if got := d.one(t, "SELECT count(*)::text FROM firn.shard WHERE moved_to = 'c'"); got != "0" {
				t.Errorf("gone %v: %s shards have moved to a server that is gone", gone, got)
			}
		}
	}
}
