//go:build linux

package testserver

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSmallDisk: a full disk takes no byte, takes some when there is room again, and goes with the server.
func TestSmallDisk(t *testing.T) {
	s := &Server{dir: t.TempDir()}
	d, err := s.SmallDisk(1 << 20)
	if err != nil {
		if err := note(os.Getenv(envSkips), mount, t.Name()); err != nil { // so that it is seen
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err := d.Fill(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(d.Dir, "file")
	if err := os.WriteFile(file, make([]byte, 100), 0o600); err == nil {
		t.Error("a full disk takes a file")
	}
	if err := d.Free(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, make([]byte, 100), 0o600); err != nil {
		t.Error(err)
	}
	removeDir(s.dir)
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the directory is there still: %v", err)
	}
}
