package postgres

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// TestSynchronousFromTheBeginning attaches a standby in the order of docs/reference/stores.md: its name is in
// synchronous_standby_names before its slot is there and before it connects. The store is never found
// lossy: counters would stop, and pools would be marked until store recover.
func TestSynchronousFromTheBeginning(t *testing.T) {
	primary := testserver.Postgres(t)
	db := connect(t, primary.URL())
	do(t, db, `CREATE ROLE app LOGIN`, `GRANT ALL ON SCHEMA public TO app`)
	app := New(connect(t, at(t, primary.URL(), "user=app")))
	mustPut(t, app, "k", `1`, store.Condition{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var looks sync.WaitGroup
	for who, s := range map[string]*Store{"with pg_monitor": New(db), "without": app} {
		looks.Go(func() {
			for ctx.Err() == nil {
				if p, err := s.Durability(ctx); ctx.Err() == nil && (err != nil || !p.Durable) {
					t.Errorf("%s: %+v, %v", who, p, err)
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	do(t, db, `ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (s2)'`, `SELECT pg_reload_conf()`, `CHECKPOINT`)
	becomes(t, app, durable, "a commit waits for 1")
	do(t, db, `SELECT pg_create_physical_replication_slot('s2')`)
	testserver.PostgresStandby(t, primary, "cluster_name=s2", "primary_slot_name=s2")
	becomes(t, New(db), durable, "1 connected standby, 1 of them synchronous, a commit waits for 1")
	mustPut(t, app, "l", `1`, store.Condition{})
	cancel()
	looks.Wait()
}
