package repotest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// page is a file of the repository, without line breaks within sentences.
func page(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// TestDates: what pages say about when a layout ends, and how large ids are, is what the
// layouts say.
func TestDates(t *testing.T) {
	year, day := "2006", "2006-01-02"
	crossed := time.Date(2025, 10, 4, 0, 0, 0, 0, time.UTC)
	if first, last, err := firn.Default().Bounds(crossed.AddDate(0, 0, -1), crossed.AddDate(0, 0, 1)); err != nil || first > 1e17 || last <= 1e17 {
		t.Errorf("ids of the day before 2025-10-04 begin at %d, those of that day end at %d (%v): 10^17 is crossed on another", first, last, err)
	}
	for _, tt := range []struct{ path, text string }{
		{"docs/coming-from/auto-increment.md", "those that are made from 2025-10-04 on are above 10^17"},
		{"docs/guarantees.md", "The default one on " + firn.Default().End().Format(day)},
		{"docs/guides/shards.md", "a millisecond from each, until " + firn.Sharded().End().Format(year)},
		{"docs/guides/shards-operating.md", "The layout `sharded` ends in " + firn.Sharded().End().Format(year)},
		{"docs/guides/shards-operating.md", "Instagram's in " + firn.MustLayout("instagram").End().Format(year)},
		{"docs/coming-from/instagram.md", "From " + firn.MustLayout("instagram").End().Format(year) + " ids of the published layout no longer fit a bigint"},
	} {
		if !strings.Contains(page(t, tt.path), tt.text) {
			t.Errorf("%s does not say %q", tt.path, tt.text)
		}
	}
}

// TestWhatNothingNotices: a loss that firn cannot see stands where somebody decides what to
// do about it.
func TestWhatNothingNotices(t *testing.T) {
	for path, texts := range map[string][]string{
		"docs/guides/stores.md": {
			"**`firn pool create` on a store that has lost everything.**",
			"**A backup or a snapshot that was put back while all processes were stopped**", "An etcd cluster that `etcdctl snapshot restore` made",
			"**Two copies that are both used**", "**A cloned virtual machine or volume with its SQLite file**", "**Two stores that were never one**",
			"**A SQLite file whose directory is there and empty**", "**Never run `firn pool create --new` in a step that starts a program**",
		},
		"docs/guides/sequences.md":  {"at the first number again, and nothing can notice that."},
		"docs/guides/kubernetes.md": {"stores.md#what-nothing-can-notice", "restored with the same flags is noticed by no process", "**No `firn pool create` in a Deployment"},
		"docs/guarantees.md":        {"the store loses everything, and `firn pool create` is typed again | nothing: there is no trace of the pool", "never create a pool in a step that starts a program", "an etcd snapshot is restored with the same name, peer addresses and token |"},
		"README.md":                 {"one pool of one store"},
	} {
		for _, text := range texts {
			if !strings.Contains(page(t, path), text) {
				t.Errorf("%s does not say %q", path, text)
			}
		}
	}
}

// TestPathsOfPrograms: a Go program in a page or an example names its file by an absolute
// path, because a relative one is another store in each directory.
func TestPathsOfPrograms(t *testing.T) {
	relative := regexp.MustCompile(`sqlite\.Open\([^"]*"[^/"]|open\.URL\([^"]*"sqlite:[^/"]`)
	found := 0
	for _, root := range []string{"README.md", "docs", "examples"} {
		err := filepath.WalkDir(filepath.Join("../..", root), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".md") && !strings.HasSuffix(path, ".go") {
				return err
			}
			b, err := os.ReadFile(path)
			found += strings.Count(string(b), "sqlite.Open")
			if at := relative.Find(b); at != nil {
				t.Errorf("%s: %s", path, at)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Error("no program was found")
	}
}

// TestReadmeBegins: the first thing to do is no test run, and the command is installed from
// a package that is there.
func TestReadmeBegins(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?m)^<!--.*-->\n`).ReplaceAllString(string(b), "")
	head := strings.Join(strings.SplitN(shown, "\n", 41)[:40], "\n")
	if strings.Contains(head, "make test") {
		t.Error("the first 40 lines say make test")
	}
	at := regexp.MustCompile(`go install (?:github.com/firn-id/firn|\.)/(\S+?)(?:@\S+)?[\s` + "`" + `]`).FindStringSubmatch(head)
	if at == nil {
		t.Fatal("the first 40 lines do not say how to install the command")
	}
	main, err := os.ReadFile(filepath.Join("../..", at[1], "main.go"))
	if err != nil || !strings.Contains(string(main), "package main") {
		t.Errorf("go install of %s: %v", at[1], err)
	}
}
