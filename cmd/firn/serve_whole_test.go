//go:build !windows

package main

import (
	"net/http"
	"strings"
	"testing"
)

// A request for more than a series has uses up nothing, over every protocol: the next
// request gets what was in hand.
func TestServeTooManyUsesNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "firn.yaml", `
store: sqlite:ids.db
listen: { foreign: true }
series:
  orders:  { kind: sequence, max: 150 }
  strict:  { kind: sequence, max: 150, order: strict }
  invoice: { kind: document, pattern: "INV-{2}" }
`)
	s := serve(t, dir)
	c := s.redis("")
	defer c.Close()
	for _, tt := range []struct{ series, first, next, left string }{
		{"orders", "1", "2", "149"}, {"strict", "1", "2", "149"}, {"invoice", "INV-01", "INV-02", "98"},
	} {
		if got, err := c.Do(t.Context(), "FIRN.NEXT", tt.series).Text(); err != nil || got != tt.first {
			t.Fatalf("%s: %s, %v", tt.series, got, err)
		}
		err := c.Do(t.Context(), "FIRN.NEXT", tt.series, 200).Err()
		if err == nil || !strings.Contains(err.Error(), "; hint: FIRN.NEXT "+tt.series+" "+tt.left+" gives what is left") || strings.Contains(err.Error(), "since") || strings.Contains(err.Error(), "-n ") {
			t.Errorf("%s: 200 at once: %v", tt.series, err)
		}
		if code, body := s.do(http.MethodPost, "/v1/series/"+tt.series+"/next?n=200", ""); code == http.StatusOK ||
			!strings.Contains(body, `"hint":"POST /v1/series/`+tt.series+"/next?n="+tt.left+" gives what is left") || strings.Contains(body, "-n ") {
			t.Errorf("%s: 200 at once over HTTP: %d %s", tt.series, code, body)
		}
		if err := c.Do(t.Context(), "FIRN.RANGE", tt.series, 200).Err(); tt.series == "orders" && (err == nil || !strings.Contains(err.Error(), "; hint: FIRN.NEXT orders 149 gives what is left")) {
			t.Errorf("a range of 200: %v", err)
		}
		if _, body := s.get("/tinyid/id/nextId?batchSize=200&bizType=" + tt.series); tt.series == "orders" && !strings.Contains(body, "; hint: batchSize=149 gives what is left") {
			t.Errorf("tinyid: %s", body)
		}
		if got, err := c.Do(t.Context(), "FIRN.NEXT", tt.series).Text(); err != nil || got != tt.next {
			t.Errorf("%s: after that came %s, %v; want %s", tt.series, got, err, tt.next)
		}
	}
	if code, body := s.get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, body)
	}
	s.stop()
	if strings.Contains(s.log.String(), `hint=""`) {
		t.Errorf("an empty hint is logged:\n%s", s.log)
	}
}

// A sequence at its max says to clients and in the log how to continue above it, and following
// that to the letter does.
func TestServeContinuesAboveMax(t *testing.T) {
	dir := t.TempDir()
	config := func(more string) {
		write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries:\n  orders: { kind: sequence, max: 2 }\n"+more)
	}
	config("")
	s := serve(t, dir)
	c := s.redis("")
	defer c.Close()
	if err := c.Do(t.Context(), "FIRN.NEXT", "orders", 2).Err(); err != nil {
		t.Fatal(err)
	}
	const hint = "such as orders-2, with the settings of orders but first: 3, and a larger max or none; then: firn series create orders-2; then send SIGHUP to this server"
	if err := c.Do(t.Context(), "INCR", "orders").Err(); err == nil || !strings.Contains(err.Error(), hint) {
		t.Errorf("over Redis: %v", err)
	}
	if _, body := s.do(http.MethodPost, "/v1/series/orders/next", ""); !strings.Contains(body, hint) {
		t.Errorf("over HTTP: %s", body)
	}
	if !strings.Contains(s.log.String(), hint) {
		t.Errorf("no hint in the log:\n%s", s.log)
	}
	config("  orders-2: { kind: sequence, first: 3 }\n")
	t.Chdir(dir)
	mustAll(t, "series create orders-2")
	s.reload(reloaded)
	if n, err := c.Do(t.Context(), "INCR", "orders-2").Int(); err != nil || n != 3 {
		t.Errorf("orders-2 begins with %d, %v", n, err)
	}
	s.stop()
}
