package resp

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/golden"
)

// TestGoldenWords: the first words of errors, by which clients tell them apart, are those of version
// 0.1.0. The words are read from the source: an error that no test provokes has one too.
func TestGoldenWords(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	errorWord := regexp.MustCompile(`(?:\b(?:fail|refuse)\(|\bSprintf\(|\bcode :?= |\bwhy = fmt\.Sprintf\()(?:fmt\.Sprintf\()?"([A-Z]{2,})[ "]`)
	var words []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range errorWord.FindAllSubmatch(text, -1) {
			words = append(words, string(found[1]))
		}
	}
	slices.Sort(words)
	golden.Same(t, "testdata/0.1.0/words.txt", []byte(strings.Join(slices.Compact(words), "\n")+"\n"),
		"Clients of a released version know these words. A word that is new: say so in CHANGELOG.md and add testdata/NEW-VERSION/words.txt. One that is gone or has another meaning breaks clients. Not released yet: FIRN_GOLDEN=write writes the file anew.")
}
