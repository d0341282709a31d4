package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

// copyFile makes a new file, with the content of another.
func copyFile(tb testing.TB, from, to string) {
	tb.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// losses are ways to lose the database at path, in a directory that has
// "backup.db", a copy of it made while nobody had it open, and "other.db",
// another store.
var losses = map[string]func(tb testing.TB, path string){
	"removed": remove,
	"removed with its journals": func(tb testing.TB, path string) {
		for _, name := range []string{path, path + "-wal", path + "-shm"} {
			if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
				tb.Fatal(err)
			}
		}
	},
	"rm ids.db*": func(tb testing.TB, path string) {
		names, err := filepath.Glob(path + "*")
		must(tb, err)
		for _, name := range names {
			must(tb, os.Remove(name))
		}
	},
	"moved away":         func(tb testing.TB, path string) { must(tb, os.Rename(path, path+".moved")) },
	"a backup moved in":  func(tb testing.TB, path string) { must(tb, os.Rename(beside(path, "backup.db"), path)) },
	"another store":      func(tb testing.TB, path string) { must(tb, os.Rename(beside(path, "other.db"), path)) },
	"not a database":     func(tb testing.TB, path string) { replaceFile(tb, path, "hello") },
	"an empty file":      func(tb testing.TB, path string) { replaceFile(tb, path, "") },
	"removed and copied": func(tb testing.TB, path string) { remove(tb, path); copyFile(tb, beside(path, "backup.db"), path) },
}

func beside(path, name string) string { return filepath.Join(filepath.Dir(path), name) }

func replaceFile(tb testing.TB, path, content string) {
	tb.Helper()
	must(tb, os.WriteFile(path+".tmp", []byte(content), 0o600))
	must(tb, os.Rename(path+".tmp", path))
}

// store1 makes a store with a record, a backup of it and another store, and
// returns the path and the record.
func store1(tb testing.TB) (string, store.Record) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "ids.db")
	s := mustOpen(tb, path)
	r, err := s.Put(tb.Context(), "k", []byte(`1`), store.Condition{})
	must(tb, err)
	must(tb, s.Close())
	copyFile(tb, path, beside(path, "backup.db"))
	must(tb, mustOpen(tb, beside(path, "other.db")).Close())
	return path, r
}

func isForgotten(tb testing.TB, path, when string, err error) {
	tb.Helper()
	var forgot *store.ForgotError
	if !errors.As(err, &forgot) {
		tb.Errorf("%s: %v, not a ForgotError", when, err)
	} else if forgot.Store != "sqlite:"+path {
		tb.Errorf("%s: the error is about %s", when, forgot.Store)
	}
}

func TestGoneWhileOpen(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			path, r := store1(t)
			s := mustOpen(t, path)
			next, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
			must(t, err)
			lose(t, path)
			before := files(t, filepath.Dir(path))
			for range 2 {
				_, err = s.Get(t.Context(), "k")
				isForgotten(t, path, "Get", err)
				tried, err := s.Put(t.Context(), "k", []byte(`3`), store.Condition{Version: next.Version})
				isForgotten(t, path, "Put", err)
				if tried.Version != "" {
					t.Error("Put sent something")
				}
				_, err = s.Put(t.Context(), "k", []byte(`3`), store.Condition{})
				isForgotten(t, path, "Put that would conflict", err)
				_, err = s.List(t.Context(), "")
				isForgotten(t, path, "List", err)
				_, err = s.Durability(t.Context())
				isForgotten(t, path, "Durability", err)
			}
			must(t, s.Close())
			expectFiles(t, filepath.Dir(path), before...)
		})
	}
}

func TestGoneBeforeOpen(t *testing.T) {
	for name, lose := range losses {
		for _, open := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", with journals"}[open], func(t *testing.T) {
				path, r := store1(t)
				if open { // so that there are journals
					_, err := mustOpen(t, path).Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
					must(t, err)
				}
				old, err := identify(path)
				must(t, err)
				lose(t, path)
				if now, err := identify(path); err == nil && now.Inode == old.Inode {
					t.Logf("the inode number is the same again: %v, %v", old, now)
				}
				before := files(t, filepath.Dir(path))
				for range 2 {
					_, err := Open(context.Background(), path)
					isForgotten(t, path, "Open", err)
				}
				expectFiles(t, filepath.Dir(path), before...)
			})
		}
	}
}

