//go:build !windows

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestServeRefusedRange: a name whose range was refused, because no store had a counter of it, is one that
// was asked for: the counter that is created then is served from the next list on, by both protocols.
func TestServeRefusedRange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	s := serve(t, dir, "--store", url)
	defer s.stop()
	c := s.redis("")
	if err := c.Do(t.Context(), "FIRN.RANGE", "tickets", 10).Err(); err == nil {
		t.Fatal("a flake gave a range")
	}
	if code, text := s.do("POST", "/v1/series/orders/range?n=10", ""); code < 400 {
		t.Fatal(code, text)
	}
	for _, name := range []string{"tickets", "orders"} {
		firnOn(t, url, 0, "series", "create", name, "--kind", "sequence")
	}
	s.until("the counter is served", func() bool {
		list, err := c.Do(t.Context(), "FIRN.RANGE", "tickets", 10).Slice()
		return err == nil && len(list) > 0 && list[0] == "1"
	})
	s.until("the counter is served over HTTP", func() bool {
		code, text := s.do("POST", "/v1/series/orders/range?n=10", "")
		return code == 200 && strings.Contains(text, `"first":"1"`)
	})
}
