//go:build !windows

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// TestStandbyAway: commits wait for a standby that is away, and with them every read of firn. Each
// command ends after about 10 s and leads to doctor, which says for what the server waits.
func TestStandbyAway(t *testing.T) {
	t.Chdir(t.TempDir())
	server := testserver.Postgres(t)
	mustAll(t, "pool create web --new --workers 0-3 --store "+server.URL())
	onDatabase(t, server.URL(), `ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (s2)'`)
	onDatabase(t, server.URL(), `SELECT pg_reload_conf()`)
	for _, command := range []string{"pool ls", "worker ls --pool web", "series ls"} {
		t.Run(command, func(t *testing.T) {
			begun := time.Now()
			_, errs, code := called(t, append(strings.Fields(command), "--store", server.URL())...)
			if took := time.Since(begun); code == 0 || took > 20*time.Second || !strings.Contains(errs, "hint: to see whether the server waits for a standby that is away: firn doctor ") {
				t.Errorf("after %s, exit code %d: %s", took, code, errs)
			}
		})
	}
	out, _, code := called(t, "doctor", "--store", server.URL())
	line := lineWith(out, "bad   store: ")
	for _, want := range []string{"commits wait for standbys", "synchronous_standby_names = 'FIRST 1 (s2)', no standby, a commit waits for 1", "start the standby that is away", "the store can lose writes"} {
		if code == 0 || !strings.Contains(line, want) {
			t.Errorf("exit code %d, no %q in: %s", code, want, out)
		}
	}
}