// TestGoneDuringPut loses the file between the look at the path and the commit:
// the Put is carried out, in a file that nobody else can see.
func TestGoneDuringPut(t *testing.T) {
	for name, lose := range losses {
		for _, conflict := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				path, r := store1(t)
				s := mustOpen(t, path)
				cond := store.Condition{Version: r.Version}
				if conflict {
					cond.Version = store.NewVersion()
				}
				done := false
				s.now = func() time.Time { // called when the transaction has begun
					if !done {
						lose(t, path)
						done = true
					}
					return time.Now()
				}
				tried, err := s.Put(t.Context(), "k", []byte(`2`), cond)
				isForgotten(t, path, "Put", err)
				if (tried.Version == "") != conflict {
					t.Errorf("Put tried %q", tried.Version)
				}
			})
		}
	}
}

// TestGoneAndBack moves the file away and back: it may have been written since.
func TestGoneAndBack(t *testing.T) {
	path, _ := store1(t)
	s := mustOpen(t, path)
	must(t, os.Rename(path, path+".away"))
	_, err := s.Get(t.Context(), "k")
	isForgotten(t, path, "away", err)
	must(t, os.Rename(path+".away", path))
	_, err = s.Get(t.Context(), "k")
	isForgotten(t, path, "back", err)
	// It is the same file, so whoever opens it now has the store.
	works(t, mustOpen(t, path))
}

// TestReadBefore: Read is not later than the record was looked at.
func TestReadBefore(t *testing.T) {
	path, r := store1(t)
	s := mustOpen(t, path)
	begin, calls := time.Now().UTC().Round(0), time.Duration(0)
	s.now = func() time.Time { calls++; return begin.Add(calls * time.Hour) }
	got, err := s.Get(t.Context(), "k")
	if err != nil || !got.Read.Equal(begin.Add(time.Hour)) || !got.Written.Equal(r.Written) {
		t.Errorf("%+v, %v", got, err)
	}
	// Of a record written in that moment it is as late as the write.
	calls = 0
	next, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
	must(t, err)
	calls = -1
	got, err = s.Get(t.Context(), "k")
	if err != nil || !next.Written.Equal(begin.Add(time.Hour)) || !got.Read.Equal(next.Written) {
		t.Errorf("written %v, read %v, %v", next.Written, got.Read, err)
	}
}

// TestGoneByLink turns the link by which the store was opened to another one.
func TestGoneByLink(t *testing.T) {
	path, _ := store1(t)
	link := beside(path, "link.db")
	must(t, os.Symlink("ids.db", link))
	s := mustOpen(t, link)
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 1 {
		t.Fatalf("by a link: %v, %v", l, err)
	}
	direct := mustOpen(t, path)
	must(t, os.Remove(link))
	must(t, os.Symlink("other.db", link))
	_, err := s.Get(t.Context(), "k")
	isForgotten(t, link, "Get", err)
	if _, err := direct.Get(t.Context(), "k"); err != nil {
		t.Errorf("not by the link: %v", err)
	}
}

// TestGoneDirectory removes everything: the open Store notices, and a new one is
// new, as documented.
func TestGoneDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	path := filepath.Join(dir, "ids.db")
	must(t, os.Mkdir(dir, 0o700))
	s := mustOpen(t, path)
	must(t, os.RemoveAll(dir))
	_, err := s.Get(t.Context(), "k")
	isForgotten(t, path, "Get", err)
	var lost *MissingDirectoryError
	_, err = Open(context.Background(), path)
	if !errors.As(err, &lost) || lost.Path != path || lost.Dir != dir {
		t.Fatalf("Open without a directory: %v", err)
	}
	for _, text := range []string{"another path", "not mounted", "firn store recover --store sqlite:" + path + " --lost", "only if there never was a store: mkdir -p " + dir} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v; want %q", err, text)
		}
	}
	must(t, os.Mkdir(dir, 0o700))
	mustOpen(t, path)
	_, err = s.Get(t.Context(), "k")
	isForgotten(t, path, "Get with a new store at the path", err)
	if _, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{}); err == nil {
		t.Error("Put with a new store at the path")
	}
}

