package repotest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDecisionsAreListed: the list of decisions has each record, under the title that the record has.
func TestDecisionsAreListed(t *testing.T) {
	const dir = "../../docs/decisions"
	list, err := os.ReadFile(filepath.Join(dir, "README.md"))
	records, err2 := filepath.Glob(filepath.Join(dir, "[0-9]*.md"))
	if err != nil || err2 != nil || len(records) == 0 {
		t.Fatal(err, err2, len(records))
	}
	for _, path := range records {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		number := name[:4]
		first, _, _ := strings.Cut(string(text), "\n")
		title, ok := strings.CutPrefix(first, "# "+number+": ")
		if !ok {
			t.Errorf("%s begins with %q, not with \"# %s: \"", path, first, number)
			continue
		}
		if row := fmt.Sprintf("| [%s](%s) | %s | ", number, name, title); !strings.Contains(string(list), "\n"+row) {
			t.Errorf("docs/decisions/README.md has no row that begins with %q", row)
		}
	}
}
