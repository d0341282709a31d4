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

// TestSetupByTheProgram: the role of a program, which may not create tables, has nothing to set up
// where the table is there; where it is not, the right that is missing is named.
func TestSetupByTheProgram(t *testing.T) {
	t.Chdir(t.TempDir())
	url := testserver.Postgres(t).URL()
	app := strings.Replace(url, "//t@", "//app@", 1)
	onDatabase(t, url, `CREATE ROLE app LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC`)
	refusedWith(t, []string{"store", "setup", "--store", app}, "may not make the table firn_records", "GRANT CREATE ON SCHEMA public TO app")
	mustAll(t, "store setup --store "+url)
	refusedWith(t, []string{"store", "setup", "--store", app}, "GRANT SELECT, INSERT, UPDATE ON public.firn_records TO app")
	onDatabase(t, url, `GRANT USAGE ON SCHEMA public TO app; GRANT SELECT, INSERT, UPDATE ON firn_records TO app`)
	out, errs, code := called(t, "store", "setup", "--store", app)
	if code != 0 || !strings.Contains(out, "everything was there already") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	mustAll(t, "pool create --new --store "+app)
}
