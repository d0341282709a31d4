package move

import (
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
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
	t.Parallel()
	source, target := moving(t), moving(t)
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
