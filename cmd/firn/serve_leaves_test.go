//go:build !windows

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
)

// countingLines are series that a file of this host creates by itself, in firn.yaml.
const countingLines = "series:\n  photo: { kind: flake }\n  orders: { kind: sequence }\n  invoice: { kind: document, pattern: \"I{1+}\" }\n"

// next draws one value of a series of a server.
func (s *served) next(series string) (string, error) {
	s.t.Helper()
	return s.redis("").Do(s.t.Context(), "FIRN.NEXT", series).Text()
}

// staysAt fails unless a reload is refused, names the store that the server has, offers nothing that
// begins anew, and leaves the counters where they were.
func (s *served) staysAt(url, last string) (next string) {
	s.t.Helper()
	before := len(s.log.String())
	s.reload(notReloaded)
	text := s.log.String()[before:]
	if !strings.Contains(text, " in "+url+": write that store back into the config, then send SIGHUP again") ||
		strings.Contains(text, "created") || strings.Contains(text, "only if it never existed") || strings.Contains(text, "--new") {
		s.t.Errorf("%s", text)
	}
	next, err := s.next("orders")
	if err != nil || next == last || len(next) > 3 || next == "1" {
		s.t.Errorf("after %s orders gives %s, %v", last, next, err)
	}
	return next
}

// A reload creates no pool and no counter in a file that the server does not use: they would begin
// again, and repeat what the server has given.
func TestServeReloadCreatesNothingElsewhere(t *testing.T) {
	t.Parallel()
	home := t.TempDir() + "/a.db"
	for name, url := range map[string]string{
		"from PostgreSQL":    databases(t, testserver.Postgres(t), "elsewhere")[0],
		"from a SQLite file": "sqlite:" + home,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			other := "sqlite:" + dir + "/other.db"
			firnOn(t, other, 0, "next") // which has a pool, and no counter
			write(t, dir, "firn.yaml", "store: "+url+"\n"+countingLines)
			if strings.HasPrefix(url, "postgres:") {
				firnOn(t, url, 0, "pool", "create", "default", "--new")
				firnOn(t, url, 0, "series", "create", "orders", "--kind", "sequence")
				firnOn(t, url, 0, "series", "create", "invoice", "--pattern", "I{1+}")
			}
			s := serve(t, dir)
			s.until("ready", s.ready)
			last := "0"
			for range 3 {
				var err error
				if last, err = s.next("orders"); err != nil {
					t.Fatal(err)
				}
			}
			write(t, dir, "firn.yaml", "store: "+other+"\n"+countingLines)
			last = s.staysAt(url, last)

			// The default file of the user, which is there.
			firnIn(t, t.TempDir(), dir, 0, "next")
			write(t, dir, "firn.yaml", countingLines)
			last = s.staysAt(url, last)

			write(t, dir, "firn.yaml", "store: "+url+"\n"+countingLines)
			s.reload(reloaded)
			if again, err := s.next("orders"); err != nil || again == last || again == "1" {
				t.Errorf("after %s orders gives %s, %v", last, again, err)
			}
			s.stop()
		})
	}
}

