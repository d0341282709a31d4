package main

import (
	"context"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/sqlite"
)

// content is what every file below a directory has in it.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A doctor writes nothing: it founds no pool, makes no file and mends none.
func TestDoctorWritesNothing(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	examine := func(want int, args ...string) {
		t.Helper()
		before := content(t, dir)
		out, errs, code := called(t, append([]string{"doctor"}, args...)...)
		if code != want {
			t.Errorf("exit code %d, want %d\n%s%s", code, want, out, errs)
		}
		if after := content(t, dir); !maps.Equal(before, after) {
			t.Errorf("%v: there is now %v\nbefore %v\n%s", args, slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)), out)
		}
	}
	examine(0)
	if _, errs, code := called(t, "next"); code != 0 {
		t.Fatal(errs)
	}
	examine(0)
	examine(0, "--pool", "web")
	examine(ui.ExitFound, "--layout", "js53")
	examine(ui.ExitFound, "--layout", "js53", "--pool", "default")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Rename(".ids.db.id", "away"))
	examine(ui.ExitFound)
	must(os.Rename("away", ".ids.db.id"))
	must(os.Rename("ids.db", "away"))
	examine(ui.ExitFound)
	must(os.WriteFile("ids.db", []byte("another"), 0o600))
	examine(ui.ExitFound)
}

