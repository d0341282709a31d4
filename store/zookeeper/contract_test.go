package zookeeper

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
)

func TestMain(m *testing.M) { testserver.Main(m, func() error { return goleak.Find() }) }

// server is the one that the tests of this package share.
func server(tb testing.TB) *testserver.Server { return testserver.Shared(tb, testserver.ZooKeeper) }

var roots atomic.Int64

// newRoot is a root that nobody has used.
func newRoot() string { return fmt.Sprintf("/tests/%d-%d", time.Now().UnixNano(), roots.Add(1)) }

// connect returns a connection that ends with the test.
func connect(tb testing.TB, addr string) *zk.Conn {
	tb.Helper()
	// The client waits for a second before it comes back to a server that it has
	// lost, but not before it goes to another: so this one has two names.
	_, port, _ := strings.Cut(addr, ":")
	conn, _, err := zk.Connect([]string{addr, "localhost:" + port}, 4*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(conn.Close)
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func open(tb testing.TB, addr, root string) *Store {
	tb.Helper()
	return New(connect(tb, addr), &Options{Root: root})
}

func TestContract(t *testing.T) {
	addr := server(t).Addr()
	storetest.Run(t, func(tb testing.TB) storetest.Backend {
		root := newRoot()
		return storetest.Backend{
			Durable:    true,
			NoClock:    true,
			Open:       func(tb testing.TB) store.Store { return open(tb, addr, root) },
			Checkpoint: func(tb testing.TB) func() { return checkpoint(tb, connect(tb, addr), root) },
			Shaky:      func(tb testing.TB) store.Store { return shakyStore(tb, addr, root) },
		}
	})
}

// A shaky store loses the request or the reply of every tenth Put.
type shaky struct {
	*Store
	proxy *testserver.Proxy
	puts  atomic.Int64
}

func shakyStore(tb testing.TB, addr, root string) store.Store {
	p := testserver.NewProxy(tb, addr)
	return &shaky{Store: open(tb, p.Addr(), root), proxy: p}
}

func (s *shaky) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	switch s.puts.Add(1) % 20 {
	case 5:
		s.proxy.LoseRequests(1)
	case 15:
		s.proxy.LoseReplies(1)
	}
	return s.Store.Put(ctx, key, value, cond)
}

// checkpoint remembers every node below root, and returns what makes them so
// again, as a snapshot of the server would.
func checkpoint(tb testing.TB, conn *zk.Conn, root string) (restore func()) {
	type node struct {
		path string
		data []byte
	}
	var walk func(path string) []node
	walk = func(path string) []node {
		data, _, err := conn.Get(path)
		if err == zk.ErrNoNode {
			return nil
		}
		must(tb, err)
		all := []node{{path, data}}
		names, _, err := conn.Children(path)
		must(tb, err)
		for _, name := range names {
			all = append(all, walk(path+"/"+name)...)
		}
		return all
	}
	saved := walk(root)
	return func() {
		now := walk(root)
		var ops []any
		for i := len(now) - 1; i >= 0; i-- {
			ops = append(ops, &zk.DeleteRequest{Path: now[i].path, Version: -1})
		}
		for _, n := range saved {
			ops = append(ops, &zk.CreateRequest{Path: n.path, Data: n.data, Acl: zk.WorldACL(zk.PermAll)})
		}
		_, err := conn.Multi(ops...)
		must(tb, err)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
