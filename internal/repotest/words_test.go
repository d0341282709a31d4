package repotest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// idioms have to be read twice, and each has a plainer word: continue, permanently, must be, somebody.
var idioms = regexp.MustCompile(`(?i)\b(?:go|goes|going) on\b|\bfor good\b|\bat any rate\b|\b(?:is|are) to be\b|\bmay be had\b|\bhas to be said\b|\blooked at\b|\bwhoever\b|\bthere is none\b|, of which\b`)

// TestPlainWords holds the worst idioms out of the pages that people read, and so out of help, which is a page too.
// Decisions are arguments, and the table of mutants has the names of rules.
func TestPlainWords(t *testing.T) {
	for _, root := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "examples"} {
		err := filepath.WalkDir(filepath.Join("../..", root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() == "decisions" {
				return errorOrSkip(err)
			}
			if filepath.Ext(path) != ".md" || d.Name() == "mutants.md" {
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			printed := false // in a block that shows what a program prints
			for i, line := range strings.Split(string(b), "\n") {
				if language, fence := strings.CutPrefix(line, "```"); fence {
					printed = !printed && language != "text"
				}
				if found := idioms.FindString(line); found != "" && !printed {
					t.Errorf("%s:%d: %q has a plainer word: %s", path, i+1, found, line)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// errorOrSkip leaves out a directory, unless something failed.
func errorOrSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}
