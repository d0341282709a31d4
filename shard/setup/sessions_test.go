package setup_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/shard/setup"
)

// TestInitSessions: on each server a cluster is made in one session beside that of the lock. A login costs more than
// most statements.
func TestInitSessions(t *testing.T) {
	servers := serversOf(newDatabase(t), newDatabase(t))
	logins := make([]atomic.Int64, len(servers))
	for i := range servers {
		dial := servers[i].Config.DialFunc
		servers[i].Config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			logins[i].Add(1)
			return dial(ctx, network, address)
		}
	}
	mustInit(t, servers, setup.Wish{Count: 4})
	for i := range logins {
		if n := logins[i].Load(); n > 2 {
			t.Errorf("server %s: %d logins", servers[i].Name, n)
		}
	}
}