// TestOverwritten writes another store into the same file, which changes neither
// inode nor birth.
func TestOverwritten(t *testing.T) {
	path, _ := store1(t)
	b, err := os.ReadFile(beside(path, "other.db"))
	must(t, err)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	must(t, err)
	_, err = f.Write(b)
	must(t, err)
	must(t, f.Close())
	_, err = Open(context.Background(), path)
	isForgotten(t, path, "Open", err)
	if err == nil || !strings.Contains(err.Error(), "holds store") {
		t.Error(err)
	}
}

// TestChangedId changes the id inside the open file.
func TestChangedId(t *testing.T) {
	for _, q := range []string{"UPDATE store SET id = 'other'", "DELETE FROM store"} {
		path, r := store1(t)
		s := mustOpen(t, path)
		_, err := s.Get(t.Context(), "k")
		must(t, err)
		do(t, rawDB(t, path), q)
		_, err = s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
		isForgotten(t, path, "Put after "+q, err)
		_, err = s.Get(t.Context(), "k")
		isForgotten(t, path, "Get after "+q, err)
		must(t, s.Close())
	}
}

// nothing is what a protocol without records has to raise.
func nothing(*Store) error { return nil }

// recovered accepts what is at path, or makes an empty database if nothing is.
func recovered(t *testing.T, path string, raise func(*Store) error) error {
	if _, err := os.Stat(path); missing(err) {
		return CreateLost(t.Context(), path, raise)
	}
	return Restored(t.Context(), path, raise)
}

// TestRestoredHalfway: a file is not accepted before everything was raised.
func TestRestoredHalfway(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ids.db")
	must(t, openError(path))
	must(t, os.Rename(path, filepath.Join(dir, "old.db")))
	var forgot *store.ForgotError
	failed := errors.New("no power")
	err := recovered(t, path, func(s *Store) error {
		_, err := s.Put(t.Context(), "k", []byte("{}"), store.Condition{})
		must(t, err)
		if err := openError(path); !errors.As(err, &forgot) {
			t.Errorf("while it is restored: %v", err)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if err := openError(path); !errors.As(err, &forgot) {
		t.Errorf("after half of it: %v", err)
	}
	must(t, Restored(t.Context(), path, nothing))
	must(t, openError(path))
}

func TestRestored(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			path, r := store1(t)
			lose(t, path)
			err := recovered(t, path, nothing)
			if strings.HasPrefix(name, "not a") || strings.HasPrefix(name, "an empty") {
				if err == nil {
					t.Error("Restored accepts what is not a store")
				}
				return
			}
			must(t, err)
			s := mustOpen(t, path)
			got, err := s.Get(t.Context(), "k")
			must(t, err)
			if back := strings.Contains(name, "backup") || strings.Contains(name, "copied"); back != (got.Version == r.Version) {
				t.Errorf("the store has %+v", got)
			}
			_, err = s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: got.Version})
			must(t, err)
			must(t, s.Close())
			must(t, mustOpen(t, path).Close())
			checkIntegrity(t, path)
		})
	}
}

// TestRestoredOldHandle: a Store on the file that was lost stays lost, and does
// no harm to the new one, even on closing.
func TestRestoredOldHandle(t *testing.T) {
	path, r := store1(t)
	old := mustOpen(t, path)
	_, err := old.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
	must(t, err)
	remove(t, path)
	must(t, recovered(t, path, nothing))

	s := mustOpen(t, path)
	first, err := s.Put(t.Context(), "k", []byte(`3`), store.Condition{})
	must(t, err)
	_, err = old.Get(t.Context(), "k")
	isForgotten(t, path, "the old handle", err)
	must(t, old.Close())
	second, err := s.Put(t.Context(), "k", []byte(`4`), store.Condition{Version: first.Version})
	must(t, err)
	later := mustOpen(t, path)
	if got, err := later.Get(t.Context(), "k"); err != nil || got.Version != second.Version {
		t.Errorf("a new handle has %+v, %v", got, err)
	}
	must(t, s.Close())
	must(t, later.Close())
	checkIntegrity(t, path)
	expectFiles(t, filepath.Dir(path), ".ids.db.id", ".other.db.id", "backup.db", "ids.db", "ids.db-shm.old", "ids.db-wal.old", "other.db")
}

