//go:build !windows

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// A server whose pool waits before its first id, because its store can lose writes, answers at
// once: a probe of /healthz must not end it again and again. Its counters count meanwhile.
func TestServeAnswersWhileALossyPoolWaits(t *testing.T) {
	t.Parallel()
	store := testserver.Redis(t).URL()
	firnOn(t, store, 0, "pool", "create", "--new")
	firnOn(t, store, 0, "series", "create", "orders", "--kind", "sequence", "--on-lossy-store", "may-repeat")
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: "+store+"\nseries:\n  "+photoLine+"  orders: { kind: sequence, on-lossy-store: may-repeat }\n")

	began := time.Now()
	s := serve(t, dir)
	if took := time.Since(began); took > 7*time.Second {
		t.Errorf("the server listens after %s", took)
	}
	if code, text := s.get("/healthz"); code != 200 {
		t.Errorf("/healthz: %d %s", code, text)
	}
	c := s.redis("")
	if n, err := c.Incr(t.Context(), "orders").Result(); err != nil || n != 1 {
		t.Errorf("INCR orders: %d, %v; want 1", n, err)
	}
	for path, method := range map[string]string{"/readyz": "GET", "/v1/series/photo/next": "POST"} {
		if code, text := s.do(method, path, ""); code != 503 || !strings.Contains(text, "start at 20") || !strings.Contains(text, "can lose writes") {
			t.Errorf("%s %s: %d %s", method, path, code, text)
		}
	}
	if err := c.Incr(t.Context(), "photo").Err(); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN ") {
		t.Errorf("INCR photo: %v", err)
	}
	s.until("ids start", func() bool { id, err := c.Incr(t.Context(), "photo").Result(); return err == nil && id > 1e16 })
	if took := time.Since(began); took < 12*time.Second {
		t.Errorf("ids start after %s: an id of an earlier process may be the same", took)
	}
	s.until("ready", s.ready)
	s.stop()
}

// What ends the start of a server is said before its pool waits.
func TestServeRefusesBeforeALossyPoolWaits(t *testing.T) {
	t.Parallel()
	store := testserver.Redis(t).URL()
	firnOn(t, store, 0, "pool", "create", "--new")
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: "+store+"\nseries:\n  "+photoLine+"  "+ordersLine)
	began := time.Now()
	if p := serving(t, dir); p.Run() == nil || !strings.Contains(p.log.String(), "orders") || time.Since(began) > 7*time.Second {
		t.Errorf("after %s: %s", time.Since(began), p.log)
	}
}

// A server that stops while its pool waits does so at once.
func TestServeStopsWhileALossyPoolWaits(t *testing.T) {
	t.Parallel()
	store := testserver.Redis(t).URL()
	firnOn(t, store, 0, "pool", "create", "--new")
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: "+store+"\nseries:\n  "+photoLine)
	s := serve(t, dir)
	began := time.Now()
	s.stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it stops after %s", took)
	}
}

// A reload that takes a series to another pool waits for the first id of that pool, and the series gives
// ids of its old pool meanwhile. SIGHUP ends that wait: the settings are read again.
func TestServeReloadsAgainWhileAReloadWaits(t *testing.T) {
	t.Parallel()
	store := testserver.Redis(t).URL()
	firnOn(t, store, 0, "pool", "create", "--new", "--workers", "0-99")
	firnOn(t, store, 0, "pool", "create", "web", "--new", "--workers", "100-199")
	dir := t.TempDir()
	config := func(series string) {
		write(t, dir, "firn.yaml", "store: "+store+"\npools: { default: {}, web: {} }\nseries: { "+series+" }\n")
	}
	config("photo: { kind: flake }")
	s := serve(t, dir)
	c := s.redis("")
	gives := func(series string) bool { return c.Incr(t.Context(), series).Err() == nil }
	s.until("ids start", func() bool { return gives("photo") })

	const waits = "the reload waits until the ids of a pool start"
	config("photo: { kind: flake, pool: web }")
	s.reload(waits)
	config("photo: { kind: flake }, page: { kind: flake }")
	began := time.Now()
	s.reload(reloaded)
	if took := time.Since(began); took > 7*time.Second || !gives("photo") || !gives("page") {
		t.Errorf("reloaded after %s: %s", took, s.log)
	}

	config("photo: { kind: flake, pool: web }")
	s.reload(waits)
	s.until("it is reloaded", func() bool {
		if !gives("photo") {
			t.Errorf("photo gives nothing: %s", s.log)
		}
		time.Sleep(100 * time.Millisecond)
		return strings.Count(s.log.String(), reloaded) == 2
	})
	if _, text := s.get("/v1/series/photo"); !strings.Contains(text, `"pool":"web"`) || !gives("photo") || strings.Contains(s.log.String(), notReloaded) {
		t.Errorf("%s: %s", text, s.log)
	}
	s.stop()
}
