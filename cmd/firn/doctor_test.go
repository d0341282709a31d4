package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
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

// examined returns what a doctor says of a store, by the check.
func examined(t *testing.T, s store.Store, now func() time.Time, flags ...string) (found map[string]finding, bads int) {
	t.Helper()
	emptyHome(t)
	cmd := &cobra.Command{}
	addPool(cmd)
	if err := cmd.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	set, err := loadSettings(cmd)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := &doctor{out: &out, json: true, now: now, ended: t.Context().Err}
	p, ok := d.durability(t.Context(), s)
	if ok {
		if err := d.pools(t.Context(), s, set, p); err != nil {
			t.Fatal(err)
		}
	}
	found = map[string]finding{}
	for dec := json.NewDecoder(&out); dec.More(); {
		var f finding
		if err := dec.Decode(&f); err != nil {
			t.Fatal(err)
		}
		found[f.Check] = f
	}
	return found, d.bads
}

// remote is a store on another host, with a clock of its own.
type remote struct {
	*memory.Store
	durability store.Durability
	err        error
}

func (s *remote) Durability(context.Context) (store.Durability, error) { return s.durability, s.err }

func newServer(durable bool, ahead time.Duration) *remote {
	return &remote{
		Store:      memory.NewClock(func() time.Time { return time.Now().Add(ahead) }),
		durability: store.Durability{Durable: durable, Why: "for a test"},
	}
}

// A reader is a store whose user may read only.
type reader struct{ store.Store }

func (reader) Put(context.Context, string, []byte, store.Condition) (store.Record, error) {
	return store.Record{}, errors.New("permission denied for table firn_records")
}

