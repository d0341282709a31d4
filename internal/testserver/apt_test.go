//go:build linux

package testserver

import (
	"os"
	"path/filepath"
	"testing"
)

// Absolute links of unpacked packages lead to files of the same packages.
func TestLinkWithin(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"etc/java", "usr/lib/java/conf"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc/java/settings"), []byte("ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"usr/lib/java/conf/absolute": "/etc/java/settings", "usr/lib/java/conf/relative": "../../../../etc/java/settings"}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := linkWithin(root); err != nil {
		t.Fatal(err)
	}
	for name := range links {
		if b, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(b) != "ours" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
