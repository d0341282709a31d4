package move

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestReceiverOfEachShard: a session that has looked at one shard has looked at no other, and not at
// that one either where its transaction failed.
func TestReceiverOfEachShard(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	mustMove(t, mover(t, a, b).Move, 0, 1)
	looked := func(want string) {
		t.Helper()
		if got := a.one(t, "SELECT coalesce(current_setting('firn.receiver_0', true), '')"); got != want {
			t.Errorf("of shard 0 the session says %q, not %q", got, want)
		}
	}
	a.must(t, "SET session_replication_role = replica")
	defer a.must(t, "RESET session_replication_role")
	a.must(t, "BEGIN; UPDATE insta0.users SET n = n; ROLLBACK")
	looked("")
	a.must(t, "UPDATE insta0.users SET n = n")
	looked("here")
	a.must(t, "UPDATE insta1.users SET n = n; RESET firn.receiver_1") // a new session
	a.must(t, "UPDATE firn.shard SET system = system + 1 WHERE shard = 1")
	defer a.must(t, "UPDATE firn.shard SET system = system - 1 WHERE shard = 1")
	if _, err := a.Exec(t.Context(), "UPDATE insta1.users SET n = n", pgx.QueryExecModeSimpleProtocol); sqlstate(err) != "ID003" {
		t.Errorf("a copy of shard 1 takes rows after shard 0 was looked at: %v", err)
	}
}
