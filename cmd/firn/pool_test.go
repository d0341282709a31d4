//go:build !windows

package main

import (
	"bytes"
	"context"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// Two commands that name two layouts on one file, and no pool, at once and one after the
// other: one of them is refused, and no id is there twice.
func TestTwoLayoutsOfOneFile(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "ids.db")
	layouts := []string{"twitter", "leaf"}
	var outs, errs [4]bytes.Buffer
	var codes [4]int
	draw := func(i int) {
		p := command(t, db, "next", "-n", "20000", "--layout", layouts[i%2])
		p.Stdout, p.Stderr = &outs[i], &errs[i]
		if err := p.Start(); err != nil {
			t.Error(err)
			return
		}
		codes[i] = p.code(t)
	}
	var both sync.WaitGroup
	both.Go(func() { draw(0) })
	both.Go(func() { draw(1) })
	both.Wait()
	draw(2)
	draw(3)
	seen, refused := map[string]bool{}, 0
	for i := range outs {
		for line := range strings.Lines(outs[i].String()) {
			if seen[line] {
				t.Fatalf("id %s is there twice", line)
			}
			seen[line] = true
		}
		if codes[i] == ui.ExitUsage && strings.Contains(errs[i].String(), `pool "default" has layout `) {
			refused++
		} else if codes[i] != 0 {
			t.Errorf("exit code %d: %s", codes[i], &errs[i])
		}
	}
	if refused != 2 || len(seen) != 40000 {
		t.Errorf("%d refused, %d ids", refused, len(seen))
	}
}

// lateStore is a file with a pool whose ids start an outage budget and some seconds from now.
func lateStore(t *testing.T, outage string) string {
	t.Helper()
	db := filepath.Join(t.TempDir(), "ids.db")
	for _, args := range [][]string{{"pool", "create", "--new", "--outage", outage}, {"store", "recover", "--yes", "--outage", outage}} {
		p := command(t, db, args...)
		if err := p.Run(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, p.errs.String())
		}
	}
	return db
}

// hold waits for a pool that starts later, says so in one line, and begins by itself.
func TestHoldWaitsForItsPool(t *testing.T) {
	t.Parallel()
	db := lateStore(t, "5s") // with less a busy machine renews too late, and the program is stopped
	p := command(t, db, "run", "--", "echo", "runs")
	var out bytes.Buffer
	p.Stdout = &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 0 || out.String() != "runs\n" {
		t.Errorf("exit code %d, %q", code, &out)
	}
	// Where it has its worker some seconds before the ids start, it says that too.
	if !regexp.MustCompile(`^firn: waiting: the ids of pool "default" start at 20\S+Z, in [0-9]+s\n(firn: warning: waiting before the first id: .*\n)?$`).MatchString(p.errs.String()) {
		t.Errorf("it says %q", p.errs.String())
	}
}

// Where --wait says how long, hold waits no longer for its pool, and exits as it does where
// no worker falls free.
func TestHoldWaitsNoLonger(t *testing.T) {
	t.Parallel()
	db := lateStore(t, "1s")
	p := command(t, db, "run", "--wait", "300ms", "--", "echo", "runs")
	var out bytes.Buffer
	p.Stdout = &out
	began := time.Now()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	code, took := p.code(t), time.Since(began)
	if code != exitStopped || out.Len() > 0 || took < 300*time.Millisecond || took > 5*time.Second {
		t.Errorf("exit code %d after %s, %q", code, took, &out)
	}
	if !regexp.MustCompile(`error: the ids of pool "default" start at 20.*\n.*hint: to wait until then: --wait \S+\n$`).MatchString(p.errs.String()) {
		t.Errorf("it says %q", p.errs.String())
	}
}