// A sequence that takes the place of another in firn.yaml may be that one by a new name, which would begin
// again at its first number: a reload creates it only after somebody has created it by its name.
func TestServeReloadCreatesNoRenamedSequence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	head := "store: sqlite:" + dir + "/a.db\nseries:\n  photo: { kind: flake }\n"
	write(t, dir, "firn.yaml", head+"  orders: { kind: sequence }\n  tickets: { kind: sequence }\n  receipt: { kind: document, pattern: \"R{6}\" }\n")
	s := serve(t, dir)
	s.until("ready", s.ready)
	if n, err := s.next("orders"); err != nil || n != "1" {
		t.Fatalf("orders gives %s, %v", n, err)
	}
	refused := func(series string, want ...string) {
		t.Helper()
		before := len(s.log.String())
		write(t, dir, "firn.yaml", head+series)
		s.reload(notReloaded)
		for _, text := range append(want, "; then send SIGHUP to this server again") {
			if !strings.Contains(s.log.String()[before:], text) {
				t.Errorf("the log does not say %q:\n%s", text, s.log.String()[before:])
			}
		}
		if list := firnOn(t, "sqlite:"+dir+"/a.db", 0, "series", "ls"); strings.Contains(list, "purchases") {
			t.Errorf("the reload that was refused has created a counter:\n%s", list)
		}
	}
	refused("  purchases: { kind: sequence }\n  tickets: { kind: sequence }\n",
		`the store has no sequence \"purchases\", and this server has served a sequence from it that firn.yaml does not list now: orders`,
		"if orders was renamed or is mistyped: write orders in firn.yaml again, in place of purchases. A counter keeps its name",
		"only if purchases never existed: firn series create purchases")
	refused("  purchases: { kind: sequence }\n",
		"and this server has served sequences from it that firn.yaml does not list now: orders, tickets",
		"if one of them was renamed or is mistyped: write its name in firn.yaml again, in place of purchases. A counter keeps its name")

	// A sequence that leaves, one that comes back, and a document with texts of its own are not refused.
	bill := "  bill: { kind: document, pattern: \"B{6}\" }\n"
	write(t, dir, "firn.yaml", head+bill)
	s.reload(reloaded)
	refused("  purchases: { kind: sequence }\n"+bill, "that firn.yaml does not list now: orders, tickets")
	write(t, dir, "firn.yaml", head+"  orders: { kind: sequence }\n  tickets: { kind: sequence }\n"+bill)
	s.reload(reloaded)
	write(t, dir, "firn.yaml", head+"  orders: { kind: sequence }\n  tickets: { kind: sequence }\n  items: { kind: sequence }\n"+bill)
	s.reload(reloaded)

	write(t, dir, "firn.yaml", head+"  purchases: { kind: sequence }\n")
	firnIn(t, dir, dir, 0, "series", "create", "purchases")
	s.reload(reloaded)
	if n, err := s.next("purchases"); err != nil || n != "1" {
		t.Errorf("purchases gives %s, %v", n, err)
	}
	s.stop()
}

// A file that a server uses and that has lost what the server gives is not begun again by a
// reload, whatever lost it. A series that is new in firn.yaml is created there.
func TestServeReloadBeginsNoSeriesAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const head = "store: sqlite:a.db\n"
	write(t, dir, "firn.yaml", head+countingLines)
	s := serve(t, dir)
	s.until("ready", s.ready)
	for range 3 {
		if _, err := s.next("orders"); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "firn.yaml", head+countingLines+"  bills: { kind: sequence }\n")
	s.reload(reloaded)
	if id, err := s.next("bills"); err != nil || id != "1" {
		t.Errorf("bills gives %s, %v", id, err)
	}

	// Another file with its hidden file takes the place of the one that the server has open.
	firnOn(t, "sqlite:"+dir+"/b.db", 0, "next")
	for _, name := range []string{"a.db", "a.db-wal", "a.db-shm", ".a.db.id"} {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, "was"+name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"b.db": "a.db", ".b.db.id": ".a.db.id"} {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	s.until("the store ended", func() bool { return strings.Contains(s.log.String(), "nothing is given any more") })
	s.reload(notReloaded)
	for _, name := range []string{"orders", "bills", "invoice"} {
		if id, err := s.next(name); err == nil {
			t.Errorf("%s gives %s", name, id)
		}
	}
	s.stop()
}

// firnIn runs firn in a directory, for a user of that home who names no store.
func firnIn(t *testing.T, dir, home string, want int, args ...string) string {
	t.Helper()
	p := command(t, "", args...)
	p.Dir = dir
	p.Env = append(p.Env, "FIRN_STORE="+isUnset, "HOME="+home)
	var out bytes.Buffer
	p.Stdout = &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != want {
		t.Errorf("%v: exit code %d, want %d: %s%s", args, code, want, &out, p.errs.String())
	}
	return out.String() + p.errs.String()
}

// A reload that is refused creates no counter, whatever refuses it.
func TestServeRefusedReloadCreatesNothing(t *testing.T) {
	dir := t.TempDir()
	config := func(more string) {
		write(t, dir, "firn.yaml", "store: sqlite:ids.db\nseries:\n  photo: { kind: flake, pool: default }\n  invoice: { kind: document, pattern: \"INV-{6}\" }\n"+more+"pools: { default: {}, missing: {} }\n")
	}
	config("")
	s := serve(t, dir)
	t.Chdir(dir)
	const fresh = "  a: { kind: sequence }\n  b: { kind: sequence }\n  c: { kind: document, pattern: \"C-{6}\" }\n"
	for _, bad := range []string{
		"  extra: { kind: flake, pool: missing }\n",                             // a pool that the file lacks
		"  other: { kind: sequence, stores: [sqlite:no.db, sqlite:none.db] }\n", // stores that are not there
	} {
		config(fresh + bad)
		s.reload(notReloaded)
		out, errs, code := called(t, "series", "ls")
		made := strings.Contains(out, "C-{6}")
		for line := range strings.Lines(out) {
			made = made || strings.Contains(line, "sequence") && !strings.Contains(line, ": there is no store sqlite:")
		}
		if code != 0 || made {
			t.Errorf("after a refusal of%s%s%s", bad, out, errs)
		}
	}
	config(fresh)
	s.reload(reloaded)
	if n, err := s.redis("").Do(t.Context(), "INCR", "a").Int(); err != nil || n != 1 {
		t.Errorf("a begins with %d, %v", n, err)
	}
	s.stop()
}

