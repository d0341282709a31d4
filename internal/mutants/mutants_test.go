package mutants

import (
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/internal/sim"
)

// TestTexts: each rule is where the table says, and no two mutants have one name.
func TestTexts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range All {
		if names[m.Name] {
			t.Errorf("%q is there twice", m.Name)
		}
		names[m.Name] = true
		if _, err := m.sources(root); err != nil {
			t.Error(err)
		}
		if (m.Package == "") != (m.Tests == "") {
			t.Errorf("%s: Package and Tests belong together", m.Name)
		}
		if _, _, err := sim.Run(t.Context(), sim.Options{N: 1, Like: m.Like}); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}
