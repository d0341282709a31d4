package shortfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/shortfile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, n int) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), n), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, n := range []int{0, 5, shortfile.Max} {
		if b, err := shortfile.Read(write("short", n)); err != nil || len(b) != n {
			t.Errorf("a file of %d bytes: %d bytes, %v", n, len(b), err)
		}
	}
	if _, err := shortfile.Read(write("long", shortfile.Max+1)); err == nil || !strings.Contains(err.Error(), "longer than 16 MiB") {
		t.Errorf("a long file: %v", err)
	}
	if _, err := shortfile.Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := shortfile.Read(dir); err == nil {
		t.Error("a directory is read")
	}
}
