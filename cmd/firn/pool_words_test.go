package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/store/sqlite"
)

// follows types a command, wants an error with a text, and types each command of the hints
// that begins with one of the words.
func follows(t *testing.T, typed, says, begins string) (errs string) {
	t.Helper()
	_, errs, code := called(t, strings.Fields(typed)...)
	if code == 0 || !strings.Contains(errs, says) {
		t.Errorf("%s: exit code %d, want %q in: %s", typed, code, says, errs)
	}
	typedAny := false
	for _, told := range toldCommands(errs) {
		if begins == "" || !strings.HasPrefix(strings.Join(told, " "), begins) {
			continue
		}
		typedAny = true
		if _, again, code := called(t, told...); code != 0 {
			t.Errorf("%s: the hint %q is refused: %s", typed, strings.Join(told, " "), again)
		}
	}
	if !typedAny && begins != "" {
		t.Errorf("%s: no hint says %s: %s", typed, begins, errs)
	}
	return errs
}

// mustAll runs commands that have to succeed.
func mustAll(t *testing.T, commands ...string) {
	t.Helper()
	for _, one := range commands {
		if _, errs, code := called(t, strings.Fields(one)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", one, code, errs)
		}
	}
}

// A pool that firn.yaml does not list is not told to be missing from the store, and the hint
// says where to add it.
func TestPoolThatTheFileDoesNotList(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "pool create --new --workers 0-15", "pool create b --new --workers 16-31")
	write(t, dir, "firn.yaml", "pools: { fresh: {} }\n")
	follows(t, "next", "to use one of these, add it under pools of firn.yaml: pools: { b: {} }, then name it: --pool b", "")
	follows(t, "next --pool b", `error: --pool: firn.yaml does not list pool "b"; it lists: fresh`+"\n"+
		"firn: hint: to use pool b of the store, add it under pools of firn.yaml: pools: { b: {} }\n", "")
	t.Setenv("FIRN_POOL", "b")
	follows(t, "next", `error: FIRN_POOL: firn.yaml does not list pool "b"`, "")
	write(t, dir, "firn.yaml", "pools: { fresh: {}, b: {} }\n")
	mustAll(t, "next")
}

// What to leave out is what was said, and where.
func TestLayoutIsLeftOutWhereItWasSaid(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "pool create --new")
	follows(t, "pool ensure --layout js53", "hint: leave out --layout to use the pool's", "")
	t.Setenv("FIRN_LAYOUT", "js53")
	follows(t, "pool ensure", "hint: leave out FIRN_LAYOUT to use the pool's", "")
	os.Unsetenv("FIRN_LAYOUT")
	write(t, dir, "firn.yaml", "pools: { default: { layout: classic } }\n")
	follows(t, "pool ensure", "hint: leave out layout of firn.yaml:1 to use the pool's", "")
	write(t, dir, "firn.yaml", "pools: { default: { workers: 5000-6000 } }\n")
	follows(t, "pool ensure", "error: firn.yaml:1: workers begin at 5000", "")
}

// A pool never gets a longer outage budget than it was created with.
func TestOutageAboveThePools(t *testing.T) {
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "pool create --new")
	write(t, dir, "firn.yaml", "pools: { default: { outage: 10m } }\n")
	const hint = "hint: set outage of firn.yaml:1 to 5m or less: a pool never gets a longer outage than it was created with\n"
	follows(t, "next", hint, "")
	follows(t, "pool ensure", hint, "pool ensure")
	os.Remove(filepath.Join(dir, "firn.yaml"))
	follows(t, "next --outage 10m", strings.Replace(hint, "outage of firn.yaml:1", "--outage", 1), "")
	mustAll(t, "pool create short --new --workers 0-0 --may-repeat default --outage 1m")
	if errs := follows(t, "pool ensure short --outage 10m", "set --outage to 1m or less", ""); strings.Contains(errs, "firn pool ensure") {
		t.Errorf("a command that is refused: %s", errs)
	}
}

// A pool whose record was lost is created with the workers that it had.
func TestLostPoolGetsItsWorkersBack(t *testing.T) {
	path := filepath.Join(emptyHome(t), "ids.db")
	t.Setenv("FIRN_STORE", "sqlite:"+path)
	mustAll(t, "pool create --new --workers 0-15", "pool create b --new --workers 16-1023", "next")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lose := func() {
		t.Helper()
		if n, err := db.Exec("DELETE FROM record WHERE key = ?", term.KeyPool("default")); err != nil {
			t.Fatal(n, err)
		}
		if err := sqlite.Restored(t.Context(), path, func(*sqlite.Store) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	lose()
	const with = "only if there is no backup, with the layout and the workers that the pool had: firn pool ensure default --workers 0-15"
	follows(t, "next --pool default", with, "pool ensure")
	lose()
	errs := follows(t, "pool ensure default", "which the other pools leave to it: firn pool ensure default --workers 0-15", "pool ensure")
	if strings.Contains(errs, "pool set") {
		t.Error(errs)
	}
	if out, _, _ := called(t, "pool", "show", "b"); !strings.Contains(out, "16-1023") {
		t.Errorf("pool b was changed: %s", out)
	}
}

// What a pool is created with where it is there already is not what it is ensured with.
func TestCreateHintsWhatThePoolHas(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "pool create --new")
	for _, flags := range []string{"--workers 0-15", "--layout js53", "--outage 10m", "--layout js53 --workers 0-15 --outage 10m --new"} {
		follows(t, "pool create "+flags, "exists already", "pool ensure")
	}
}

// Of many that ensure a pool at once, one created it.
func TestEnsuredOnce(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "pool create other --new --workers 1023-1023")
	var all sync.WaitGroup
	texts := make([]string, 10)
	for i := range texts {
		all.Go(func() {
			var code int
			if _, texts[i], code = called(t, "pool", "ensure", "--workers", "0-7"); code != 0 {
				t.Errorf("exit code %d: %s", code, texts[i])
			}
		})
	}
	all.Wait()
	if said := strings.Join(texts, ""); strings.Count(said, `pool "default" created`) != 1 || strings.Count(said, "was there already") != len(texts)-1 {
		t.Error(said)
	}
}

