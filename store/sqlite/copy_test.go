package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// used makes a store with a record in dir, and returns its path.
func used(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "ids.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "k", []byte("1"), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// copied copies files into a new directory, and returns the path of the first.
func copied(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(name)), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, filepath.Base(names[0]))
}

func idFile(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".id")
}

// refused opens a file that may be one of two copies: it must be refused, by an
// error that every caller takes for the end, and again the next time.
func refused(t *testing.T, what, path string) {
	t.Helper()
	for range 2 {
		s, err := sqlite.Open(t.Context(), path)
		var forgot *store.ForgotError
		var copied *sqlite.CopyError
		switch {
		case err == nil:
			s.Close()
			t.Fatalf("%s: opened", what)
		case !errors.As(err, &forgot) || forgot.Store != "sqlite:"+path:
			t.Fatalf("%s: %v, which is no ForgotError of this store", what, err)
		case !errors.As(err, &copied) || copied.Path != path:
			t.Errorf("%s: %v, which is no CopyError", what, err)
		}
		if _, err := sqlite.Inspect(path); !errors.As(err, &copied) {
			t.Errorf("%s: Inspect says %v", what, err)
		}
	}
}

func opens(t *testing.T, what, path string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer s.Close()
	if r, err := s.Get(t.Context(), "k"); err != nil || r.Version == "" {
		t.Errorf("%s: %+v, %v", what, r, err)
	}
}

// TestCopies: two copies of a store would give the same ids, so each copy that can
// be told from the original is refused.
func TestCopies(t *testing.T) {
	path := used(t, t.TempDir())
	refused(t, "cp ids.db", copied(t, path))
	refused(t, "cp -a of the directory", copied(t, path, idFile(path)))
	opens(t, "the original", path)

	// While the original is open: what is in its journal too.
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "l", []byte("1"), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	refused(t, "cp ids.db in use", copied(t, path))
	refused(t, "cp ids.db* in use", copied(t, path, path+"-wal"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMoved: the same file in another place is no copy, if its hidden file is
// there too. The advice of the error is what makes it work.
func TestMoved(t *testing.T) {
	path := used(t, t.TempDir())
	to := filepath.Join(t.TempDir(), "ids.db")
	if err := os.Rename(path, to); err != nil {
		t.Fatal(err)
	}
	refused(t, "mv ids.db", to)
	_, err := sqlite.Open(t.Context(), to)
	if err == nil || !strings.Contains(err.Error(), idFile(to)) {
		t.Fatalf("%v: does not name the hidden file", err)
	}
	if err := os.Rename(idFile(path), idFile(to)); err != nil {
		t.Fatal(err)
	}
	opens(t, "mv of both", to)

	// A new name in the same directory: the error says which hidden file it had.
	renamed := filepath.Join(filepath.Dir(to), "other.db")
	if err := os.Rename(to, renamed); err != nil {
		t.Fatal(err)
	}
	refused(t, "mv ids.db other.db", renamed)
	var copy *sqlite.CopyError
	if _, err := sqlite.Open(t.Context(), renamed); !errors.As(err, &copy) || copy.Left != idFile(to) || copy.Sidecar != idFile(renamed) {
		t.Fatalf("%+v", copy)
	}
	if _, err := sqlite.Open(t.Context(), copied(t, renamed)); !errors.As(err, &copy) || copy.Left != "" {
		t.Errorf("a copy of it: %+v", copy)
	}
	if err := os.Rename(idFile(to), idFile(renamed)); err != nil {
		t.Fatal(err)
	}
	opens(t, "mv of both to another name", renamed)
	to = renamed

	// The other way round: a copy, and the hidden file of the original moved to it.
	there := copied(t, to)
	if err := os.Rename(idFile(to), idFile(there)); err != nil {
		t.Fatal(err)
	}
	refused(t, "a copy with the hidden file of the original", there)
	refused(t, "the original without its hidden file", to)
}

// TestCopyRecovered: what Restored accepts is opened again, and no other copy is.
func TestCopyRecovered(t *testing.T) {
	path := used(t, t.TempDir())
	one, other := copied(t, path), copied(t, path, idFile(path))
	if err := sqlite.Restored(t.Context(), one, func(*sqlite.Store) error { return nil }); err != nil {
		t.Fatal(err)
	}
	opens(t, "the recovered copy", one)
	refused(t, "the other copy", other)
	refused(t, "a copy of the recovered copy", copied(t, one, idFile(one)))
}

// TestRestoredMakesNoFile: where no file is, it may have been moved, and another one would
// make its ids again.
func TestRestoredMakesNoFile(t *testing.T) {
	path := used(t, t.TempDir())
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{path, filepath.Join(t.TempDir(), "never.db")} {
		err := sqlite.Restored(t.Context(), gone, func(*sqlite.Store) error { return errors.New("a store was made") })
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "there is no file at "+gone) {
			t.Errorf("%v", err)
		}
		if _, err := os.Lstat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", gone, err)
		}
	}
}

// TestNewIsNoCopy: many that open a new file at once, some of which find it before
// its hidden file is there, and by then others may have written records.
func TestNewIsNoCopy(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "ids.db")
		var done sync.WaitGroup
		for range 8 {
			done.Go(func() {
				s, err := sqlite.Open(context.Background(), path)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if _, err := s.Put(context.Background(), "k", []byte("1"), store.Condition{}); err != nil && !errors.Is(err, store.ErrConflict) {
					t.Error(err)
				}
			})
		}
		done.Wait()
	}
}