// A user who may not write makes no id, and is told so. Asking changes nothing.
func TestDoctorRights(t *testing.T) {
	for _, durable := range []bool{true, false} {
		s := newServer(durable, 0)
		if _, err := pool.Create(t.Context(), s, pool.Default, nil); err != nil {
			t.Fatal(err)
		}
		before, err := s.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		found, bads := examined(t, s, time.Now)
		if f, ok := found["rights"]; ok || bads != 0 {
			t.Errorf("one who may write: %+v, %d bad", f, bads)
		}
		after, err := s.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if len(before) == 0 || !slices.EqualFunc(before, after, func(a, b store.Record) bool { return a.Key == b.Key && a.Version == b.Version }) {
			t.Errorf("%+v\nbecame %+v", before, after)
		}
		found, bads = examined(t, reader{s}, time.Now)
		if f := found["rights"]; f.State != wrong || !strings.Contains(f.Text, "permission denied") || bads == 0 {
			t.Errorf("one who may only read: %+v, %d bad", f, bads)
		}
	}
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

func wantFinding(t *testing.T, found map[string]finding, check, state, text string) {
	t.Helper()
	if f := found[check]; f.State != state || !strings.Contains(f.Text, text) {
		t.Errorf("%s: %+v, want %s %q", check, f, state, text)
	}
	if f := found[check]; f.State == wrong && f.Do == "" {
		t.Errorf("%s: nothing to do about %+v", check, f)
	}
}

func TestDoctorClock(t *testing.T) {
	for _, tt := range []struct {
		ahead       time.Duration // of the store's clock
		state, text string
	}{
		{0, fine, "agree within 5s"},
		{4 * time.Second, fine, "agree"},
		{-4 * time.Second, fine, "agree"},
		{-time.Minute, wrong, "this host's is 1m"},
		{time.Minute, warning, "behind the store's"},
	} {
		found, _ := examined(t, newServer(true, tt.ahead), time.Now)
		wantFinding(t, found, "clock", tt.state, tt.text)
	}
	found, _ := examined(t, memory.New(), time.Now)
	wantFinding(t, found, "clock", fine, "no second opinion")
	away := newServer(true, 0)
	away.err = errors.New("store: connection refused")
	found, bads := examined(t, away, time.Now)
	if f := found["durability"]; f.State != wrong || f.Text != "connection refused" || bads != 1 || len(found) != 1 {
		t.Errorf("%+v", found)
	}
}

// What follows from the class of the store and the knobs.
func TestDoctorCosts(t *testing.T) {
	found, _ := examined(t, newServer(true, 0), time.Now)
	wantFinding(t, found, "durability", fine, "durable: ")
	wantFinding(t, found, "pool default, record", warning, "the store has no pool \"default\"")
	found, _ = examined(t, memory.New(), time.Now)
	wantFinding(t, found, "pool default, record", fine, "not created yet; the first process creates it with layout firn")
	wantFinding(t, found, "pool default, outage", fine, "5m while the store is away, 10s when a process has just started and all of it after 40s")
	wantFinding(t, found, "pool default, crash", fine, "for 5m at most, 10s if")
	wantFinding(t, found, "pool default, failover", fine, "nothing is issued for 5m10s")

	lossy := newServer(false, 0)
	if _, err := pool.Create(t.Context(), lossy, "web", &pool.Options{Layout: firn.JS53()}); err != nil {
		t.Fatal(err)
	}
	found, bads := examined(t, lossy, time.Now, "--pool", "web", "--layout", "js53")
	wantFinding(t, found, "durability", warning, "lossy: ")
	wantFinding(t, found, "pool web, outage", fine, "continue for 3s while the store is away")
	wantFinding(t, found, "pool web, failover", fine, "each start of a process waits for 13s")
	if bads != 0 {
		t.Errorf("%d bad in %+v", bads, found)
	}
	found, _ = examined(t, memory.New(), time.Now, "--outage", "20s", "--grant-file", "/run/grant")
	wantFinding(t, found, "pool default, outage", fine, "20s while the store is away, 10s when a process has just started and all of it after 3s")
	wantFinding(t, found, "pool default, crash", fine, "for 30s at most, 10s if")
	wantFinding(t, found, "pool default, crash", fine, "from its grant file")
}

// A pool on which somebody has seen that the store can forget stays by those rules.
func TestDoctorMark(t *testing.T) {
	s := newServer(false, 0)
	rec := term.Pool{V: 1, ID: "1", Layout: firn.Default().String(), Workers: "0-1023", Limit: 300_000, Lossy: "2026-11-21T08:00:00Z web-1: for a test"}
	if _, err := s.Put(t.Context(), term.KeyPool("default"), rec.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	found, _ := examined(t, s, time.Now)
	if f, ok := found["pool default, mark"]; ok {
		t.Errorf("the promise says it already: %+v", f)
	}
	s.durability.Durable = true
	found, _ = examined(t, s, time.Now)
	wantFinding(t, found, "pool default, mark", warning, "web-1: for a test")
}

// What a pool has: who holds what, who falls free, and what lies ahead.
func TestDoctorPool(t *testing.T) {
	s := memory.New()
	if _, err := pool.Create(t.Context(), s, "web", &pool.Options{Workers: 3}); err != nil {
		t.Fatal(err)
	}
	opts := &lease.Options{Pool: "web", Logger: slog.New(slog.DiscardHandler)}
	var held []*lease.Lease
	for range 3 {
		l, err := lease.Open(t.Context(), s, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		held = append(held, l)
	}
	found, _ := examined(t, s, time.Now)
	wantFinding(t, found, "pool web, workers", warning, "0 to 2: 3 held, 0 falling free, 0 free; the first falls free in ")
	wantFinding(t, found, "pool web, crash", fine, "; now that would be 10s for worker ")
	wantFinding(t, found, "pool web, start", fine, "ids have started")

	if err := held[0].Close(); err != nil {
		t.Fatal(err)
	}
	if err := pool.Release(t.Context(), s, "web", held[1].State().Worker); err != nil {
		t.Fatal(err)
	}
	found, _ = examined(t, s, time.Now)
	wantFinding(t, found, "pool web, workers", fine, "0 to 2: 1 held, 1 falling free, 1 free")

	if _, err := pool.Recover(t.Context(), s, time.Minute); err != nil {
		t.Fatal(err)
	}
	found, _ = examined(t, s, time.Now)
	wantFinding(t, found, "pool web, start", warning, "ids start at ")
	wantFinding(t, found, "pool web, workers", warning, "0 held, 3 falling free, 0 free")
	found, _ = examined(t, s, time.Now, "--pool", "web", "--layout", "twitter")
	wantFinding(t, found, "pool web, layout", wrong, "it is firn, and the settings say twitter")

	// Seventy years later.
	found, bads := examined(t, s, func() time.Time { return time.Now().AddDate(70, 0, 0) })
	wantFinding(t, found, "pool web, years", wrong, "the layout ended on 2094-09-07")
	if bads != 1 {
		t.Errorf("%d bad in %+v", bads, found)
	}
	found, _ = examined(t, s, func() time.Time { return time.Now().AddDate(60, 0, 0) })
	wantFinding(t, found, "pool web, years", warning, " left: the layout ends on 2094-09-07")
	found, _ = examined(t, s, func() time.Time { return time.Now().AddDate(-60, 0, 0) })
	wantFinding(t, found, "pool web, years", wrong, "the layout begins on 2025-01-01")
	wantFinding(t, found, "clock", warning, "which is still to come")
}

func TestDoctorRecords(t *testing.T) {
	for _, tt := range []struct{ key, value, text string }{
		{"pool/web", "{}", "has no format number"},
		{"pool/web", `{"v":2}`, "written by a later firn"},
		{"pool/web/worker/0", `{"v":1,"horizon":-1}`, "negative number"},
		{"pool/web/worker/x", `{"v":1}`, "none of firn's"},
		{"pool/web/x", `{"v":1}`, "none of firn's"},
		{"segment/a", `{"v":1}`, "has no id"},
		{"serial/a", `{"v":1,"pattern":"{0}"}`, "a counter has 1 to 18 digits"},
		{"serial/a/20261120", `{"v":2}`, "written by a later firn"},
		{"other/a", `{"v":1}`, "none of firn's"},
		{"store", `"`, "record store: "},
	} {
		s := memory.New()
		if _, err := s.Put(t.Context(), tt.key, []byte(tt.value), store.Condition{}); err != nil {
			t.Fatal(err)
		}
		found, bads := examined(t, s, time.Now)
		wantFinding(t, found, "records", wrong, tt.text)
		if bads != 1 {
			t.Errorf("%s: %+v", tt.key, found)
		}
	}
	s := memory.New()
	if _, err := s.Put(t.Context(), term.KeyWorker("web", 0), term.Record{V: 1, Term: 1}.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	found, _ := examined(t, s, time.Now)
	wantFinding(t, found, "pool web, record", wrong, "the record of the pool is missing or unreadable, and it has 1 worker")
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
		"ok    pool web, workers: 0 to 1023: 1 held, 0 falling free, 1023 free\n", "; now that would be ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("not %q in\n%s", want, out)
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
