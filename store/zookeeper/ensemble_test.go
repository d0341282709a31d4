package zookeeper

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// A server of an ensemble lags behind others; a Get does not. And the loss of the
// leader ends without help; make full kills the other members too.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	members := testserver.ZooKeeperCluster(t, 3).Members
	root := newRoot()
	var s []*Store
	for _, m := range members {
		s = append(s, open(t, m.Addr(), root))
	}
	var r store.Record
	seen := 0
	for i := range 300 {
		to, from := s[i%3], s[(i+1)%3]
		put, err := to.Put(t.Context(), "k", fmt.Append(nil, i), store.Condition{Version: r.Version})
		if err != nil { // on a busy machine a member may lose its leader
			r = comesBack(t, to, r, put.Version)
			continue
		}
		r = put
		got, err := from.Get(t.Context(), "k")
		if err != nil {
			r = comesBack(t, from, r)
			continue
		}
		if seen++; got.Version != r.Version {
			t.Fatalf("write %d is acknowledged by one member, and %s is read from another", i, got.Value)
		}
	}
	if seen < 100 {
		t.Errorf("only %d of 300 writes were acknowledged and read", seen)
	}
	p, err := s[0].Durability(t.Context())
	if err != nil || !p.Durable || !strings.Contains(p.Why, "3 voting servers") {
		t.Errorf("%+v, %v", p, err)
	}
	dying := []int{0, 1, 2}
	if !testserver.Long() {
		dying = []int{leader(t, members)}
	}
	for _, i := range dying {
		m := members[i]
		m.Kill(t)
		begun := time.Now()
		r = comesBack(t, s[(i+1)%3], r)
		t.Logf("a member was killed: back after %s", time.Since(begun).Round(time.Millisecond))
		m.Start(t)
		r = comesBack(t, s[i], r)
	}
}

// leader waits until a member leads, and returns its number.
func leader(t *testing.T, members []*testserver.Server) int {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if i := slices.IndexFunc(members, func(m *testserver.Server) bool { return leads(t, m.Addr()) }); i >= 0 {
			return i
		}
	}
	t.Fatal("no member leads")
	return 0
}

// leads says whether a member of an ensemble is its leader.
func leads(t *testing.T, addr string) bool {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte("srvr")); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(said), "Mode: leader")
}
