//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsDoctorRights: doctor says that a move takes another role than that of the address. Programs have no use for
// such a right, so nothing is bad.
func TestShardsDoctorRights(t *testing.T) {
	t.Parallel()
	server := testserver.Postgres(t, "wal_level=logical") // its own: other tests would meet the role
	var flags []string
	for _, name := range []string{"a", "b"} {
		flags = append(flags, "--server", name+"="+database(t, server, name))
	}
	doctor := func() string { return succeed(t, append([]string{"shard", "doctor"}, flags...)...) }
	succeed(t, append([]string{"shard", "init", "--count", "4", "--yes"}, flags...)...)
	if out := doctor(); strings.Contains(out, "cannot move shards") {
		t.Errorf("of a superuser:\n%s", out)
	}
	onDatabase(t, server.URL(), "CREATE ROLE cannotmove LOGIN IN ROLE firn_app, pg_read_all_data")
	for i, flag := range flags {
		flags[i] = strings.Replace(flag, "postgres://t@", "postgres://cannotmove@", 1)
	}
	out := doctor()
	for _, name := range []string{"a", "b"} {
		if !strings.Contains(out, "ok    server "+name+": this role cannot move shards: ") || !strings.Contains(out, "; to move shards: ") {
			t.Errorf("of server %s:\n%s", name, out)
		}
	}
}
