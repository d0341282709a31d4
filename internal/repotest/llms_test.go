package repotest

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updateLLMs = flag.Bool("update", false, "write llms.txt anew")

var (
	fileLink   = regexp.MustCompile(`\]\(([^()#:\s]+)\)`)
	linkText   = regexp.MustCompile(`!?\[([^]]*)\]\([^)]*\)`)
	comment    = regexp.MustCompile(`(?s)<!--.*?-->\s*`)
	firstTitle = regexp.MustCompile(`(?m)^# +(.+)$`)
	boldLead   = regexp.MustCompile(`^\*\*[^*]{1,20}\.\*\* `)
	emphasis   = regexp.MustCompile(`\*+([^*` + "`" + `]+)\*+`)
	sentence   = regexp.MustCompile(`.*?[.:!?](?:$| )`)
)

// llms.txt lists all pages for language models, in the form of https://llmstxt.org. It is written from
// docs/README.md, the titles of the pages, and the first sentence of each.
func TestLLMs(t *testing.T) {
	want := llms(t)
	file := filepath.Join(root, "llms.txt")
	if *updateLLMs {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("llms.txt is not what the pages say: go test ./internal/repotest -run TestLLMs -update")
	}
	for page := range markdown(t, "docs") {
		if page != "docs/README.md" && !strings.Contains(want, "]("+page+")") {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}

// llms is the text of llms.txt.
func llms(t *testing.T) string {
	t.Helper()
	readme := paragraphs(text(t, "README.md"))
	rule := slices.IndexFunc(readme, func(p string) bool { return p[0] == '>' })
	var b strings.Builder
	fmt.Fprintf(&b, "# firn\n\n> %s\n\n%s\n", plain(readme[0]), plain(readme[rule]))
	seen := map[string]bool{}
	var records []string
	for _, part := range strings.Split(text(t, "docs/README.md"), "\n## ")[1:] {
		name, _, _ := strings.Cut(part, "\n")
		fmt.Fprintf(&b, "\n## %s\n\n", name)
		for _, m := range fileLink.FindAllStringSubmatch(part, -1) {
			page := path.Join("docs", m[1])
			switch {
			case seen[page]:
			case path.Ext(page) == ".md":
				b.WriteString(entry(t, page))
			}
			if page == "docs/decisions/README.md" {
				for record := range markdown(t, path.Dir(page)) {
					if record != page {
						records = append(records, record)
					}
				}
			}
			seen[page] = true
		}
	}
	b.WriteString("\n## Optional\n\n")
	slices.Sort(records)
	for _, record := range records {
		b.WriteString(entry(t, record))
	}
	return b.String()
}

// entry is the line of a page.
func entry(t *testing.T, page string) string {
	t.Helper()
	source := text(t, page)
	title := firstTitle.FindStringSubmatch(source)
	if title == nil {
		t.Fatalf("%s has no title", page)
	}
	return fmt.Sprintf("- [%s](%s): %s\n", title[1], page, strings.TrimRight(begin(source), ".: "))
}

// begin is the first sentence of a page, or as many as are needed for something to be said.
func begin(source string) (first string) {
	for _, p := range paragraphs(source) {
		for _, s := range sentence.FindAllString(plain(boldLead.ReplaceAllString(strings.TrimPrefix(p, "> "), ""))+" ", -1) {
			if first += s; len(first) >= 50 {
				return first
			}
		}
	}
	return first
}

// paragraphs are the paragraphs of a page, without headings, comments, pictures, lists, tables and code.
func paragraphs(page string) (all []string) {
	page = comment.ReplaceAllString(fence.ReplaceAllString(page, ""), "")
	for p := range strings.SplitSeq(page, "\n\n") {
		if p = strings.TrimSpace(p); p != "" && !strings.ContainsAny(p[:1], "#|!-") {
			all = append(all, p)
		}
	}
	return all
}

// plain is a paragraph without the marks of Markdown, in one line.
func plain(paragraph string) string {
	lines := strings.Split(paragraph, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, ">"))
	}
	line := linkText.ReplaceAllString(strings.Join(strings.Fields(strings.Join(lines, " ")), " "), "$1")
	return emphasis.ReplaceAllString(line, "$1")
}

func text(t *testing.T, page string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// markdown are the pages below a directory, from the root of the repository.
func markdown(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	files(t, ".md", func(file string) {
		rel, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		if page := filepath.ToSlash(rel); strings.HasPrefix(page, dir+"/") {
			found[page] = true
		}
	})
	return found
}
