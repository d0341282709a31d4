//go:build linux

package siege

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/torture/ledger"
)

// The file of the store goes away, or becomes another, under a process that
// runs. It stops at once and for good, and nobody can start in its place.
func TestForgotten(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *world){
		"removed": func(t *testing.T, w *world) { remove(t, w.path) },
		"removed with its journals": func(t *testing.T, w *world) {
			remove(t, w.path, w.path+"-wal", w.path+"-shm")
		},
		"journals removed":            func(t *testing.T, w *world) { remove(t, w.path+"-wal", w.path+"-shm") },
		"log removed":                 func(t *testing.T, w *world) { remove(t, w.path+"-wal") },
		"index of the log removed":    func(t *testing.T, w *world) { remove(t, w.path+"-shm") },
		"moved away":                  func(t *testing.T, w *world) { rename(t, w.path, w.path+".old") },
		"replaced by a copy":          func(t *testing.T, w *world) { replace(t, w, read(t, w.path)) },
		"replaced by an earlier copy": func(t *testing.T, w *world) { rename(t, filepath.Join(w.dir, "early"), w.path) },
		"replaced by another store":   func(t *testing.T, w *world) { rename(t, filepath.Join(w.dir, "other"), w.path) },
		"replaced by an empty file":   func(t *testing.T, w *world) { replace(t, w, nil) },
		"replaced by something else":  func(t *testing.T, w *world) { replace(t, w, []byte(strings.Repeat("not a database\n", 1000))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "-hands", "3", "-rate", "1000", "-draw", "mixed")
			spare(t, w)
			p := w.start(launch{})
			p.await(ledger.Opened)
			p.issues(1000)

			place := p.seen()
			lose(t, w)
			begun := now()
			var e ledger.Event
			for range 3 { // hands
				e, place = p.after(place, "calls fail", named(ledger.Failed))
				if e.Kind != ledger.Forgot {
					t.Errorf("hand %d fails with %s", e.Hand, e.Text)
				}
			}
			t.Logf("after %s: %s", round(time.Duration(e.Boot)-begun), e.Text)
			if d := time.Duration(e.Boot) - begun; d > 5*time.Second { // on a busy machine; it looks four times a second
				t.Errorf("it went on for %s", round(d))
			}
			stuck(p)

			// Nobody else gets anything, and nothing is made.
			before := listing(t, w)
			other := w.start(launch{})
			if e := other.await(ledger.Refused); e.Kind != ledger.Forgot {
				t.Errorf("another was refused like this: %s", e.Text)
			}
			other.gone()
			if after := listing(t, w); after != before {
				t.Errorf("what was there before another process came:\n%sand after:\n%s", before, after)
			}
			p.signal(15)
			p.gone()
			w.check()
		})
	}
}

// spare makes copies for later: of the store as it was early, and of another.
func spare(t *testing.T, w *world) {
	t.Helper()
	other := newWorld(t, w.args...)
	for from, to := range map[*world]string{w: "early", other: "other"} {
		p := from.start(launch{})
		p.await(ledger.Opened)
		p.issues(100)
		p.close()
		if err := os.WriteFile(filepath.Join(w.dir, to), read(t, from.path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func remove(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// replace puts a file in the store's place.
func replace(t *testing.T, w *world, b []byte) {
	t.Helper()
	name := w.path + ".new"
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	rename(t, name, w.path)
}

// listing is what the store's directory holds.
func listing(t *testing.T, w *world) string {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(w.path))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "\t%s %x\n", e.Name(), sha256.Sum256(read(t, filepath.Join(filepath.Dir(w.path), e.Name()))))
	}
	return b.String()
}

// The file is removed again and again while processes come up that would make a
// new one, faster than those that had it open can notice.
func TestRemovedWhileOthersStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "-hands", "2", "-rate", "-1", "-draw", "mixed")
	p := w.start(launch{})
	p.await(ledger.Opened)
	p.issues(1000)
	r, barrier, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var others []*proc
	for range 8 {
		others = append(others, w.start(launch{args: []string{"-barrier"}, files: []*os.File{r}}))
	}
	r.Close()
	for _, o := range others {
		o.await(ledger.Started)
	}
	p.stop() // it cannot notice now
	remove(t, w.path, w.path+"-wal", w.path+"-shm")
	barrier.Close()
	for _, o := range others {
		if e := o.await(ledger.Refused); e.Kind != ledger.Forgot {
			t.Errorf("%s was refused like this: %s", o.name, e.Text)
		}
		o.gone()
	}
	p.cont()
	p.after(0, "calls fail", func(e ledger.Event) bool { return e.Event == ledger.Failed && e.Kind == ledger.Forgot })
	w.check()
}

// Where the directory goes with all that is in it, nobody can tell a new store
// from a first one, and whoever comes starts anew. That is not covered. What the
// old one does is: it stops within a second, and nothing repeats after.
func TestDirectoryWiped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "-hands", "2", "-rate", "500")
	p := w.start(launch{})
	p.await(ledger.Opened)
	p.issues(500)
	dir := filepath.Dir(w.path)
	rename(t, dir, dir+".old")
	wiped := now()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	next := w.start(launch{})
	next.await(ledger.Opened)
	e, _ := p.after(0, "calls fail", func(e ledger.Event) bool { return e.Event == ledger.Failed && e.Kind == ledger.Forgot })
	if d := time.Duration(e.Boot) - wiped; d > 5*time.Second {
		t.Errorf("it went on for %s", round(d))
	}
	stuck(p)
	next.issues(500)
	r := w.report()
	t.Logf("in %s %d ids were issued twice", round(time.Duration(e.Boot)-wiped), r.Repeated)
}
