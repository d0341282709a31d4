package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

// Inspect sees what is there, says what Open would, and makes nothing.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ids.db")
	names := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	inspect := func(forgot, database, sidecar, log bool, left int) {
		t.Helper()
		before := names()
		f, err := sqlite.Inspect(path)
		var e *store.ForgotError
		if (err != nil) != forgot || errors.As(err, &e) != forgot {
			t.Errorf("error %v", err)
		}
		if (f.Database != nil) != database || (f.Sidecar != nil) != sidecar || (f.Log != nil) != log || len(f.Left) != left {
			t.Errorf("%+v", f)
		}
		if f.FileSystem == "" || filepath.Base(f.Path) != "ids.db" {
			t.Errorf("file system %q, path %q", f.FileSystem, f.Path)
		}
		if !slices.Equal(before, names()) {
			t.Errorf("made or removed something: %q", names())
		}
	}

	inspect(false, false, false, false, 0)
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	inspect(false, true, true, true, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	inspect(false, true, true, false, 0)

	if err := os.WriteFile(filepath.Join(dir, ".ids.db.new-0123"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ids.db-wal.old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inspect(false, true, true, false, 2)

	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	inspect(true, false, true, false, 2)
	if err := os.WriteFile(path, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	inspect(true, true, true, false, 2)
	if err := os.Remove(filepath.Join(dir, ".ids.db.id")); err != nil {
		t.Fatal(err)
	}
	inspect(false, true, false, false, 2)
}

func TestInspectErrors(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"", filepath.Join(dir, "no", "ids.db"), dir} {
		if _, err := sqlite.Inspect(path); err == nil {
			t.Errorf("%q: no error", path)
		}
	}
}
