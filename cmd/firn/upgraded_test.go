//go:build !windows

package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
)

// TestUpgraded: a store whose PostgreSQL was upgraded by pg_upgrade, or whose database was dumped and restored into the
// newer server, is refused as another store. What the hints say to type has ids and numbers continue at once.
func TestUpgraded(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"pg_upgrade", "pg_dump"} {
		t.Run(way, func(t *testing.T) {
			if way == "pg_upgrade" {
				testserver.OnlyLong(t) // it starts five servers
			}
			t.Parallel()
			before := testserver.Postgres(t)
			url := testdb.New(t, before, "ids")
			firnOn(t, url, 0, "pool", "create", "--new")
			firnOn(t, url, 0, "series", "create", "orders", "--kind", "sequence")
			id := strings.TrimSpace(firnOn(t, url, 0, "next"))
			firnOn(t, url, 0, "next", "orders", "-n", "3")

			var after string
			if way == "pg_upgrade" {
				after = testdb.URL(testserver.PostgresUpgraded(t, before).URL(), "ids")
			} else {
				after = restored(t, url, testserver.PostgresTarget(t))
			}
			for _, args := range [][]string{{"next"}, {"next", "orders"}, {"pool", "set", "default", "--workers", "0-7"}} {
				said := firnOn(t, after, 1, args...)
				if !strings.Contains(said, "belongs to another store: this one is PostgreSQL system ") ||
					!strings.Contains(said, "only if the store was moved on purpose, nothing used the old one since the copy, and the old one is gone: firn store recover --store") {
					t.Errorf("%v: %s", args, said)
				}
			}
			if said := firnOn(t, after, 3, "doctor"); !strings.Contains(said, "bad   pool default, store:") {
				t.Error(said)
			}
			firnOn(t, after, 0, "store", "recover", "--moved", "--yes")
			if next := strings.TrimSpace(firnOn(t, after, 0, "next")); len(next) < len(id) || next <= id {
				t.Errorf("after id %s comes %s", id, next)
			}
			if n := strings.TrimSpace(firnOn(t, after, 0, "next", "orders")); n != "4" {
				t.Errorf("after 3 comes %s", n)
			}
			firnOn(t, after, 0, "doctor")
		})
	}
}

// restored dumps a database and restores it on another server, and returns its URL there.
func restored(t *testing.T, url string, to *testserver.Server) string {
	t.Helper()
	dump, err := exec.CommandContext(t.Context(), "pg_dump", "--dbname="+url).Output()
	if err != nil {
		t.Fatal(err)
	}
	there := testdb.New(t, to, "restored")
	psql := exec.CommandContext(t.Context(), "psql", "-q", "-v", "ON_ERROR_STOP=1", there)
	psql.Stdin = bytes.NewReader(dump)
	if out, err := psql.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return there
}
