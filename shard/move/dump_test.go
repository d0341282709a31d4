package move

import (
	"fmt"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestRestartedWhileDumping restarts the source while pg_dump reads the schema. Nothing was made on the
// target by then, so the mover waits for the source and has pg_dump read it again.
func TestRestartedWhileDumping(t *testing.T) {
	t.Parallel()
	source, target := sourceServer(t), testserver.Shared(t, targetServer)
	a, b := pairOn(t, source, target, 2)
	a.must(t, fmt.Sprintf(shop, 1))
	holder := dial(t, a.Server.Config.ConnString())
	restarted := make(chan bool, 1)
	m := New(at(a, "before", `FROM firn\.generator WHERE shard`, func() {
		mustExec(t, holder, "BEGIN; LOCK TABLE insta1.users")
		go func() {
			a.eventually(t, "SELECT count(*)::text FROM pg_stat_activity WHERE application_name = 'pg_dump' AND wait_event_type = 'Lock'", "1")
			source.Kill(t)
			source.Start(t)
			restarted <- true
		}()
	}), b.Server, hasty())
	defer m.Close()
	mustMove(t, m.Move, 1)
	select {
	case <-restarted:
	default:
		t.Error("the source was not restarted")
	}
	a.Conn = dial(t, a.Server.Config.ConnString())
	if got := ownersOf(a, b)("1"); got != "b" {
		t.Errorf("it is served by %q", got)
	}
	mustEnd(t, m.Finish, 1)
}
