//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// TestSetupGrants: the GRANT that setup prints names the schema or the database of the table,
// and can be typed from anywhere.
func TestSetupGrants(t *testing.T) {
	t.Chdir(t.TempDir())
	pg := testserver.Postgres(t)
	onDatabase(t, pg.URL(), `CREATE SCHEMA "Ids"; CREATE ROLE app LOGIN`)
	at := pg.URL() + `&search_path=%22Ids%22`
	for range 2 { // made, and there already
		_, errs, code := called(t, "store", "setup", "--store", at)
		if want := `it needs: GRANT USAGE ON SCHEMA "Ids" TO ROLE; GRANT SELECT, INSERT, UPDATE ON "Ids".firn_records TO ROLE;`; code != 0 || !strings.Contains(errs, want) {
			t.Fatalf("exit code %d: %s, not %s", code, errs, want)
		}
		_, grant, _ := strings.Cut(errs, "it needs: ")
		onDatabase(t, pg.URL(), strings.ReplaceAll(grant, "ROLE", "app"))
	}
	if _, errs, code := called(t, "pool", "create", "--new", "--store", strings.Replace(at, "//t@", "//app@", 1)); code != 0 {
		t.Error(errs)
	}

	maria := testserver.MariaDB(t)
	if _, errs, code := called(t, "store", "setup", "--store", maria.URL()); code != 0 || !strings.Contains(errs, "it needs: GRANT SELECT, INSERT, UPDATE ON `test`.firn_records TO 'USER'@'HOST';") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
