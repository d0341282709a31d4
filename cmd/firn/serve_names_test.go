//go:build !windows

package main

import (
	"fmt"
	"strings"
	"testing"
)

// Names that clients make up are used up for nobody: after 100,000 of them a name that
// nobody has asked for is served, the metrics have no more labels, and neither have the
// lists that people see.
func TestServeMadeUpNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, "--store", "sqlite:"+dir+"/ids.db")
	c := s.redis("")
	var all ids
	const names, together = 100_000, 1000
	for i := 0; i < names; i += together {
		p := c.Pipeline()
		for j := range together {
			p.Do(t.Context(), "INCR", fmt.Sprintf("user:%d", i+j))
		}
		answers, err := p.Exec(t.Context())
		if err != nil {
			t.Fatalf("after %d names: %v", i, err)
		}
		for _, a := range answers {
			id, err := a.(interface{ Int64() (int64, error) }).Int64()
			if err != nil {
				t.Fatal(err)
			}
			all.add(t, id)
		}
	}
	if _, err := c.Do(t.Context(), "INCR", "photo").Int64(); err != nil {
		t.Errorf("a new name: %v", err)
	}
	if code, text := s.do("POST", "/v1/series/video/next", ""); code != 200 {
		t.Errorf("a new name: %d %s", code, text)
	}
	for path, most := range map[string]int{"/metrics": 500_000, "/console/state": 200_000, "/v1/series": 200_000} {
		if code, text := s.get(path); code != 200 || len(text) > most {
			t.Errorf("%s: %d and %d bytes", path, code, len(text))
		}
	}
	_, text := s.get("/metrics")
	var sum float64
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "firn_values_total{") {
			var n float64
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &n); err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	if sum != names+2 {
		t.Errorf("the metrics count %v values of %d", sum, names+2)
	}
}
