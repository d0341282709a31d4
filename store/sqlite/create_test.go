package sqlite

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ids.db")
	s := mustOpen(t, path)
	must(t, s.Close())
	must(t, s.Close())
	expectFiles(t, dir, ".ids.db.id", "ids.db")
	for name, want := range map[string]fs.FileMode{"ids.db": 0o600, ".ids.db.id": 0o644} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Mode() != want {
			t.Errorf("%s has mode %v, %v", name, fi.Mode(), err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, ".ids.db.id"))
	if err != nil || !strings.Contains(string(b), s.id) || !strings.Contains(string(b), "firn store recover") {
		t.Errorf("%s, %v", b, err)
	}
	db := rawDB(t, path)
	for pragma, want := range map[string]string{
		"application_id": fmt.Sprint(0x6669726e), "user_version": "2", "journal_mode": "wal", "encoding": "UTF-8",
	} {
		var got string
		if err := db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, %v, not %s", pragma, got, err, want)
		}
	}
	// In the journal's directory entry too, the file is one user's.
	s = mustOpen(t, path)
	if _, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	for _, j := range s.at.journals()[:2] {
		if fi, err := os.Stat(j); err != nil || fi.Mode() != 0o600 {
			t.Errorf("%s has mode %v, %v", j, fi.Mode(), err)
		}
	}
}

// TestCreateNames opens paths that mean something to URLs, SQL or the shell.
func TestCreateNames(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "a dir"), 0o700))
	for _, name := range []string{
		"a b.db", "a?mode=ro", "a#b", "a%41", "a&b=c", "a;b", "a'b", `a"b`, "a:b", "file:x", ":memory:", "é☃.db", "-", ".hidden", "a dir/x",
	} {
		path := dir + "/" + name
		s := mustOpen(t, path)
		_, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
		must(t, err)
		must(t, s.Close())
		if fi, err := os.Stat(path); err != nil || fi.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
		s = mustOpen(t, dir+"/./"+name)
		if l, err := s.List(t.Context(), ""); err != nil || len(l) != 1 {
			t.Errorf("%s: %v, %v", name, l, err)
		}
		must(t, s.Close())
	}
}

// TestRelative refuses what is another file in each working directory.
func TestRelative(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	t.Chdir(dir)
	_, inspected := Inspect("ids.db")
	for what, err := range map[string]error{
		"Open": openError("ids.db"), "Restored": Restored(t.Context(), "ids.db", nothing), "Inspect": inspected,
	} {
		if err == nil || !strings.Contains(err.Error(), `"ids.db" is a relative path`) || strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v; want an error that leads to no other file", what, err)
		}
	}
	expectFiles(t, dir)
	// One that is there is named.
	must(t, mustOpen(t, filepath.Join(dir, "ids.db")).Close())
	if err := openError("./ids.db"); !strings.Contains(err.Error(), fmt.Sprintf("the one in this directory is %q", filepath.Join(dir, "ids.db"))) {
		t.Error(err)
	}
}

// TestOpenEnded: a ctx that has ended creates nothing.
func TestOpenEnded(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, filepath.Join(dir, "ids.db")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	expectFiles(t, dir)
}

// TestCreateByLink creates where a link leads that leads nowhere yet.
func TestCreateByLink(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	must(t, os.Symlink("real/ids.db", filepath.Join(dir, "one")))
	must(t, os.Symlink("one", filepath.Join(dir, "two")))
	must(t, os.Symlink("real", filepath.Join(dir, "other")))
	for _, name := range []string{"two", "one", "real/ids.db", "other/ids.db"} {
		s := mustOpen(t, filepath.Join(dir, name))
		_, err := s.Put(t.Context(), "k/"+name, []byte(`1`), store.Condition{})
		must(t, err)
		must(t, s.Close())
	}
	expectFiles(t, filepath.Join(dir, "real"), ".ids.db.id", "ids.db")
	if l, err := mustOpen(t, filepath.Join(dir, "one")).List(t.Context(), ""); err != nil || len(l) != 4 {
		t.Errorf("by four names: %v, %v", l, err)
	}
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	if _, err := Open(context.Background(), filepath.Join(dir, "loop")); err == nil || !strings.Contains(err.Error(), "symbolic links") {
		t.Errorf("a loop: %v", err)
	}
}

