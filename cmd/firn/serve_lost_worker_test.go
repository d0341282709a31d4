//go:build !windows

package main

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// A server that loses its worker on a store that can lose writes has ids again only after a while.
// Calls that wait then, and all new ones, fail at once and say when ids start, as at the start of a
// server; the log says for how long the lease waits.
func TestServeFailsAtOnceWhileALostWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	store := testserver.Redis(t).URL()
	firnOn(t, store, 0, "pool", "create", "--new")
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: "+store+"\npools: { default: { renew: 1s, ttl: 3s } }\nseries:\n  "+photoLine)
	s := serve(t, dir)
	c := s.redis("")
	given := func() bool { id, err := c.Incr(t.Context(), "photo").Result(); return err == nil && id > 1e16 }
	s.until("ids start", given)

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	var longest, refused atomic.Int64
	for range 2 {
		load.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				err := c.Incr(ctx, "photo").Err()
				if ctx.Err() != nil {
					return
				}
				longest.Store(max(longest.Load(), int64(time.Since(began))))
				if err != nil && (!strings.HasPrefix(err.Error(), "TRYAGAIN ") || !strings.Contains(err.Error(), "start at 20") || !strings.Contains(err.Error(), "can lose writes")) {
					t.Errorf("INCR photo: %v", err)
				}
				if err != nil {
					refused.Add(1)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	firnOn(t, store, 0, "worker", "release", "0", "--yes")
	s.until("calls fail", func() bool { return refused.Load() > 0 })
	answer, err := http.Post("http://"+s.listen["http"]+"/v1/series/photo/next", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if wait, _ := strconv.Atoi(answer.Header.Get("Retry-After")); answer.StatusCode != http.StatusServiceUnavailable || wait < 2 {
		t.Errorf("HTTP answers %s, Retry-After %d", answer.Status, wait)
	}
	s.until("ids start again", given)
	stop()
	load.Wait()
	if took := time.Duration(longest.Load()); took > 5*time.Second {
		t.Errorf("a call has waited for %s", took)
	}
	if log := s.log.String(); strings.Count(log, "waiting before ids resume") != 1 {
		t.Errorf("the log has to say once that ids are waited for:\n%s", log)
	}
	s.stop()
}
