//go:build linux

package siege

import (
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/torture/ledger"
	"github.com/firn-id/firn/pool"
)

// This file has each of the ways that hints show, where a siege takes one by chance, and
// grants of five minutes, where those of a siege are short. The pool's ids start above all
// that was ever granted, which is looked at instead of waited for.

// A mishap befalls a store while a process issues from it.
type mishap struct {
	name string
	do   func(t *testing.T, w *world)
}

func removeAll(t *testing.T, w *world, where string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.path+"?mode=rw&_pragma=busy_timeout(30000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "DELETE FROM record "+where); err != nil {
		t.Fatal(err)
	}
}

var mishaps = []mishap{
	{"the file is removed", func(t *testing.T, w *world) { remove(t, w.path, w.path+"-wal", w.path+"-shm") }},
	{"an earlier copy is put in its place", func(t *testing.T, w *world) {
		remove(t, w.path+"-wal", w.path+"-shm")
		rename(t, w.dir+"/early", w.path)
	}},
	{"an earlier copy is copied over the file", func(t *testing.T, w *world) {
		early, err := os.ReadFile(w.dir + "/early")
		if err == nil {
			err = os.WriteFile(w.path, early, 0o600) // as cp does: the same file, beside its log
		}
		if err != nil {
			t.Fatal(err)
		}
	}},
	{"the pool's record is removed", func(t *testing.T, w *world) { removeAll(t, w, "WHERE key = 'pool/default'") }},
	{"the pool's record and half of the others are removed", func(t *testing.T, w *world) {
		removeAll(t, w, "WHERE key <> 'pool/default/worker/0'")
	}},
}

// followed has the nth command of each hint typed. It returns how many there were to choose
// from at most.
func (l *mishap) followed(t *testing.T, w *world, nth int) (most int) {
	t.Helper()
	p := w.start(launch{args: []string{"-outage", "5m", "-renew", "100ms"}})
	p.await(ledger.Opened)
	granted := func() time.Time { at, _ := w.highest(); return at }
	eventually(t, "its grant is as long as any", func() bool { return time.Until(granted()) > 4*time.Minute })
	l.do(t, w)
	var drawn []Issuer
	o := &operator{
		tb: t, url: w.url, home: t.TempDir(), choose: func(int) int { return nth },
		stop:    func() {}, // p goes on, as one that nobody knows of
		numbers: func() int64 { return 1_000_000 },
		drew:    func(ids Issuer) { drawn = append(drawn, ids) },
	}
	o.follow(draws)
	t.Logf("typed %q", o.typed)
	if at, ok := o.starts(); !ok || !at.After(granted()) {
		t.Errorf("ids start at %s, and a process was granted up to %s", at, granted())
	}
	p.kill()
	w.check(drawn...)
	return o.most
}

// Something is lost, and each of the commands that hints offer is typed.
func TestHintsAreSafe(t *testing.T) {
	for _, l := range mishaps {
		t.Run(strings.ReplaceAll(l.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			for nth, most := 0, 1; nth < most; nth++ {
				w := newWorld(t, "-hands", "1", "-rate", "200")
				w.found(nil)
				spareEarly(t, w)
				most = min(l.followed(t, w, nth), 4)
			}
		})
	}
	t.Run("a-server-comes-back-empty", func(t *testing.T) {
		t.Parallel()
		if err := testserver.Installed("redis"); err != nil {
			t.Skipf("NOT TESTED: %v", err)
		}
		server := testserver.Redis(t)
		l := mishap{"", func(t *testing.T, _ *world) {
			server.Kill(t)
			server.Wipe(t)
			server.Start(t)
		}}
		for nth, most := 0, 1; nth < most; nth++ {
			w := newWorld(t, "-hands", "1", "-rate", "200")
			w.url = server.URL() + "?assume=durable"
			w.found(nil)
			most = min(l.followed(t, w, nth), 4)
			server.Kill(t)
			server.Wipe(t)
			server.Start(t)
		}
	})
}

// spareEarly makes an early copy of the store.
func spareEarly(t *testing.T, w *world) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.path+"?mode=rw&_pragma=busy_timeout(30000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "VACUUM INTO ?", w.dir+"/early"); err != nil {
		t.Fatal(err)
	}
}

// "firn pool create --new || true" in an entrypoint states a fact. It is refused wherever
// anything is left that says otherwise; where nothing is, only the help can say so.
func TestCreateNewInAnEntrypoint(t *testing.T) {
	t.Parallel()
	for _, l := range mishaps {
		t.Run(strings.ReplaceAll(l.name, " ", "-"), func(t *testing.T) {
			w := newWorld(t, "-hands", "1", "-rate", "200")
			w.found(&pool.Options{})
			spareEarly(t, w)
			p := w.start(launch{})
			p.await(ledger.Opened)
			p.issues(10)
			l.do(t, w)
			r := run(t, append(os.Environ(), "HOME="+t.TempDir()), program(t, "firn"), "pool", "create", "--new", "--store", w.url)
			if r.code == 0 || !strings.Contains(r.errs, "hint: ") {
				t.Errorf("exit code %d: %s%s", r.code, r.out, r.errs)
			}
			p.kill()
			w.check()
		})
	}
	help := run(t, os.Environ(), program(t, "firn"), "pool", "create", "--help").out
	for _, says := range []string{"nothing can notice that", "in an init container or an entrypoint", "firn pool ensure"} {
		if !strings.Contains(help, says) {
			t.Errorf("the help of pool create does not say %q", says)
		}
	}
}