// TestRestoredUnderJournal: a backup beside the journal of the file it replaces.
func TestRestoredUnderJournal(t *testing.T) {
	path, r := store1(t)
	s := mustOpen(t, path)
	_, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
	must(t, err)
	copyFile(t, path+"-wal", beside(path, "wal"))
	must(t, s.Close())
	must(t, os.Rename(beside(path, "wal"), path+"-wal"))
	must(t, os.Rename(beside(path, "backup.db"), path))
	before, err := os.ReadFile(path)
	must(t, err)
	if err := Restored(t.Context(), path, nothing); err == nil || !strings.Contains(err.Error(), path+"-wal is beside the file") {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || string(before) != string(after) {
		t.Error("Restored changed the file it refused")
	}
	must(t, os.Remove(path+"-wal"))
	must(t, os.WriteFile(path+"-shm", make([]byte, 32<<10), 0o600)) // nobody's, and no reason to stop
	must(t, recovered(t, path, nothing))
	if got, err := mustOpen(t, path).Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("restored: %+v, %v", got, err)
	}
}

// TestLeftJournal: without database and sidecar, a journal alone is evidence.
func TestLeftJournal(t *testing.T) {
	path, r := store1(t)
	s := mustOpen(t, path)
	_, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
	must(t, err)
	copyFile(t, path+"-wal", beside(path, "wal"))
	must(t, s.Close())
	remove(t, path)
	must(t, os.Remove(s.at.sidecar()))
	must(t, os.Rename(beside(path, "wal"), path+"-wal"))

	_, err = Open(context.Background(), path)
	isForgotten(t, path, "Open", err)
	must(t, recovered(t, path, nothing))
	s = mustOpen(t, path)
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 0 {
		t.Errorf("a new store has %v, %v", l, err)
	}
	checkIntegrity(t, path)
}

// TestJournalGone takes a journal away under an open Store, as somebody does who
// believes that it is a left-over.
func TestJournalGone(t *testing.T) {
	for _, suffix := range []string{"-wal", "-shm"} {
		for _, replaced := range []bool{false, true} {
			path, r := store1(t)
			s := mustOpen(t, path)
			r, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
			must(t, err)
			if replaced {
				replaceFile(t, path+suffix, "")
			} else {
				must(t, os.Remove(path+suffix))
			}
			_, err = s.Put(t.Context(), "k", []byte(`3`), store.Condition{Version: r.Version})
			isForgotten(t, path, "Put", err)
			says(t, err, path+suffix, "was removed while it was open")
			must(t, s.Close())
			err = openError(path)
			isForgotten(t, path, "Open", err)
			says(t, err, path+suffix, "was removed while it was open")
			must(t, recovered(t, path, nothing))
			works(t, mustOpen(t, path))
		}
	}
}

// TestHang holds a Put up where the disk would.
func TestHang(t *testing.T) {
	path, r := store1(t)
	s := mustOpen(t, path)
	release := make(chan struct{})
	s.now = func() time.Time { <-release; return time.Now() }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	tried, err := s.Put(ctx, "k", []byte(`2`), store.Condition{Version: r.Version})
	if !errors.Is(err, context.DeadlineExceeded) || tried.Version == "" {
		t.Errorf("%+v, %v", tried, err)
	}
	close(release)
	// Close waits for it.
	must(t, s.Close())
	if got, err := mustOpen(t, path).Get(t.Context(), "k"); err != nil || got.Version != tried.Version {
		t.Errorf("it went on and was carried out, but there is %+v, %v", got, err)
	}
	if _, err := s.Get(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Get after Close: %v", err)
	}
	must(t, s.Close())
}
