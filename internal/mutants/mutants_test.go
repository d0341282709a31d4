package mutants

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/sim"
	"github.com/firn-id/firn/internal/testserver"
)

func root(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// TestTexts: each rule is where the table says, and no two mutants have one name.
func TestTexts(t *testing.T) {
	names := map[string]bool{}
	for _, m := range All {
		if names[m.Name] {
			t.Errorf("%q is there twice", m.Name)
		}
		names[m.Name] = true
		if _, err := m.sources(root(t)); err != nil {
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

// TestFound: the simulation finds that a rule is missing, of a lease, of numbers and of documents;
// make full looks for one of a lossy store and of a pool too. The command in run looks for all.
func TestFound(t *testing.T) {
	search, err := NewSearch(t.Context(), root(t), 200)
	if err != nil {
		t.Fatal(err)
	}
	defer search.Close()
	for i, name := range []string{
		"a term's base ignores the record's horizon",
		"a span in doubt is settled without its version",
		"a document's grant begins one count low",
		"the quarantine is 100 ms short",
		"a pool that the store may have lost starts at once",
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			if i >= 3 {
				testserver.OnlyLong(t)
			}
			m, ok := Named(name)
			if !ok {
				t.Fatal("there is no such mutant")
			}
			found, err := search.Find(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if found == "" {
				t.Fatal("not found in 200 schedules")
			}
			t.Log(found)
		})
	}
}

// TestFoundOfPages: each rule of a shared page is missed when it is taken out.
func TestFoundOfPages(t *testing.T) {
	search, err := NewSearch(t.Context(), root(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer search.Close()
	for i, m := range pages {
		t.Run(strings.ReplaceAll(m.Name, " ", "-"), func(t *testing.T) {
			if i >= 3 {
				testserver.OnlyLong(t)
			}
			found, err := search.Find(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if found == "" {
				t.Fatal("not found")
			}
			t.Log(found)
		})
	}
}
