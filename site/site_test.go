//go:build !windows

package site

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

const (
	root       = ".."
	repository = "https://github.com/firn-id/firn/"
)

// build has make write the site to a directory of the test.
func build(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	cmd := exec.Command("make", "-s", "site", "SITE="+dir)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make site: %v\n%s", err, out)
	}
	return dir
}

// A page is what the tests look at in a file of HTML.
type page struct {
	lang, title, description string
	headings                 int      // of the first level
	ids                      []string // in order
	links                    []string // where a reader can go
	loads                    []string // what the browser fetches
}

// parse reads a file of HTML.
func parse(t *testing.T, file string) (p page) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := xml.NewDecoder(f)
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for in := ""; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch token := token.(type) {
		case xml.Comment:
			t.Errorf("%s: a comment of the Markdown is left: %s", file, token)
		case xml.CharData:
			if in == "title" {
				p.title += string(token)
			}
		case xml.EndElement:
			in = ""
		case xml.StartElement:
			in = token.Name.Local
			p.element(token)
		}
	}
}

// element notes what an element says.
func (p *page) element(e xml.StartElement) {
	attr := map[string]string{}
	for _, a := range e.Attr {
		attr[a.Name.Local] = a.Value
	}
	if id, ok := attr["id"]; ok {
		p.ids = append(p.ids, id)
	}
	switch e.Name.Local {
	case "html":
		p.lang = attr["lang"]
	case "h1":
		p.headings++
	case "meta":
		if attr["name"] == "description" {
			p.description = attr["content"]
		}
	case "a":
		p.links = append(p.links, attr["href"])
	case "link":
		p.loads = append(p.loads, attr["href"])
	}
	for _, name := range []string{"src", "srcset"} {
		if attr[name] != "" {
			p.loads = append(p.loads, attr[name])
		}
	}
}

// pages are all pages of a site, by their file below its directory.
func pages(t *testing.T, dir string) map[string]page {
	t.Helper()
	all := map[string]page{}
	walk(t, dir, ".html", func(name string) { all[name] = parse(t, filepath.Join(dir, name)) })
	return all
}

// walk calls f with each file below a directory that has an extension, in order.
func walk(t *testing.T, dir, ext string, f func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ext {
			f(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSite builds the site and follows all that it refers to.
func TestSite(t *testing.T) {
	testserver.OnlyLong(t)
	dir := build(t)
	all := pages(t, dir)

	walk(t, filepath.Join(root, "docs"), ".md", func(name string) {
		html := path.Join("docs", strings.TrimSuffix(name, ".md")+".html")
		if path.Base(name) == "README.md" {
			html = path.Join("docs", path.Dir(name), "index.html")
		}
		if _, there := all[html]; !there {
			t.Errorf("docs/%s has no page %s", name, html)
		}
	})
	titles := map[string]string{}
	for name, p := range all {
		if p.lang != "en" || p.description == "" || p.headings != 1 {
			t.Errorf("%s: lang %q, description %q, %d headings of the first level", name, p.lang, p.description, p.headings)
		}
		if other := titles[p.title]; other != "" || p.title == "" {
			t.Errorf("%s: title %q, as %q has", name, p.title, other)
		}
		titles[p.title] = name
		if ids := slices.Sorted(slices.Values(p.ids)); len(slices.Compact(ids)) != len(p.ids) {
			t.Errorf("%s: an id stands twice: %q", name, p.ids)
		}
		for _, link := range p.links {
			follow(t, dir, all, name, link)
		}
		for _, link := range p.loads {
			if u, err := url.Parse(link); err != nil || u.IsAbs() || u.Host != "" {
				t.Errorf("%s loads %s from elsewhere", name, link)
			}
			follow(t, dir, all, name, link)
		}
	}
	for _, ext := range []string{".css", ".js", ".svg"} {
		walk(t, dir, ext, func(name string) {
			if b := read(t, dir, name); name != "search.js" && outside.MatchString(strings.ReplaceAll(b, "http://www.w3.org/", "")) {
				t.Errorf("%s names something that is not in the site: %s", name, outside.FindString(b))
			}
		})
	}
	t.Run("search", func(t *testing.T) { indexed(t, dir, all) })
	t.Run("llms.txt", func(t *testing.T) {
		for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(read(t, dir, "llms.txt"), -1) {
			if _, err := os.Stat(filepath.Join(dir, m[1])); err != nil {
				t.Error(err)
			}
		}
	})
}

// outside is how a style, a script or a picture would load something from another place.
var outside = regexp.MustCompile(`https?://|url\(\s*["']?//|@import`)

// follow goes where a link of a page leads.
func follow(t *testing.T, dir string, all map[string]page, from, link string) {
	t.Helper()
	u, err := url.Parse(link)
	switch {
	case err != nil || link == "":
		t.Errorf("%s: link %q: %v", from, link, err)
		return
	case strings.HasPrefix(link, repository):
		_, file, _ := strings.Cut(strings.TrimPrefix(link, repository), "/main/")
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Errorf("%s: link to a source file: %v", from, err)
		}
		return
	case u.IsAbs():
		if u.Scheme != "https" && u.Scheme != "http" {
			t.Errorf("%s: link to %s", from, link)
		}
		return
	case path.Ext(u.Path) == ".md":
		t.Errorf("%s: link to %s, which is no page", from, link)
	}
	to := from
	if u.Path != "" {
		to = path.Join(path.Dir(from), u.Path)
	}
	if info, err := os.Stat(filepath.Join(dir, to)); err != nil || info.IsDir() {
		t.Errorf("%s: link to %s: no such file", from, link)
		return
	}
	if u.Fragment != "" && !slices.Contains(all[to].ids, u.Fragment) {
		t.Errorf("%s: link to %s: no such heading", from, link)
	}
}

// indexed looks for every page in the index of the search, and for every place of it in the pages.
func indexed(t *testing.T, dir string, all map[string]page) {
	var index []struct {
		URL, Title string
		Parts      []struct{ ID, Heading, Text string }
	}
	script := strings.TrimSpace(read(t, dir, "search.js"))
	script = strings.TrimSuffix(strings.TrimPrefix(script, "firnSearch("), ")")
	if err := json.Unmarshal([]byte(script), &index); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, entry := range index {
		found[entry.URL] = true
		text := 0
		for _, part := range entry.Parts {
			if !slices.Contains(all[entry.URL].ids, part.ID) {
				t.Errorf("%s#%s is no place of a page", entry.URL, part.ID)
			}
			text += len(part.Text)
		}
		if text < 100 || entry.Title == "" {
			t.Errorf("%s, %q, has %d characters in %d parts", entry.URL, entry.Title, text, len(entry.Parts))
		}
	}
	for name := range all {
		made := filepath.Join(root, strings.TrimSuffix(name, "/index.html")) // a list of the pages of a directory
		if info, err := os.Stat(made); err == nil && info.IsDir() && path.Base(name) == "index.html" {
			if _, err := os.Stat(filepath.Join(made, "README.md")); err != nil {
				continue
			}
		}
		if !found[name] {
			t.Errorf("the search does not find %s", name)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
