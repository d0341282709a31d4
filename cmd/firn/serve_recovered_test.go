//go:build !windows

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Where any name is served and the store was recovered, a name that no counter has gives no id: the
// store may have lost its counter. What the hints say to type is served.
func TestServeAnyNameOfARecoveredStore(t *testing.T) {
	dir := emptyHome(t)
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	mustAll(t, "pool create --new --outage 1s --store "+url, "series create orders --kind sequence --store "+url)
	config := "limits: { names: 2 }\n"
	s := serve(t, dir, "--resp", "127.0.0.1:0", "--store", url, "--config", write(t, dir, "firn.yaml", config))
	c := s.redis("")
	for _, name := range []string{"photo", "bills"} {
		if err := c.Incr(t.Context(), name).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// The mark is there whatever the recovery has found: somebody says that writes were lost.
	mustAll(t, "store recover --yes --outage 1s --numbers 10 --store "+url)
	for _, again := range []bool{false, true} {
		if again {
			s.stop()
			s = serve(t, dir, "--resp", "127.0.0.1:0", "--store", url, "--config", filepath.Join(dir, "firn.yaml"))
			c = s.redis("")
		}
		s.until("the recovery is seen", func() bool {
			return strings.Contains(s.log.String(), "the store may have lost counters: a name that no counter has gives nothing")
		})
		// More names than have a series of their own.
		for _, name := range []string{"photo", "bills", "a", "b", "c"} {
			id, err := c.Incr(t.Context(), name).Result()
			if err == nil {
				t.Fatalf("INCR %s: %d, an id of a name whose counter may be lost", name, id)
			}
			if strings.HasPrefix(err.Error(), "TRYAGAIN") || !strings.Contains(err.Error(), "--first N") || !strings.Contains(err.Error(), "firn serve --kind flake --config ") || !strings.Contains(err.Error(), " --resp 127.0.0.1:0") {
				t.Errorf("INCR %s: %v", name, err)
			}
		}
		if _, text := s.do("POST", "/v1/series/photo/next", ""); !strings.Contains(text, "firn series create photo --kind sequence --first N") {
			t.Errorf("POST photo: %s", text)
		}
		if n, err := c.Incr(t.Context(), "orders").Result(); again && (err != nil || n < 11) {
			t.Errorf("INCR orders: %d, %v", n, err)
		}
	}
	mustAll(t, "series create bills --kind sequence --first 500 --store "+url)
	if n, err := c.Incr(t.Context(), "bills").Result(); err != nil || n != 500 {
		s.until("the counter is found", func() bool { n, err = c.Incr(t.Context(), "bills").Result(); return err == nil })
		if n != 500 {
			t.Errorf("INCR bills: %d, %v; want 500", n, err)
		}
	}
	s.stop()

	s = serve(t, dir, "--store", url, "--kind", "flake")
	c = s.redis("")
	s.until("photo gives ids", func() bool { id, err := c.Incr(t.Context(), "photo").Result(); return err == nil && id > 1e16 })
	if n, err := c.Incr(t.Context(), "bills").Result(); err != nil || n < 501 || n > 1000 {
		t.Errorf("INCR bills: %d, %v", n, err)
	}
	s.stop()
	for want, args := range map[string][]string{
		"firn serve takes flake only":              {"--kind", "sequence", "--store", url},
		"is about names that are not listed, and ": {"--kind", "flake", "--config", write(t, dir, "listed.yaml", "series: { photo: { kind: flake } }\n")},
	} {
		if p := serving(t, dir, args...); p.Run() == nil || !strings.Contains(p.log.String(), want) {
			t.Errorf("%q: %s", args, p.log)
		}
	}
}
