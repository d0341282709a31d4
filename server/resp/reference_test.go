package resp

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/reference/redis.md has each command with its summary, and each word that an error of this package
// begins with.
func TestPageOfCommands(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z.]+)` \\|").FindAllStringSubmatch(string(b), -1) {
		rows = append(rows, m[1])
	}
	for i, c := range allCommands {
		if i >= len(rows) || rows[i] != c.name || !strings.Contains(string(b), "| "+c.summary+" |") {
			t.Errorf("the page lacks %s with its summary, at place %d: %s", c.name, i+1, c.summary)
		}
	}
	words := errorWords(t)
	for _, word := range words {
		if !strings.Contains(string(b), "\n| `"+word+"` | ") {
			t.Errorf("the page lacks the error word %s", word)
		}
	}
	if len(words) < 8 {
		t.Errorf("only these error words were found: %q", words)
	}
}

// errorWords are the first words of the errors in the files of this package.
func errorWords(t *testing.T) (words []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile(`"([A-Z]{3,})(?: [^"]*)?"`)
	calls := regexp.MustCompile(`(?:c\.fail|c\.refuse|Sprintf|code :?=)\(? ?(?:fmt\.Sprintf\()?"[A-Z]{3,}[ "]`)
	for _, f := range files {
		if strings.HasSuffix(f.Name(), "_test.go") || !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range calls.FindAllStringIndex(string(b), -1) {
			line, _, _ := strings.Cut(string(b[at[0]:]), "\n")
			if m := word.FindStringSubmatch(line); m != nil && !slices.Contains(words, m[1]) {
				words = append(words, m[1])
			}
		}
	}
	return words
}
