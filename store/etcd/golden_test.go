package etcd

import (
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/internal/golden/stored"
	"github.com/firn-id/firn/internal/testserver"
)

// TestGolden reads the values of keys as version 0.1.0 has written them.
func TestGolden(t *testing.T) {
	server := testserver.Shared(t, testserver.Etcd)
	c := client(t, server.Addr())
	stored.Run(t, stored.Kind{Moved: true, New: func(testing.TB) stored.Place {
		opts := newPrefix()
		return stored.Place{
			Store: New(c, opts),
			Dump: func(tb testing.TB) map[string]string {
				got, err := c.Get(tb.Context(), opts.Prefix, clientv3.WithPrefix())
				if err != nil {
					tb.Fatal(err)
				}
				all := map[string]string{}
				for _, kv := range got.Kvs {
					all[strings.TrimPrefix(string(kv.Key), opts.Prefix)] = string(kv.Value)
				}
				return all
			},
			Load: func(tb testing.TB, all map[string]string) {
				for key, value := range all {
					if _, err := c.Put(tb.Context(), opts.Prefix+key, value); err != nil {
						tb.Fatal(err)
					}
				}
			},
		}
	}})
}