// A role that may update records, and may not create any, is told the exact GRANT.
func TestDoctorGrant(t *testing.T) {
	emptyHome(t)
	at := testserver.Shared(t, testserver.Postgres).URL()
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	do := func(statement string) {
		t.Helper()
		if _, err := conn.Exec(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	do(`CREATE SCHEMA granted; CREATE ROLE "app-1" LOGIN; GRANT USAGE ON SCHEMA granted TO "app-1"; SET search_path = granted`)
	defer do(`DROP OWNED BY "app-1"; DROP ROLE "app-1"; DROP SCHEMA granted CASCADE`)
	with := func(key, value string) string {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("search_path", "granted")
		if u.RawQuery = q.Encode(); key == "user" {
			u.User = url.User(value)
		}
		return u.String()
	}
	if out, _, code := called(t, "doctor", "--store", with("user", "app-1")); code != ui.ExitFound ||
		!strings.Contains(out, `bad   rights: `) || !strings.Contains(out, `a role that may runs "firn store setup"`) || strings.Contains(out, "pool create") {
		t.Errorf("without a table: exit code %d: %s", code, out)
	}
	if _, errs, code := called(t, "pool", "create", "--new", "--store", with("", "")); code != 0 {
		t.Fatal(errs)
	}
	do(`GRANT SELECT, UPDATE ON granted.firn_records TO "app-1"`)
	doctor := func() (string, int) {
		out, _, code := called(t, "doctor", "--store", with("user", "app-1"))
		return out, code
	}
	if _, errs, code := called(t, "series", "create", "orders", "--kind", "sequence", "--store", with("", "")); code != 0 {
		t.Fatal(errs)
	}
	if _, errs, code := called(t, "series", "create", "bill", "--pattern", "B{4}", "--store", with("", "")); code != 0 {
		t.Fatal(errs)
	}
	do(`REVOKE UPDATE ON granted.firn_records FROM "app-1"`)
	for _, args := range []string{"next", "next orders --kind sequence", "next bill --pattern B{4}"} { // nobody grants a right meanwhile
		begun := time.Now()
		_, errs, code := called(t, append(strings.Fields(args), "--store", with("user", "app-1"))...)
		if took := time.Since(begun); code == 0 || took > 3*time.Second || !strings.Contains(errs, "permission denied") {
			t.Errorf("firn %s: exit code %d after %s: %s", args, code, took, errs)
		}
	}
	do(`GRANT UPDATE ON granted.firn_records TO "app-1"`)
	const grant = `GRANT INSERT ON granted.firn_records TO "app-1"`
	if out, code := doctor(); code != ui.ExitFound || !strings.Contains(out, "bad   rights: this user may not INSERT on the table firn_records; have the owner of the table run: "+grant+"\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
	do(grant)
	if out, code := doctor(); code != 0 {
		t.Errorf("with the GRANT: exit code %d: %s", code, out)
	}
	do(`REVOKE SELECT ON firn_records FROM "app-1"`)
	if out, code := doctor(); code != ui.ExitFound || !strings.Contains(out, `GRANT SELECT ON granted.firn_records TO "app-1"`) || strings.Contains(out, "store: ") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// The command, with a lease that another holds meanwhile.
func TestDoctorHeld(t *testing.T) {
	dir := emptyHome(t)
	s, err := sqlite.Open(context.Background(), filepath.Join(dir, "ids.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := lease.Open(t.Context(), s, &lease.Options{Pool: "web", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, errs, code := called(t, "doctor", "--store", "sqlite:ids.db")
	if code != 0 || errs != "" {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{
		"ok    config: there is no firn.yaml: ", "MB free\n", ", mode 0600, with its hidden file and a write-ahead log of ",
		"ok    store: sqlite:" + filepath.Join(dir, "ids.db") + " answers in ", "ok    durability: durable: ",
		"ok    pool web, workers: 0 to 1023: 1 held, 0 unusable, 1023 free\n", "; now that would be ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("not %q in\n%s", want, out)
		}
	}
}

// TestDoctorStoreAway: an operator whose store is down is told that running processes continue, so that nobody restarts them.
func TestDoctorStoreAway(t *testing.T) {
	emptyHome(t)
	out, _, code := called(t, "doctor", "--store", "postgres://app@127.0.0.1:1/app")
	const want = "bad   store: 127.0.0.1:1: nothing listens at the address; is the server running? (connection refused); bring the store back, and restart no process: those that run continue"
	if code != ui.ExitFound || !strings.Contains(out, want) {
		t.Errorf("exit code %d, no %q in\n%s", code, want, out)
	}
}

// A pool of which more than half is held has too few workers for a start of all its processes.
func TestDoctorHalfHeld(t *testing.T) {
	url := "sqlite:" + filepath.Join(emptyHome(t), "ids.db")
	mustAll(t, "pool create --new --workers 0-3 --store "+url)
	s, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n, want := range []string{
		"ok    pool default, workers: 0 to 3: 1 held, 0 unusable, 3 free\n",
		"ok    pool default, workers: 0 to 3: 2 held, 0 unusable, 2 free\n",
		"warn  pool default, workers: 0 to 3: 3 held, 0 unusable, 1 free; more than half are held; if all processes start anew at once there are too few: firn pool set default --workers A-B",
	} {
		l, err := lease.Open(t.Context(), s, &lease.Options{Choice: lease.Only(int64(n)), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if out, _, code := called(t, "doctor", "--store", url); code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, out)
		}
	}
}

// Two pools whose ids may be equal are a warning, however they came into the store.
func TestDoctorEqualIDs(t *testing.T) {
	dir := emptyHome(t)
	one, two := "sqlite:"+filepath.Join(dir, "one.db"), "sqlite:"+filepath.Join(dir, "two.db")
	for url, args := range map[string][]string{one: {"pool", "create", "shop", "--new"}, two: {"pool", "create", "mail", "--new", "--workers", "0-7"}} {
		if _, errs, code := called(t, append(args, "--store", url)...); code != 0 {
			t.Fatal(errs)
		}
	}
	from, err := sqlite.Open(t.Context(), filepath.Join(dir, "two.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := sqlite.Open(t.Context(), filepath.Join(dir, "one.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	rec, err := from.Get(t.Context(), term.KeyPool("mail"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.Put(t.Context(), rec.Key, rec.Value, store.Condition{}); err != nil {
		t.Fatal(err)
	}
	out, _, _ := called(t, "doctor", "--store", one)
	if !strings.Contains(out, "warn  pools mail and shop: their ids may be equal; use one of them, or give each its own workers") {
		t.Error(out)
	}
}
