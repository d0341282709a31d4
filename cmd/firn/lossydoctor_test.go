//go:build !windows

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// TestDoctorBecameLossy: counters were created while the store could not lose writes, and then an
// asynchronous standby is connected. Doctor says bad for each of them, and first how the store is
// made durable, as next does.
func TestDoctorBecameLossy(t *testing.T) {
	t.Chdir(t.TempDir())
	server := testserver.Postgres(t)
	mustAll(t, "series create orders --kind sequence --store "+server.URL(), "series create invoice --pattern R{4} --store "+server.URL())
	server.Stop(t) // a clean restart, by which nothing is lost
	server.Start(t)
	testserver.PostgresStandby(t, server, "cluster_name=s2")
	await(t, "the standby streams", func() bool {
		return one[int64](t, server.URL(), "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == 1
	})
	out, _, code := called(t, "doctor", "--store", server.URL())
	for _, name := range []string{"orders", "invoice"} {
		line := lineWith(out, "bad   series "+name+": ")
		cure, recover := strings.Index(line, "make the store durable"), strings.Index(line, "firn store recover")
		if code == 0 || cure < 0 || recover < cure || !strings.Contains(line, "if the store was restored, replaced or failed over, before that") {
			t.Errorf("exit code %d, %s: %q", code, name, line)
		}
		if strings.Contains(line, "may have forgotten") {
			t.Errorf("nothing was lost: %q", line)
		}
	}
	if line := lineWith(out, "warn  durability: "); !strings.Contains(line, "synchronous_standby_names") {
		t.Errorf("no cure in %q", line)
	}
	onDatabase(t, server.URL(), `ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (s2)'`)
	onDatabase(t, server.URL(), `SELECT pg_reload_conf()`)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if out, _, code = called(t, "doctor", "--store", server.URL()); code == 0 && lineWith(out, "ok    durability: ") != "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the cure that was named does not help: exit code %d: %s", code, out)
		}
	}
	mustAll(t, "next orders --store "+server.URL(), "next invoice --store "+server.URL())
}

// lineWith is the first line of a text that begins so, or "".
func lineWith(text, beginning string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, beginning) {
			return line
		}
	}
	return ""
}
