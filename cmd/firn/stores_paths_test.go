package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A relative path counts from a place that stays: of a firn.yaml its folder, of a
// command line the directory where it is typed, of a variable nothing does.
func TestRelativeStores(t *testing.T) {
	dir := emptyHome(t)
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "a/firn.yaml", "store: sqlite:ids.db\n")
	t.Chdir(filepath.Join(dir, "b"))

	if _, errs, code := called(t, "next", "--config", "../a/firn.yaml"); code != 0 {
		t.Fatal(errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "ids.db")); err != nil {
		t.Errorf("a path of firn.yaml: %v", err)
	}
	if _, errs, code := called(t, "next", "--store", "sqlite:./here.db"); code != 0 {
		t.Fatal(errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "b", "here.db")); err != nil {
		t.Errorf("a path of the command line: %v", err)
	}

	t.Setenv("FIRN_STORE", "sqlite:of-variable.db")
	_, errs, code := called(t, "next")
	want := "firn: hint: FIRN_STORE=sqlite:" + filepath.Join(dir, "b", "of-variable.db")
	if code != exitUsage || !strings.Contains(errs, want) {
		t.Errorf("FIRN_STORE: exit code %d, %s; want %q", code, errs, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "b", "of-variable.db")); err == nil {
		t.Error("FIRN_STORE: the file was made")
	}
}
