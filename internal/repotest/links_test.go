package repotest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	inline  = regexp.MustCompile("`[^`\n]*`")
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks follows every link that stays inside the repository, with its
// anchor. Links that leave it are not followed: a test needs no network.
func TestLinks(t *testing.T) {
	files(t, ".md", func(path string) {
		for _, m := range link.FindAllStringSubmatch(prose(t, path), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") { // a scheme
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link to %s: no such file", path, m[1])
				continue
			}
			if anchor != "" && !anchors(t, file)[anchor] {
				t.Errorf("%s: link to %s: no such heading", path, m[1])
			}
		}
	})
}

// prose is a file without its code.
func prose(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return inline.ReplaceAllString(fence.ReplaceAllString(string(b), ""), "")
}

// anchors are the headings of a file as they are linked to: lower case, without
// punctuation, spaces as hyphens.
func anchors(t *testing.T, path string) map[string]bool {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(string(b), ""), -1) {
		text := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "")
		found[strings.ReplaceAll(text, " ", "-")] = true
	}
	return found
}