// A signal ends hold while it waits.
func TestHoldWaitingEnds(t *testing.T) {
	t.Parallel()
	h := startHold(t, lateStore(t, "30s"), nil, "echo", "no")
	await(t, "the line about the wait", func() bool { return strings.Contains(read(t, h.errs), "waiting: ") })
	h.signal(t, syscall.SIGINT)
	if code := h.code(t); code != 130 || read(t, h.out) != "" || !strings.HasSuffix(read(t, h.errs), "\nfirn: interrupted: COMMAND was not started\n") {
		t.Errorf("exit code %d; stderr %q", code, read(t, h.errs))
	}
}

// A server waits for a pool that starts later: it is alive, not ready, and says when.
func TestServeWaitsForItsPool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: sqlite:"+lateStore(t, "1s")+"\npools: { default: { wait: 100ms } }\nseries: { photo: { kind: flake } }\n")
	s := serve(t, dir)
	if code, text := s.get("/readyz"); code != http.StatusServiceUnavailable || !regexp.MustCompile(`start at 20\d\d-\d\d-\d\dT\S+Z`).MatchString(text) {
		t.Errorf("/readyz: %d %s", code, text)
	}
	if code, text := s.get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d %s", code, text)
	}
	s.until("ready", s.ready)
	if code, text := s.do("POST", "/v1/series/photo/next", ""); code != http.StatusOK {
		t.Errorf("next: %d %s", code, text)
	}
	// It has learned the layout that the pool's record says.
	s.until("the layout to be learned", func() bool {
		_, text := s.get("/v1/series/photo")
		return strings.Contains(text, "time:41@1ms")
	})
}

// The number of a host's name counts from the pool's first worker, and may be one that the
// pool does not have.
func TestWorkerByHostname(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	defer func(real func() (string, error)) { hostname = real }(hostname)
	hostname = func() (string, error) { return "shop-600", nil }
	for _, args := range [][]string{{"low", "--workers", "0-511"}, {"high", "--workers", "512-1023"}} {
		if _, errs, code := called(t, append([]string{"pool", "create", "--new"}, args...)...); code != 0 {
			t.Fatal(errs)
		}
	}
	write(t, dir, "host.yaml", "pools: { low: { worker: hostname } }\n")
	for _, args := range [][]string{
		{"next", "--pool", "low", "--worker", "hostname"},
		{"next", "--config", "host.yaml"},
		{"serve", "--config", "host.yaml", "--resp", "127.0.0.1:0", "--http", "off"},
		{"run", "--pool", "low", "--worker", "hostname", "--", "echo"},
		{"doctor", "--config", "host.yaml"},
	} {
		out, errs, code := called(t, args...)
		want := ui.ExitUsage
		if args[0] == "doctor" {
			want = ui.ExitFound
		}
		if code != want || !strings.Contains(out+errs, `host shop-600 asks for worker 600, which is outside pool "low", which has workers 0-511`) {
			t.Errorf("%v: exit code %d: %s%s", args, code, out, errs)
		}
	}
	hostname = func() (string, error) { return "shop-3", nil }
	if _, errs, code := called(t, "next", "--pool", "high", "--worker", "hostname"); code != 0 {
		t.Fatal(errs)
	}
	if out, _, _ := called(t, "worker", "ls", "--pool", "high"); !strings.Contains(out, "high  515 ") {
		t.Errorf("shop-3 of 512-1023 had\n%s", out)
	}
}

