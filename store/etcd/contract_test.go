package etcd

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) {
	testserver.Main(m, func() error { return goleak.Find() })
}

// client returns a client at its defaults, for as long as the test. It logs
// nothing.
func client(tb testing.TB, addrs ...string) *clientv3.Client {
	tb.Helper()
	return clientOf(tb, clientv3.Config{Endpoints: addrs})
}

func clientOf(tb testing.TB, cfg clientv3.Config) *clientv3.Client {
	tb.Helper()
	cfg.Logger = zap.NewNop()
	c, err := clientv3.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return c
}

// newPrefix returns options with a prefix nobody uses.
func newPrefix() *Options { return &Options{Prefix: string(store.NewVersion()) + "/"} }

func TestContract(t *testing.T) {
	server := testserver.Shared(t, testserver.Etcd)
	storetest.Run(t, func(tb testing.TB) storetest.Backend {
		opts := newPrefix()
		return storetest.Backend{
			Open:       func(tb testing.TB) store.Store { return New(client(tb, server.Addr()), opts) },
			Durable:    true,
			NoClock:    true,
			Checkpoint: func(tb testing.TB) func() { return checkpoint(tb, client(tb, server.Addr()), opts.Prefix) },
			Shaky: func(tb testing.TB) store.Store {
				p := testserver.NewProxy(tb, server.Addr())
				return shaky{New(client(tb, p.Addr()), opts), p}
			},
		}
	})
}

// A shaky store loses every third request or reply of a Put.
type shaky struct {
	*Store
	proxy *testserver.Proxy
}

func (s shaky) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	// After a loss gRPC waits a second before it connects again.
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, err := s.Store.Get(ctx, key); err == nil {
			break
		}
	}
	switch rand.N(6) {
	case 0:
		s.proxy.LoseRequests(1)
	case 1:
		s.proxy.LoseReplies(1)
	}
	return s.Store.Put(ctx, key, value, cond)
}

// checkpoint remembers the keys below prefix, and writes them back in one step.
// The revision goes on: bringing that back is what a restored snapshot does.
func checkpoint(tb testing.TB, c *clientv3.Client, prefix string) (restore func()) {
	ctx := context.WithoutCancel(tb.Context())
	had, err := c.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		tb.Fatal(err)
	}
	return func() {
		now, err := c.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			tb.Fatal(err)
		}
		values := make(map[string]string)
		for _, kv := range had.Kvs {
			values[string(kv.Key)] = string(kv.Value)
		}
		var ops []clientv3.Op
		for _, kv := range now.Kvs {
			if _, ok := values[string(kv.Key)]; !ok {
				ops = append(ops, clientv3.OpDelete(string(kv.Key)))
			}
		}
		for key, value := range values {
			ops = append(ops, clientv3.OpPut(key, value))
		}
		if _, err := c.Txn(ctx).Then(ops...).Commit(); err != nil {
			tb.Fatal(err)
		}
	}
}