// Where the hidden file says that there was a store, no hint asks for the case that there
// never was one.
func TestLostFileWasThere(t *testing.T) {
	path := filepath.Join(emptyHome(t), "ids.db")
	t.Setenv("FIRN_STORE", "sqlite:"+path)
	mustAll(t, "next")
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		os.Remove(name)
	}
	for _, typed := range []string{"pool ls", "pool show", "worker ls"} {
		errs := follows(t, typed, "only if the file and all its copies are lost, and it was not moved: firn store recover", "")
		if strings.Contains(errs, "never was one") {
			t.Errorf("%s: %s", typed, errs)
		}
	}
	os.Remove(filepath.Join(filepath.Dir(path), ".ids.db.id"))
	follows(t, "pool ls", "only if there never was one", "")
}

// firn store recover makes a file only where it is told to.
func TestRecoverHelpIsTrue(t *testing.T) {
	out, _, _ := called(t, "store", "recover", "--help")
	if strings.Contains(out, "created where there is none") || !strings.Contains(out, "--lost") {
		t.Error(out)
	}
}

// A pool that was lost with its range gets the workers that firn.yaml or the command names.
// Where nobody names them, the hint says that the pool then has all.
func TestEnsureSaysWhichWorkers(t *testing.T) {
	const all = "with all workers of the layout: if the pool had fewer, name them in that command"
	dir := emptyHome(t)
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "ids.db"))
	mustAll(t, "pool create other --layout js53 --new --workers 15-15")
	for _, typed := range []string{"next", "pool create"} {
		follows(t, typed, all, "")
	}
	if out, _, _ := called(t, "doctor", "--pool", "default"); !strings.Contains(out, all) {
		t.Errorf("doctor says %s", out)
	}
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(dir, "second.db"))
	mustAll(t, "pool create other --new --workers 1023-1023")
	write(t, dir, "firn.yaml", "pools: { default: { workers: 0-31 } }\n")
	if errs := follows(t, "next", "firn pool ensure default (ids start about 5 min later; add --outage if any process had an outage budget of more than 5 min)", "pool ensure"); strings.Contains(errs, all) {
		t.Error(errs)
	}
	if out, _, _ := called(t, "pool", "show"); !strings.Contains(out, "0-31") {
		t.Errorf("the pool has other workers: %s", out)
	}
}

// A pool of another layout than one that had every worker gets none of them: the hint leads to
// a pool that is created.
func TestPoolOfAnotherLayoutBesideAFullOne(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	mustAll(t, "pool create --new")
	follows(t, "pool create shop --layout classic --workers 0-31 --new", "--layout firn --new, because the pools of that layout had every worker", "pool")
	if out, errs, code := called(t, "pool", "show", "shop"); code != 0 || !strings.Contains(out, "512-1023") {
		t.Errorf("%s%s", out, errs)
	}
}

// A pool is not widened over workers that another one had with another layout, and no hint has
// its reader narrow the other one in vain. Of the same layout it gets them.
func TestWideningOverAPoolOfAnotherLayout(t *testing.T) {
	t.Setenv("FIRN_STORE", "sqlite:"+filepath.Join(emptyHome(t), "ids.db"))
	refused := func(typed string, want ...string) {
		t.Helper()
		_, errs, code := called(t, strings.Fields(typed)...)
		for _, text := range want {
			if code != ui.ExitFailed || !strings.Contains(errs, text) {
				t.Errorf("firn %s: exit code %d, not %q: %s", typed, code, text, errs)
			}
		}
	}
	mustAll(t, "pool create --workers 64-255 --new", "pool create shop --layout classic --workers 0-31 --new", "pool create web --workers 32-63 --new")
	refused("pool set shop --workers 0-127", "both would use workers 64-127", "default has another layout, so its workers stay its own, also those that it gives up\n")
	mustAll(t, "pool set --workers 128-255", "pool set web --workers 32-127", "pool set web --workers 96-127")
	refused("pool set shop --workers 0-95", "which had workers 64-95 with another layout", "take workers that no pool ever had: shop does not get these\n")
}

// TestShowOutage: pool show offers a longer budget only where a process gets it.
func TestShowOutage(t *testing.T) {
	zero := int64(0)
	for _, tt := range []struct {
		outage, limit float64 // seconds
		want          string
	}{
		{300, 300, "ids continue for 5m; a process may ask for 5m at most\n"},
		{300, 600, "ids continue for 5m; a process may ask for 10m at most\n"},
		{60, 60, "ids continue for 1m; a process may ask for 1m at most\n"},
		{3, 300, "ids continue for 3s\n"},
	} {
		l := poolLine{Held: &zero, Free: &zero, Unusable: &zero, Outage: tt.outage, OutageLimit: tt.limit}
		var out strings.Builder
		if err := l.show(&out, false); err != nil || !strings.Contains(out.String(), "  "+tt.want) {
			t.Errorf("%v: %v\n%s", tt, err, &out)
		}
	}
}