// A store that has lost the record of a pool, and not those of its workers: nothing that is
// printed offers to create the pool, and what is offered repeats nothing.
func TestPoolLost(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	firn := func(want int, args ...string) string {
		t.Helper()
		p := command(t, "", append(args, "--store", pg.URL())...)
		p.Env = append(p.Env, "FIRN_STORE="+isUnset)
		var out bytes.Buffer
		p.Stdout = &out
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if code := p.code(t); code != want {
			t.Fatalf("%v: exit code %d, want %d: %s%s", args, code, want, &out, p.errs.String())
		}
		return out.String() + p.errs.String()
	}
	firn(0, "pool", "create", "--new", "--outage", "1s")
	first := firn(0, "next")
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "DELETE FROM firn_records WHERE key = $1", term.KeyPool("default")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"next"}, {"doctor"}, {"pool", "create", "--new"}} {
		want := ui.ExitFailed
		if args[0] == "doctor" {
			want = ui.ExitFound
		}
		if text := firn(want, args...); strings.Contains(text, "pool create") || !strings.Contains(text, "firn pool ensure default") {
			t.Errorf("%v: %s", args, text)
		}
	}
	if _, err := conn.Exec(t.Context(), "CREATE SCHEMA firn; CREATE TABLE firn.shard (shard int); INSERT INTO firn.shard VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	text := firn(0, "store", "recover", "--yes", "--outage", "1s")
	for _, want := range []string{"\nthen: firn pool ensure default --store " + phrase.ShellWord(pg.URL()) + " (", "\nthen: firn shard reopen SERVER ("} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if text := firn(0, "pool", "ensure"); !regexp.MustCompile(`ids start at 20\S+Z, in (5m|4m5)`).MatchString(text) {
		t.Error(text)
	}
	if text := firn(ui.ExitFailed, "next"); !strings.Contains(text, "start at 20") {
		t.Errorf("after %s: %s", first, text)
	}
}

// A copy of a database is another store: it is refused, until somebody says that it was
// moved, or recovers it.
func TestStoreMoved(t *testing.T) {
	t.Parallel()
	pg := testserver.Postgres(t)
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE moved_to"); err != nil {
		t.Fatal(err)
	}
	config := conn.Config()
	here := pg.URL()
	there := strings.Replace(here, "/"+config.Database, "/moved_to", 1)
	firn := func(url string, want int, args ...string) string {
		t.Helper()
		p := command(t, "", args...)
		p.Env = append(p.Env, "FIRN_STORE="+url)
		var out bytes.Buffer
		p.Stdout = &out
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if code := p.code(t); code != want {
			t.Fatalf("%v: exit code %d, want %d: %s%s", args, code, want, &out, p.errs.String())
		}
		return out.String() + p.errs.String()
	}
	firn(here, 0, "pool", "create", "--new")
	firn(here, 0, "next")
	firn(here, 0, "series", "create", "orders", "--kind", "sequence")
	copyRecords(t, here, there)
	refused := [][]string{
		{"next"},
		{"run", "--", "echo"},
		{"serve", "--http", "off", "--resp", "127.0.0.1:0"},
		{"pool", "ensure"},
		{"pool", "ensure", "web"},
		{"pool", "create", "web", "--new"},
		{"pool", "create", "--new"},
		{"pool", "set", "--workers", "0-511"},
		{"worker", "release", "0"},
		{"next", "orders", "--kind", "sequence"},
	}
	looks := [][]string{{"pool", "ls"}, {"pool", "show"}, {"worker", "ls"}, {"series", "ls"}}
	for _, args := range append(refused, looks...) {
		want := ui.ExitFailed
		if len(args) == 2 && args[1] != "ensure" {
			want = 0
		}
		text := firn(there, want, args...)
		recover := strings.Index(text, "hint: only if the other store no longer exists: stop all processes that use this one, then: firn store recover --store ")
		moved := strings.Index(text, "hint: only if the store was moved on purpose, nothing used the old one since the copy, and the old one is gone: firn store recover --store ")
		use := strings.Index(text, "hint: if the other store is still there, use that one")
		if !strings.Contains(text, `pool "default" belongs to another store`) || use < 0 || recover < use || moved < recover {
			t.Errorf("%v: %s", args, text)
		}
	}
	for _, look := range []struct {
		want string
		args []string
	}{
		{" other store", []string{"pool", "ls"}},
		{"state  ", []string{"pool", "show"}},
		{`"state":"other store","this_store":"PostgreSQL system `, []string{"pool", "ls", "--json"}},
		{`"state":"other store","this_store":"PostgreSQL system `, []string{"pool", "show", "--json"}},
	} {
		if text := firn(there, 0, look.args...); !strings.Contains(text, look.want) || !strings.Contains(text, "other store") {
			t.Errorf("%v: %s", look.args, text)
		}
		if text := firn(here, 0, look.args...); strings.Contains(text, "other store") || strings.Contains(text, "warning") {
			t.Errorf("the original: %v: %s", look.args, text)
		}
	}
	found := firn(there, ui.ExitFound, "doctor")
	if !regexp.MustCompile(`(?m)^bad +pool default, store: pool "default" belongs to another store.*use that one.*stop all processes that use this one, then: firn store recover`).MatchString(found) {
		t.Error(found)
	}
	if text := firn(here, 0, "doctor"); strings.Contains(text, "another store") {
		t.Error(text)
	}
	if text := firn(there, ui.ExitUsage, "store", "recover", "--moved"); !strings.Contains(text, "nobody can confirm: Was the store moved on purpose, has nothing used the old one since the copy, and is the old one gone?") {
		t.Error(text)
	}
	if text := firn(there, ui.ExitUsage, "store", "recover", "--numbers", "100"); !strings.Contains(text, "if that one is in use, now or later, both make the same ids") ||
		!strings.Contains(text, "nobody can confirm: Are all processes stopped, and is the store that this one is a copy of lost?") {
		t.Error(text)
	}
	firn(there, ui.ExitUsage, "store", "recover", "--moved", "--yes", "--outage", "10m")
	if text := firn(there, 0, "store", "recover", "--moved", "--yes"); !strings.Contains(text, "pool default: belongs to this store now\n") {
		t.Error(text)
	}
	firn(there, 0, "next")
	if text := firn(there, 0, "store", "recover", "--moved", "--yes"); !strings.Contains(text, "no record had to be changed") {
		t.Error(text)
	}
}

