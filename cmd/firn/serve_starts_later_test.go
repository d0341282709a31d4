//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// A server that waits for the ids of a pool waits for them with the new settings too.
func TestServeReloadsWhileIdsStartLater(t *testing.T) {
	dir := emptyHome(t)
	config := func(workers string) {
		write(t, dir, "firn.yaml", "store: sqlite:ids.db\npools: { default: { workers: "+workers+" } }\nseries: { photo: { kind: flake } }\n")
	}
	config("0-31")
	mustAll(t, "pool ensure default")
	s := serve(t, dir)
	later := func() {
		t.Helper()
		if code, text := s.do("POST", "/v1/series/photo/next", ""); code != 503 || !strings.Contains(text, "start at") {
			t.Errorf("%d %s", code, text)
		}
	}
	later()
	mustAll(t, "pool set default --workers 0-63 --config "+write(t, dir, "store.yaml", "store: sqlite:ids.db\n"))
	config("0-63")
	s.reload(reloaded)
	later()
	if text := s.log.String(); strings.Contains(text, notReloaded) {
		t.Error(text)
	}
	s.stop()
}

// A series that gives ids is not taken to a pool whose ids start later. The log says when to send
// SIGHUP again, and what to do about the other faults of the settings.
func TestServeKeepsGivingWhereIdsStartLater(t *testing.T) {
	dir := emptyHome(t)
	const pools = "store: sqlite:ids.db\npools: { default: {}, web: {}, shop: { workers: 512-WIDTH } }\n"
	config := func(width, series string) {
		write(t, dir, "firn.yaml", strings.ReplaceAll(pools, "WIDTH", width)+"series: { "+series+" }\n")
	}
	config("600", "photo: { kind: flake }")
	mustAll(t, "pool create default --new --workers 0-99")
	mustAll(t, "pool ensure web --workers 100-199")
	mustAll(t, "pool create shop --new")
	s := serve(t, dir)
	config("700", "photo: { kind: flake, pool: web }, cart: { kind: flake, pool: shop }")
	s.reload(notReloaded)
	for _, want := range []string{"send SIGHUP to it again after 20", "firn pool set shop --workers 512-700"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("no %q in\n%s", want, s.log)
		}
	}
	if strings.Contains(s.log.String(), "when the store answers") {
		t.Error(s.log)
	}
	if code, text := s.do("POST", "/v1/series/photo/next", ""); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	s.stop()
}

// The same of a server of any name: a counter that gives numbers does not draw from the pool.
func TestServeOfAnyNameReloadsWhileIdsStartLater(t *testing.T) {
	dir := emptyHome(t)
	config := func(workers string) {
		write(t, dir, "firn.yaml", "store: sqlite:ids.db\npools: { default: { workers: "+workers+" } }\n")
	}
	config("0-31")
	other := write(t, dir, "store.yaml", "store: sqlite:ids.db\n")
	mustAll(t, "pool ensure default", "series create orders --new --kind sequence --config "+other)
	s := serve(t, dir)
	if code, text := s.do("POST", "/v1/series/orders/next", ""); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	mustAll(t, "pool set default --workers 0-63 --config "+other)
	config("0-63")
	s.reload(reloaded)
	if text := s.log.String(); strings.Contains(text, notReloaded) {
		t.Error(text)
	}
	s.stop()
}

// A series that gives ids is not taken to a pool that this server waits for already. A series that gives
// none is.
func TestServeKeepsGivingWhereItWaitsForThePool(t *testing.T) {
	dir := emptyHome(t)
	config := func(series string) {
		write(t, dir, "firn.yaml", "store: sqlite:ids.db\npools: { default: {}, web: {} }\nseries: { "+series+" }\n")
	}
	config("photo: { kind: flake }")
	mustAll(t, "pool create default --new --workers 0-99", "pool ensure web --workers 100-199")
	s := serve(t, dir)
	gives := func() {
		t.Helper()
		if code, text := s.do("POST", "/v1/series/photo/next", ""); code != 200 {
			t.Errorf("%d %s", code, text)
		}
	}
	config("photo: { kind: flake }, page: { kind: flake, pool: web }")
	s.reload(reloaded)
	gives()
	config("photo: { kind: flake, pool: web }, page: { kind: flake, pool: web }")
	s.reload(notReloaded)
	if !strings.Contains(s.log.String(), "send SIGHUP to it again after 20") {
		t.Error(s.log)
	}
	gives()
	config("photo: { kind: flake }, page: { kind: flake, pool: web }, cart: { kind: flake, pool: web }")
	s.reload(reloaded)
	gives()
	s.stop()
}

// A lease that has lost its worker, and waits until the ids of its pool start, gives nothing: a reload to
// another pool whose ids start later has the server wait for that one.
func TestServeReloadsWhileALostWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	store := testserver.Redis(t).URL()
	firnOn(t, store, 0, "pool", "create", "--new", "--workers", "0-99")
	dir := t.TempDir()
	config := func(pool string) {
		write(t, dir, "firn.yaml", "store: "+store+"\npools: { default: { renew: 1s, ttl: 3s }, web: {} }\nseries: { photo: { kind: flake, pool: "+pool+" } }\n")
	}
	config("default")
	s := serve(t, dir)
	c := s.redis("")
	s.until("ids start", func() bool { return c.Incr(t.Context(), "photo").Err() == nil })
	firnOn(t, store, 0, "pool", "ensure", "web", "--workers", "100-199")
	firnOn(t, store, 0, "worker", "release", "0", "--yes")
	s.until("calls fail", func() bool { return c.Incr(t.Context(), "photo").Err() != nil })
	config("web")
	s.reload(reloaded)
	if text := s.log.String(); strings.Contains(text, notReloaded) {
		t.Error(text)
	}
	s.stop()
}
