//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsDoctorOlder: a server that was put back has a shard which another one serves. Doctor says so until the
// server was told.
func TestShardsDoctorOlder(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	addresses, flags := twoServers(t, 2)
	a, b := addresses[0], addresses[1]
	onDatabase(t, a, "SELECT firn.create_shard(1, 'insta1'); UPDATE firn.shard SET term = 5 WHERE shard = 1")
	onDatabase(t, b, "UPDATE firn.shard SET relation = 0 WHERE shard = 1")
	doctor := append([]string{"shard", "doctor"}, flags...)
	said, errs, _ := called(t, doctor...)
	if !strings.Contains(said, "it was put back, copied or promoted, and does not know that another server serves 1 shard: 1") || !strings.Contains(said, "to tell it so: firn shard reopen b --server ") {
		t.Errorf("%s%s", said, errs)
	}
	succeed(t, append(strings.Fields("shard reopen b --yes"), flags...)...)
	if said, errs, code := called(t, doctor...); code != 0 || strings.Contains(said, "does not know") {
		t.Errorf("%d: %s%s", code, said, errs)
	}
}
