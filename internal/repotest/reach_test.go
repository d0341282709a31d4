package repotest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPagesAreFound follows links from the README: a page that none leads to is read by
// nobody. A link to a directory leads to what is in it.
func TestPagesAreFound(t *testing.T) {
	found := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		if found[path] {
			return
		}
		found[path] = true
		if info, err := os.Stat(path); err != nil || info.IsDir() || filepath.Ext(path) != ".md" {
			return
		}
		for _, m := range link.FindAllStringSubmatch(prose(t, path), -1) {
			if target, _, _ := strings.Cut(m[1], "#"); target != "" && !strings.Contains(target, ":") {
				visit(filepath.Join(filepath.Dir(path), target))
			}
		}
	}
	visit(filepath.Join(root, "README.md"))
	files(t, ".md", func(path string) {
		if strings.HasPrefix(path, filepath.Join(root, "docs")) && !found[path] && !found[filepath.Dir(path)] {
			t.Errorf("%s: no link leads to it from README.md", path)
		}
	})
}