// TestCreateCrashed opens what is left where a creation ended early.
func TestCreateCrashed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.db")
	s := mustOpen(t, path)
	_, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	must(t, s.Close())

	// Before the file had its name: a new store, and the rest does no harm.
	crashed := filepath.Join(t.TempDir(), "ids.db")
	copyFile(t, path, filepath.Join(filepath.Dir(crashed), ".ids.db.new-0123456789abcdef"))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(crashed), ".ids.db.new-1123456789abcdef"), nil, 0o600))
	if l, err := mustOpen(t, crashed).List(t.Context(), ""); err != nil || len(l) != 0 {
		t.Errorf("crashed before the link: %v, %v", l, err)
	}

	// Before the sidecar: nobody was handed the file, so it has no records, and the
	// sidecar is written now.
	crashed = filepath.Join(t.TempDir(), "ids.db")
	s = mustOpen(t, crashed)
	must(t, s.Close())
	must(t, os.Remove(s.at.sidecar()))
	again := mustOpen(t, crashed)
	works(t, again)
	if again.id != s.id {
		t.Errorf("crashed before the sidecar: store %s, not %s", again.id, s.id)
	}
	must(t, again.Close())
	remove(t, path)
	_, err = Open(context.Background(), path)
	isForgotten(t, path, "removed after a crashed creation", err)
}

// TestCreateRemoved removes the file between its creation and the sidecar: no
// order of events lets two processes have different stores and both go on.
func TestCreateRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.db")
	at, err := locate(path)
	must(t, err)

	// The one who created is slow, and another creates anew.
	must(t, at.create())
	slow, err := at.attach(t.Context())
	must(t, err)
	defer slow.Close()
	losses["rm ids.db*"](t, path)
	other := mustOpen(t, path)
	isForgotten(t, path, "the slow one", slow.settle(t.Context()))
	if _, err := other.Put(t.Context(), "k", []byte(`1`), store.Condition{}); err != nil {
		t.Errorf("the one after: %v", err)
	}
	if side, err := at.readSidecar(); err != nil || side.Store != other.id {
		t.Errorf("the sidecar is about %+v, %v", side, err)
	}
}

// TestCreateRace opens and removes at random, in one process.
func TestCreateRace(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "ids.db")
		var mu sync.Mutex
		alive := make(map[string]int)
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(time.Millisecond)
			os.Remove(path)
		})
		for range 8 {
			wg.Go(func() {
				s, err := Open(context.Background(), path)
				if err != nil {
					isForgotten(t, path, "Open", err)
					return
				}
				defer s.Close()
				time.Sleep(2 * time.Millisecond) // for the removal to be over
				if _, err := s.Get(t.Context(), "k"); err != nil {
					isForgotten(t, path, "Get", err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				alive[s.id]++
			})
		}
		wg.Wait()
		if len(alive) > 1 {
			t.Fatalf("%v stores are in use at one path", alive)
		}
	}
}

// TestCreateSlept: a file that was not there and a sidecar that is do not mean
// that the file was removed, if both came in between.
func TestCreateSlept(t *testing.T) {
	path, _ := store1(t)
	at, err := locate(path)
	must(t, err)
	looks := 0
	there, left, err := at.look(func() (bool, error) { looks++; return looks > 1, nil })
	if !there || left != "" || err != nil || looks != 2 {
		t.Errorf("%t, %q, %v after %d looks", there, left, err, looks)
	}
}

// TestCreateSidecars: of two stores that come to write the sidecar, the second
// to do so is the one that stops.
func TestCreateSidecars(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.db")
	at, err := locate(path)
	must(t, err)
	must(t, at.create())
	slow, err := at.attach(t.Context())
	must(t, err)
	defer slow.Close()
	side, err := slow.describe(t.Context())
	must(t, err)
	losses["rm ids.db*"](t, path)
	other := mustOpen(t, path)
	if err := at.addSidecar(side); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second sidecar: %v", err)
	}
	isForgotten(t, path, "the slow one", slow.settle(t.Context()))
	works(t, other)
	works(t, mustOpen(t, path))
}

// fingerprint is everything about a directory that somebody could notice.
func fingerprint(tb testing.TB, dir string) string {
	tb.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %v", path, fi.Mode(), fi.ModTime())
		if fi.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(content))
		}
		b.WriteByte('\n')
		return nil
	})
	must(tb, err)
	return b.String()
}

// TestLeftName: a creator that died left its temporary name, and a later one can
// open the store all the same.
func TestLeftName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.db")
	at, err := locate(path)
	must(t, err)
	must(t, at.create())
	must(t, os.Link(path, at.temporary()))
	must(t, openError(path))
}

