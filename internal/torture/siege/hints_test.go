//go:build linux

package siege

import (
	"database/sql"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/torture/ledger"
	"github.com/firn-id/firn/pool"
)

// This file has people who follow hints: something is lost, a process is started, and
// what its error says is typed, word by word, until something succeeds. Whatever comes of
// it repeats no id. The pool's ids start above all that was ever granted, which is looked
// at instead of waited for.

// A loss is what befalls a store while a process issues from it.
type loss struct {
	name string
	do   func(t *testing.T, w *world)
	late bool // the ids of the pool start late, whatever is typed; else they may not start
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

var fileLosses = []loss{
	{"the file is removed", func(t *testing.T, w *world) { remove(t, w.path, w.path+"-wal", w.path+"-shm") }, true},
	{"an earlier copy is put in its place", func(t *testing.T, w *world) {
		remove(t, w.path+"-wal", w.path+"-shm")
		rename(t, w.dir+"/early", w.path)
	}, true},
	{"the pool's record is removed", func(t *testing.T, w *world) { removeAll(t, w, "WHERE key = 'pool/default'") }, true},
	{"the pool's record and half of the others are removed", func(t *testing.T, w *world) {
		removeAll(t, w, "WHERE key <> 'pool/default/worker/0'")
	}, true},
}

// commands are what a hint says to type, in its order.
var commands = regexp.MustCompile(`firn (?:pool|store|workers|next)(?: [^\s;,.()]+(?:\.[^\s;,()]+)*)+`)

// claims are flags by which one states what is not so here.
var claims = regexp.MustCompile(`--(new|moved|gone|may-repeat)\b`)

// hinted returns the commands of the hints in what a command printed.
func hinted(errs string) (all []string) {
	for line := range strings.Lines(errs) {
		_, hint, ok := strings.Cut(line, "hint: ")
		if !ok {
			continue
		}
		for _, text := range commands.FindAllString(hint, -1) {
			if !claims.MatchString(text) {
				all = append(all, strings.TrimSpace(text))
			}
		}
	}
	return all
}

// A follower types what hints say.
type follower struct {
	t     *testing.T
	w     *world
	env   []string
	typed []string
}

// types runs a command of a hint.
func (f *follower) types(text string) result {
	f.t.Helper()
	args := strings.Fields(strings.ReplaceAll(text, "'", ""))[1:]
	if !strings.Contains(text, "--store") {
		args = append(args, "--store", f.w.url)
	}
	if strings.HasPrefix(text, "firn store recover") { // as it asks
		args = append(args, "--yes", "--numbers", "1000000")
	}
	f.typed = append(f.typed, "firn "+strings.Join(args, " "))
	return run(f.t, f.env, program(f.t, "firn"), args...)
}

// follow types what the hints say, of several commands the nth where it can, until one
// succeeds. It returns how many there were to choose from at most.
func (f *follower) follow(nth int) (most int) {
	f.t.Helper()
	r := f.types("firn next -n 1000")
	for range 6 {
		all := hinted(r.errs)
		most = max(most, len(all))
		if r.code == 0 || len(all) == 0 {
			break
		}
		r = f.types(all[min(nth, len(all)-1)])
	}
	if r.code != 0 && !strings.Contains(r.errs, "--new") && !strings.Contains(r.errs, "start at") {
		f.t.Errorf("the hints lead nowhere: %q: exit code %d: %s", f.typed, r.code, r.errs)
	}
	return most
}

// starts is when the pool's ids start, as the command says; ok is false where there is no
// pool.
func (f *follower) starts() (at time.Time, ok bool) {
	f.t.Helper()
	r := run(f.t, f.env, program(f.t, "firn"), "pool", "show", "--json", "--store", f.w.url)
	var line struct {
		StartsAt time.Time `json:"starts_at"`
	}
	if r.code != 0 {
		return at, false
	}
	if err := json.Unmarshal([]byte(r.out), &line); err != nil {
		f.t.Fatal(err)
	}
	return line.StartsAt, true
}

// highest is the last instant that a process was ever granted.
func highest(p *proc, l firn.Layout) (at time.Time) {
	for _, e := range p.find(0, named(ledger.Granted)) {
		if h := l.Time(e.Horizon + 1); h.After(at) {
			at = h
		}
	}
	return at
}

func (l *loss) followed(t *testing.T, w *world, nth int) (most int) {
	t.Helper()
	p := w.start(launch{args: []string{"-outage", "5m", "-renew", "100ms"}})
	p.await(ledger.Opened)
	eventually(t, "its grant is as long as any", func() bool { return time.Until(highest(p, w.layout)) > 4*time.Minute })
	l.do(t, w)
	f := &follower{t: t, w: w, env: append(os.Environ(), "HOME="+t.TempDir(), "XDG_STATE_HOME=")}
	most = f.follow(nth)
	t.Logf("typed %q", f.typed)
	if at, ok := f.starts(); ok && l.late && !at.After(highest(p, w.layout)) {
		t.Errorf("ids start at %s, and a process was granted up to %s", at, highest(p, w.layout))
	}
	p.kill()
	w.check()
	return most
}

// Something is lost, and each of the commands that hints offer is typed.
func TestHintsAreSafe(t *testing.T) {
	for _, l := range fileLosses {
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
		l := loss{"", func(t *testing.T, _ *world) {
			server.Kill(t)
			server.Wipe(t)
			server.Start(t)
		}, true}
		for nth, most := 0, 1; nth < most; nth++ {
			w := newWorld(t, "-hands", "1", "-rate", "200")
			w.url = server.URL() + "?promise=strict"
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
	for _, l := range fileLosses {
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
