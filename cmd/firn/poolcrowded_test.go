//go:build !windows

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ui"
)

// Where a server is told of a pool that the store lacks, and that could not be created as it is set,
// the hint leads to one that can: each is typed as it stands.
func TestServeReloadsToACrowdedPool(t *testing.T) {
	dir := emptyHome(t)
	store := "sqlite:" + filepath.Join(dir, "ids.db")
	config := func(web string) {
		write(t, dir, "firn.yaml", "store: "+store+"\npools: { default: {}, web: "+web+" }\nseries:\n  photo: { kind: flake, pool: default }\n  video: { kind: flake, pool: web }\n")
	}
	write(t, dir, "firn.yaml", "store: "+store+"\nseries:\n  "+photoLine)
	s := serve(t, dir)
	refused := func(want ...string) {
		t.Helper()
		before := len(s.log.String())
		s.reload(notReloaded)
		text := s.log.String()[before:]
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is missing:\n%s", w, text)
			}
		}
		if strings.Contains(text, "firn pool create web --new") || strings.Contains(text, "firn pool ensure web (") {
			t.Errorf("it hints what is refused:\n%s", text)
		}
	}
	config("{}")
	refused("could repeat ids of pool default, which has workers 0-1023", `"hint":"to use this one: pool: default for the series in firn.yaml; with these`,
		"First: firn pool set default --workers 0-511. Then, if ", "firn pool ensure web --workers 512-1023 (", "firn pool create web --workers 512-1023 --new")
	if text := firnOn(t, store, ui.ExitFailed, "pool", "ensure", "web"); !strings.Contains(text, "could repeat ids") {
		t.Errorf("pool ensure web as it is set: %s", text)
	}
	mustAll(t, "pool set default --workers 0-511")
	refused("give it workers that no other pool has: if ", "firn pool create web --workers 512-1023 --new")
	config("{ workers: 256-767 }")
	refused("firn pool create web --workers 512-1023 --new", "And write 512-1023 in workers of firn.yaml:2")
	config("{}")
	mustAll(t, "pool create shop --workers 512-599 --new")
	refused("firn pool create web --workers 600-1023 --new")
	mustAll(t, "pool create web --workers 600-1023 --new")
	s.reload(reloaded)
	if id, err := s.redis("").Incr(t.Context(), "video").Result(); err != nil || id < 1e16 {
		t.Errorf("INCR video: %d, %v", id, err)
	}
	s.stop()
}
