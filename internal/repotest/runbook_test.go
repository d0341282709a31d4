package repotest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	quotedHeading = regexp.MustCompile("(?m)^### `(.+)`$")
	messageBlock  = regexp.MustCompile("(?ms)^```\n(.*?)^```$")
	// changing is what differs from one message to the next: names, numbers, times, lists and addresses.
	changing = regexp.MustCompile(`"[^"]*"|\d{4}-\d\d-\d\dT[\d:]+Z|\b\d+(?:-\d+)?\b|\.\.\.|\([a-z ]+\)|\b[a-z]+://\S+|: [a-z]+, [a-z]+$|firn: error: `)
)

// TestRunbookTexts: each message that the runbook shows is one that firn has. A reader looks for the text that he sees.
func TestRunbookTexts(t *testing.T) {
	const runbook = "../../docs/runbook.md"
	b, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for _, m := range quotedHeading.FindAllStringSubmatch(string(b), -1) {
		messages = append(messages, m[1])
	}
	for _, m := range messageBlock.FindAllStringSubmatch(string(b), -1) {
		messages = append(messages, strings.Split(strings.TrimSpace(m[1]), "\n")...)
	}
	if len(messages) < 10 {
		t.Fatalf("%s shows only these messages: %q", runbook, messages)
	}
	source := sources(t)
	for _, message := range messages {
		for _, part := range changing.Split(message, -1) {
			if part = strings.Trim(part, " :;,"); len(part) > 2 && !strings.Contains(source, part) {
				t.Errorf("%s shows %q, and no source has %q", runbook, message, part)
			}
		}
	}
}

// sources are all Go files of the repository but tests.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
