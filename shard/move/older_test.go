package move

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// TestOlderBackup has the new server replaced by a base backup of before a move that was finished. No server has
// the rows, and every command says so, and does not name one that has none.
func TestOlderBackup(t *testing.T) {
	t.Parallel()
	source, target := testserver.Shared(t, sourceServer), targetServer(t)
	a, b := pairOn(t, source, target, 2)
	a.must(t, fmt.Sprintf(shop, 1))
	older := testserver.PostgresStandby(t, target, "wal_level=logical", "max_replication_slots=20", "max_wal_senders=20", "max_worker_processes=30", "max_prepared_transactions=4")
	older.Link.Refuse(true)
	older.Link.Cut()
	m := mover(t, a, b)
	mustMove(t, m.Move, 1)
	mustEnd(t, m.Finish, 1)
	m.Close()
	target.Kill(t)
	older.Promote(t)
	url := fmt.Sprintf("postgres://t@%s/%s?sslmode=disable", older.Addr(), b.Server.Config.Database)
	now := &site{serverAt("b", url), dial(t, url)}

	views := make(map[string]*topology.View)
	for _, s := range check.Look(t.Context(), []topology.Server{a.Server, now.Server}) {
		if s.Err != nil {
			t.Fatal(s.Err)
		}
		views[s.Name] = s.View
	}
	o, lost := check.OpeningOf(views, 1)
	if !lost || o.Server != "" || o.Back != "b" || !strings.Contains(o.Text(), "only a newer backup or a standby of b has its rows") {
		t.Errorf("%v: %s", lost, o.Text())
	}
	found := check.Nowhere(views, func(int64) bool { return true })
	if len(found) != 1 || strings.Contains(found[0].Do, "reopen a") {
		t.Errorf("%v", found)
	}
}
