//go:build !windows

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestShardsEmptyMember: an empty database at the address of a server is not made that server when another is added,
// and shards are not made again without a question.
func TestShardsEmptyMember(t *testing.T) {
	t.Parallel()
	addresses, flags := twoServers(t, 4)
	server := testserver.Shared(t, testserver.Postgres)
	empty, c := database(t, server, "empty"), database(t, server, "c")
	wrong := []string{"--server", "a=" + addresses[0], "--server", "b=" + empty}
	said, errs, code := called(t, slices.Concat([]string{"shard", "add-server", "c=" + c}, wrong)...)
	if code == 0 || !strings.Contains(errs, "server b: the others have it in their cluster, and it knows nothing of that: what it had is lost, or it is another database") {
		t.Errorf("%d: %s%s", code, said, errs)
	}
	if one[bool](t, empty, "SELECT to_regnamespace('firn') IS NOT NULL") {
		t.Error("the empty database has a schema firn now")
	}

	onDatabase(t, addresses[1], "DELETE FROM firn.generator WHERE shard = 3; DELETE FROM firn.shard WHERE shard = 3; DROP SCHEMA insta3 CASCADE")
	again := slices.Concat([]string{"shard", "init", "--count", "4"}, flags)
	if said, errs, code = called(t, again...); code == 0 || !strings.Contains(errs, "Shards on no server, which would be made empty: 1. If a server had them, their rows are only in its backup, and numbers of your own sequences begin again. Were they never made?") {
		t.Errorf("%d: %s%s", code, said, errs)
	}
	succeed(t, append(again, "--yes")...)
	succeed(t, append([]string{"shard", "doctor"}, flags...)...)
}
