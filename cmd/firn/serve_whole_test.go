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
series:
  orders:  { kind: sequence, max: 150 }
  strict:  { kind: sequence, max: 150, order: strict }
  invoice: { kind: document, pattern: "INV-{2}" }
`)
	s := serve(t, dir)
	c := s.redis("")
	defer c.Close()
	for _, tt := range []struct{ series, first, next string }{
		{"orders", "1", "2"}, {"strict", "1", "2"}, {"invoice", "INV-01", "INV-02"},
	} {
		if got, err := c.Do(t.Context(), "FIRN.NEXT", tt.series).Text(); err != nil || got != tt.first {
			t.Fatalf("%s: %s, %v", tt.series, got, err)
		}
		err := c.Do(t.Context(), "FIRN.NEXT", tt.series, 200).Err()
		if err == nil || !strings.Contains(err.Error(), "fewer") || strings.Contains(err.Error(), "since") {
			t.Errorf("%s: 200 at once: %v", tt.series, err)
		}
		if code, body := s.do(http.MethodPost, "/v1/series/"+tt.series+"/next?n=200", ""); code == http.StatusOK || !strings.Contains(body, "fewer") {
			t.Errorf("%s: 200 at once over HTTP: %d %s", tt.series, code, body)
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
