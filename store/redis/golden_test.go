package redis

import (
	"testing"

	"github.com/firn-id/firn/internal/golden/stored"
	"github.com/firn-id/firn/internal/testserver"
)

// TestGolden reads the fields of a hash as version 0.1.0 has written them.
func TestGolden(t *testing.T) {
	server := testserver.Shared(t, testserver.Redis)
	c := client(t, server.Addr())
	stored.Run(t, stored.Kind{Lossy: true, New: func(testing.TB) stored.Place {
		opts := newKey()
		return stored.Place{
			Store: New(c, opts),
			Dump: func(tb testing.TB) map[string]string {
				all, err := c.HGetAll(tb.Context(), opts.Key).Result()
				if err != nil {
					tb.Fatal(err)
				}
				return all
			},
			Load: func(tb testing.TB, all map[string]string) {
				if err := c.HSet(tb.Context(), opts.Key, all).Err(); err != nil {
					tb.Fatal(err)
				}
			},
		}
	}})
}
