//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestBecameLossy: a counter was created while the store could not lose writes, and then a
// standby is attached. Nothing was lost, and the error does not say so.
func TestBecameLossy(t *testing.T) {
	t.Chdir(t.TempDir())
	server := testserver.Postgres(t)
	firn := func(args ...string) (string, int) {
		t.Helper()
		_, errs, code := called(t, append(args, "--store", server.URL())...)
		return errs, code
	}
	if errs, code := firn("series", "create", "orders", "--kind", "sequence"); code != 0 {
		t.Fatal(errs)
	}
	if errs, code := firn("next", "orders"); code != 0 {
		t.Fatal(errs)
	}
	onDatabase(t, server.URL(), `SELECT pg_create_physical_replication_slot('standby')`)
	errs, code := firn("next", "orders")
	if code == 0 || strings.Contains(errs, "has forgotten") || !strings.Contains(errs, "and could not when the series was created") ||
		!strings.Contains(errs, "1 slot of a standby that is away") || !strings.Contains(errs, "hint: to see why the store may lose writes: firn doctor") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	onDatabase(t, server.URL(), `SELECT pg_drop_replication_slot('standby')`)
	if errs, code := firn("next", "orders"); code != 0 {
		t.Errorf("durable again: exit code %d: %s", code, errs)
	}
}