// TestForeign opens what is not a store, and leaves it alone.
func TestForeign(t *testing.T) {
	write := func(content string) func(testing.TB, string) {
		return func(tb testing.TB, path string) { must(tb, os.WriteFile(path, []byte(content), 0o600)) }
	}
	foreign := func(queries ...string) func(testing.TB, string) {
		return func(tb testing.TB, path string) {
			must(tb, os.WriteFile(path, nil, 0o600))
			db := rawDB(tb, path)
			do(tb, db, queries...)
			must(tb, db.Close())
		}
	}
	changed := func(queries ...string) func(testing.TB, string) {
		return func(tb testing.TB, path string) {
			at, err := locate(path)
			must(tb, err)
			must(tb, at.create())
			db := rawDB(tb, path)
			do(tb, db, queries...)
			must(tb, db.Close())
		}
	}
	for _, c := range []struct {
		name string
		make func(tb testing.TB, path string)
		want string
	}{
		{"empty", write(""), "is empty and was not made by firn"},
		{"text", write("hello, world\n"), "not a SQLite database"},
		{"long text", write(strings.Repeat("hello, world\n", 1000)), "not a SQLite database"},
		{"a header only", write("SQLite format 3\x00"), "not a SQLite database"},
		{"another program's", foreign("CREATE TABLE t (x)"), "SQLite database of another program (application_id 0x0, not 0x6669726e)"},
		{"another program's, empty", foreign("PRAGMA user_version = 1"), "of another program"},
		{"another program's in WAL mode", foreign("PRAGMA journal_mode = WAL", "CREATE TABLE t (x)"), "of another program"},
		{"a newer one", changed("PRAGMA user_version = 3"), "written by a newer firn (user_version 3, this one knows 2)"},
		{"no version", changed("PRAGMA user_version = 0"), "user_version is 0"},
		{"another id", changed("PRAGMA application_id = 1"), "of another program"},
		{"one of two names", func(tb testing.TB, path string) {
			changed()(tb, path)
			must(tb, os.Link(path, filepath.Join(tb.TempDir(), "other.db")))
		}, "has 2 names (hard links)"},
		{"one of two names, beside what a dead creator left", func(tb testing.TB, path string) {
			changed()(tb, path)
			must(tb, os.Link(path, filepath.Join(tb.TempDir(), "other.db")))
			at, err := locate(path)
			must(tb, err)
			must(tb, os.WriteFile(at.temporary(), nil, 0o600))
		}, "has 2 names (hard links)"},
		{"a directory", func(tb testing.TB, path string) { must(tb, os.Mkdir(path, 0o700)) }, "is a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ids.db")
			c.make(t, path)
			before := fingerprint(t, filepath.Dir(path))
			for what, err := range map[string]error{"Open": openError(path), "Restored": Restored(t.Context(), path, nothing)} {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: %v, not about %q", what, err, c.want)
				}
			}
			if after := fingerprint(t, filepath.Dir(path)); before != after {
				t.Errorf("changed:\n%s\n%s", before, after)
			}
		})
	}
}

func openError(path string) error {
	s, err := Open(context.Background(), path)
	if err == nil {
		s.Close()
	}
	return err
}

// TestForeignInUse opens another program's file with a journal that it has not
// yet worked off.
func TestForeignInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.db")
	must(t, os.WriteFile(path, nil, 0o600))
	db := rawDB(t, path)
	do(t, db, "PRAGMA journal_mode = WAL", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
	before := fingerprint(t, filepath.Dir(path))
	if err := openError(path); err == nil || !strings.Contains(err.Error(), "of another program") {
		t.Error(err)
	}
	if after := fingerprint(t, filepath.Dir(path)); before != after {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
	var x int
	if err := db.QueryRow("SELECT x FROM t").Scan(&x); err != nil || x != 1 {
		t.Error(x, err)
	}
}

func TestSidecarDamaged(t *testing.T) {
	for content, want := range map[string]string{
		"":                           "is damaged",
		"{}":                         "is damaged",
		`{"v":1}`:                    "is damaged",
		`{"v":2,"store":"x"}`:        "written by a newer firn (format 2",
		`{"v":1,"store":"x","inode"`: "is damaged",
	} {
		path, _ := store1(t)
		at, err := locate(path)
		must(t, err)
		must(t, os.WriteFile(at.sidecar(), []byte(content), 0o600))
		if err := openError(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), at.sidecar()) {
			t.Errorf("%q: %v", content, err)
		}
		must(t, Restored(t.Context(), path, nothing))
		must(t, openError(path))
	}
}

// TestNoWAL opens a store whose journal mode somebody changed.
func TestNoWAL(t *testing.T) {
	path, r := store1(t)
	db := rawDB(t, path)
	do(t, db, "PRAGMA journal_mode = DELETE")
	must(t, db.Close())
	s := mustOpen(t, path)
	p, err := s.Durability(t.Context())
	if err != nil || !strings.Contains(p.Why, "journal_mode=wal synchronous=full") {
		t.Errorf("%+v, %v", p, err)
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
}