// copyRecords copies all records of a store to an empty one.
func copyRecords(t *testing.T, from, to string) {
	t.Helper()
	a, err := open.URL(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := open.URL(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	list, err := a.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range list {
		if _, err := b.Put(t.Context(), rec.Key, rec.Value, store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing that starts a program creates a pool: in no manifest, unit, image or script of
// the documentation and the examples. After the store was lost it would repeat ids.
func TestNoStartCreatesAPool(t *testing.T) {
	starts := regexp.MustCompile("(?ms)^```(?:yaml|dockerfile|ini|sh|bash)\n(.*?)^```")
	claims := regexp.MustCompile(`pool\W+create|--new\b`)
	check := func(path, text string) {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(strings.TrimSpace(line), "#") && claims.MatchString(line) {
				t.Errorf("%s: %s", path, line)
			}
		}
	}
	files := 0
	for _, root := range []string{"../../docs", "../../examples", "../../README.md"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			switch text := string(data); filepath.Ext(path) {
			case ".md":
				for _, block := range starts.FindAllStringSubmatch(text, -1) {
					check(path, block[1])
				}
			case ".yaml", ".yml", ".service", ".sh", ".conf", "":
				check(path, text)
			default:
				return nil
			}
			files++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 30 {
		t.Errorf("%d files were looked at", files)
	}
	if !claims.MatchString(`args: ["firn", "pool", "create"]`) || !claims.MatchString("command: firn pool create --new || true") {
		t.Error("the check finds nothing")
	}
}

// A hint names a wait that is long enough, and ids then come.
func TestNextWaits(t *testing.T) {
	t.Parallel()
	db := lateStore(t, "1s")
	p := command(t, db, "next", "--wait", "1ms")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	code := p.code(t)
	_, wait, ok := strings.Cut(strings.TrimSpace(p.errs.String()), "hint: to wait until then: --wait ")
	if d, err := time.ParseDuration(wait); code != ui.ExitFailed || !ok || err != nil || d > 20*time.Second {
		t.Fatalf("exit code %d: %s", code, p.errs.String())
	}
	p = command(t, db, "next", "--wait", wait)
	if err := p.Run(); err != nil {
		t.Errorf("--wait %s: %v: %s", wait, err, p.errs.String())
	}
}