// A reload to a file that is not there says so once, however many series use it.
func TestServeReloadSaysAMissingFileOnce(t *testing.T) {
	dir := t.TempDir()
	config := func(file string) {
		write(t, dir, "firn.yaml", "store: sqlite:"+file+"\nseries:\n  photo: { kind: flake }\n  orders: { kind: sequence }\n")
	}
	config("ids.db")
	s := serve(t, dir)
	config("away.db")
	s.reload(notReloaded)
	if n := strings.Count(s.log.String(), "there is no store"); n != 1 {
		t.Errorf("%d times:\n%s", n, s.log)
	}
	s.stop()
}

// A reload that needs a store which is away says to send the signal again, and that leads on.
func TestServeReloadWhileTheStoreIsAway(t *testing.T) {
	pg := testserver.Postgres(t)
	url := databases(t, pg, "app")[0]
	firnOn(t, url, 0, "series", "create", "orders", "--kind", "sequence")
	firnOn(t, url, 0, "series", "create", "bills", "--kind", "sequence")
	dir := t.TempDir()
	write(t, dir, "firn.yaml", "store: "+url+"\nseries:\n  "+ordersLine)
	s := serve(t, dir)
	pg.Stop(t)
	write(t, dir, "firn.yaml", "store: "+url+"\nseries:\n  "+ordersLine+"  bills: { kind: sequence }\n")
	s.reload(notReloaded)
	if !strings.Contains(s.log.String(), "when the store answers, send SIGHUP to this server again") {
		t.Errorf("no hint:\n%s", s.log)
	}
	pg.Start(t)
	s.until("it is reloaded", func() bool {
		s.signal(syscall.SIGHUP)
		time.Sleep(time.Second)
		return strings.Contains(s.log.String(), reloaded)
	})
	if n, err := s.redis("").Do(t.Context(), "INCR", "bills").Int(); err != nil || n != 1 {
		t.Errorf("bills begins with %d, %v", n, err)
	}
	s.stop()
}

// Two documents that could give the same texts are not both created, though a server opens them at the
// same time: as by firn series create, the second is refused.
func TestServeCreatesNoEqualDocuments(t *testing.T) {
	const equal = "  bills: { kind: document, pattern: \"R-{4}\" }\n  rechnung: { kind: document, pattern: \"R-{4}\" }\n"
	const head = "store: sqlite:ids.db\nseries:\n  photo: { kind: flake }\n"
	const refused = "with pattern R-{4} could repeat texts of series"
	for range 5 {
		dir := t.TempDir()
		write(t, dir, "firn.yaml", head+equal)
		p := serving(t, dir)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Second, func() { p.Process.Kill() })
		if code := p.code(t); code != 1 || !strings.Contains(p.log.String(), refused) {
			t.Fatalf("exit code %d: %s", code, p.log)
		}
	}
	dir := t.TempDir()
	write(t, dir, "firn.yaml", head)
	s := serve(t, dir)
	firnOn(t, "sqlite:"+dir+"/ids.db", 0, "series", "create", "have", "--pattern", "H-{4}")
	firnOn(t, "sqlite:"+dir+"/ids.db", 0, "series", "create", "count", "--kind", "sequence")
	for _, bad := range []string{
		equal,
		"  bills: { kind: document, pattern: \"R-{4}\" }\n  have: { kind: document, pattern: \"H-{3}\" }\n", // which has another pattern
		"  bills: { kind: document, pattern: \"R-{4}\" }\n  count: { kind: sequence, increment: 7 }\n",      // which has another increment
	} {
		before := len(s.log.String())
		write(t, dir, "firn.yaml", head+bad)
		s.reload(notReloaded)
		if text := s.log.String()[before:]; strings.Contains(text, "created a new counter") {
			t.Errorf("a reload that is refused has created a counter:\n%s", text)
		}
	}
	s.stop()
}
