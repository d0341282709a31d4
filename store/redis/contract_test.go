package redis

import (
	"context"
	"math/rand/v2"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
)

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	goredis.SetLogger(quiet{}) // it tells standard error about each refused dial
	testserver.Main(m, func() error { return goleak.Find() })
}

// client returns a client at its defaults, for as long as the test.
func client(tb testing.TB, addr string) *goredis.Client {
	tb.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	tb.Cleanup(func() { c.Close() })
	return c
}

// newKey returns options with a key nobody uses.
func newKey() *Options { return &Options{Key: "{firn}:" + string(store.NewVersion())} }

func TestContract(t *testing.T) {
	server := testserver.Shared(t, testserver.Redis)
	storetest.Run(t, func(tb testing.TB) storetest.Backend {
		return backend(server.Addr(), newKey(), func(tb testing.TB, addr string) goredis.UniversalClient {
			return client(tb, addr)
		})
	})
}

// TestContractOfCluster has a client that redirects, and picks a shard by the key.
func TestContractOfCluster(t *testing.T) {
	server := cluster(t)
	storetest.Run(t, func(tb testing.TB) storetest.Backend {
		return backend(server.Addr(), newKey(), func(tb testing.TB, addr string) goredis.UniversalClient {
			c := goredis.NewClusterClient(&goredis.ClusterOptions{
				Addrs:    []string{addr},
				ReadOnly: true,
				// Whatever the cluster says: through the proxy, if there is one.
				NewClient: func(o *goredis.Options) *goredis.Client {
					o.Addr = addr
					return goredis.NewClient(o)
				},
			})
			tb.Cleanup(func() { c.Close() })
			return c
		})
	})
}

// cluster starts a cluster of one server that has all slots.
func cluster(t *testing.T) *testserver.Server {
	server := testserver.Redis(t, "--cluster-enabled", "yes")
	c := client(t, server.Addr())
	if err := c.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cluster is up", func() bool { return c.Set(t.Context(), "up", "1", 0).Err() == nil })
	return server
}

// backend is a store under a key of its own. connect returns a client at its
// defaults.
func backend(addr string, opts *Options, connect func(tb testing.TB, addr string) goredis.UniversalClient) storetest.Backend {
	return storetest.Backend{
		Open:    func(tb testing.TB) store.Store { return New(connect(tb, addr), opts) },
		Durable: false,
		Checkpoint: func(tb testing.TB) func() {
			c := connect(tb, addr)
			do(tb, c, "COPY", opts.Key, opts.Key+":aside", "REPLACE")
			return func() { do(tb, c, "COPY", opts.Key+":aside", opts.Key, "REPLACE") }
		},
		Shaky: func(tb testing.TB) store.Store {
			p := testserver.NewProxy(tb, addr)
			return shaky{New(connect(tb, p.Addr()), opts), p}
		},
	}
}

// A shaky store loses every third request or reply of a Put.
type shaky struct {
	*Store
	proxy *testserver.Proxy
}

func (s shaky) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	switch rand.N(6) {
	case 0:
		s.proxy.LoseRequests(1)
	case 1:
		s.proxy.LoseReplies(1)
	}
	return s.Store.Put(ctx, key, value, cond)
}

// do sends a command that must succeed, even where a test has ended.
func do(tb testing.TB, c goredis.UniversalClient, args ...any) {
	tb.Helper()
	if err := c.Do(context.WithoutCancel(tb.Context()), args...).Err(); err != nil {
		tb.Fatalf("%v: %v", args, err)
	}
}
