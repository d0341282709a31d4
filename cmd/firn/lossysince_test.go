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

// TestLossyWaysOut: a counter is refused on a store that may lose writes, and the first refusal
// has every way out.
func TestLossyWaysOut(t *testing.T) {
	t.Chdir(t.TempDir())
	server := testserver.Postgres(t)
	mustAll(t, "store setup --store "+server.URL())
	onDatabase(t, server.URL(), `SELECT pg_create_physical_replication_slot('standby')`)
	for _, args := range []string{"orders --kind sequence", "invoice --pattern R{4}"} {
		create := append([]string{"series", "create"}, strings.Fields(args)...)
		_, errs, code := called(t, append(create, "--store", server.URL())...)
		for _, want := range []string{"synchronous_standby_names", "assume=durable", "on-lossy-store: may-repeat", "--on-lossy-store may-repeat"} {
			if code == 0 || !strings.Contains(errs, want) {
				t.Errorf("%s: exit code %d, no %s in: %s", args, code, want, errs)
			}
		}
		url := server.URL() + "&assume=durable"
		if !strings.Contains(server.URL(), "?") {
			url = server.URL() + "?assume=durable"
		}
		if _, errs, code := called(t, append(create, "--store", url)...); code != 0 {
			t.Errorf("%s with assume=durable: %s", args, errs)
		}
	}
}
