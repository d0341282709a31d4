package repotest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The one rule stands where somebody decides which store and which pool a program uses. A
// test of the command looks for it in the help of firn pool.
func TestTheRule(t *testing.T) {
	const rule = "Ids that must never be equal come from one pool of one store"
	for path, within := range map[string]int{ // lines from the first
		"README.md":                    20,
		"lease/lease.go":               25,
		"pool/pool.go":                 25,
		"docs/guides/stores.md":        80,
		"docs/guides/kubernetes.md":    40,
		"docs/guarantees.md":           40,
		"docs/guides/configuration.md": 80,
	} {
		b, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(b), "\n")
		text := strings.NewReplacer("**", "", "//", "", "#", "", ">", "").Replace(strings.Join(lines[:min(within, len(lines))], " "))
		if !strings.Contains(strings.Join(strings.Fields(text), " "), rule) {
			t.Errorf("%s: not in the first %d lines: %s", path, within, rule)
		}
	}
}
