//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// A flake of firn.yaml that has the name of a counter gives no id, also where the server began
// while the store was away: neither when the store comes back, nor where ids went on from a grant
// file. It answers what a server that starts now says.
func TestServeFlakeOfACounterAfterAnAwayStore(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	urls := databases(t, pg, "plain", "granted")
	var servers []*served
	for i, url := range urls {
		dir := t.TempDir()
		pools := ""
		if i == 1 {
			pools = "pools: { default: { grant-file: " + filepath.Join(dir, "grant") + " } }\n"
		}
		write(t, dir, "firn.yaml", "store: "+url+"\n"+pools+"series:\n  "+photoLine+"  orders: { kind: flake }\n")
		firnOn(t, url, 0, "pool", "create", "--new")
		first := serve(t, dir)
		first.until("ready", first.ready)
		if i == 1 { // the grant file of a server that was killed
			first.signal(os.Kill)
			first.Wait()
		} else {
			first.stop()
		}
		firnOn(t, url, 0, "series", "create", "orders", "--kind", "sequence")
		servers = append(servers, serving(t, dir))
	}
	pg.Stop(t)
	for _, s := range servers {
		s.begin()
	}
	if id, err := servers[0].redis("").Incr(t.Context(), "orders").Result(); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN ") {
		t.Errorf("INCR orders while the store is away: %d, %v; want TRYAGAIN", id, err)
	}
	pg.Start(t)
	for i, s := range servers {
		c := s.redis("")
		s.until("photo gives ids", func() bool {
			if id, err := c.Incr(t.Context(), "orders").Result(); err == nil && i == 0 {
				t.Fatalf("INCR orders: %d, an id in place of a number\n%s", id, s.log)
			}
			return c.Incr(t.Context(), "photo").Err() == nil
		})
		var err error
		s.until("orders gives nothing", func() bool {
			err = c.Incr(t.Context(), "orders").Err()
			return err != nil && strings.Contains(err.Error(), "cannot be of kind flake: the store has a sequence of that name")
		})
		for _, want := range []string{"write in firn.yaml: orders: { kind: sequence }", "then send SIGHUP to this server, or restart it"} {
			if _, text := s.get("/readyz"); !strings.Contains(text, want) || !strings.Contains(err.Error(), want) || strings.Count(s.log.String(), want) < 1 {
				t.Errorf("%q is to be in /readyz, the answer and the log:\n%s\n%v\n%s", want, text, err, s.log)
			}
		}
		if err := c.Incr(t.Context(), "photo").Err(); err != nil {
			t.Errorf("INCR photo: %v", err)
		}
		if _, text := s.get("/metrics"); !regexp.MustCompile(`(?m)^firn_lease_left_seconds\{pool="default"\} [1-9]`).MatchString(text) {
			t.Errorf("the pool is well, and its metrics say that no id is left:\n%s", text)
		}
		text, err := os.ReadFile(filepath.Join(s.Dir, "firn.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, s.Dir, "firn.yaml", strings.Replace(string(text), "orders: { kind: flake }", "orders: { kind: sequence }", 1))
		s.reload(reloaded)
		if n, err := c.Incr(t.Context(), "orders").Result(); err != nil || n != 1 {
			t.Errorf("INCR orders after the hint: %d, %v; want 1", n, err)
		}
		s.stop()
	}
}
