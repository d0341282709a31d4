package repotest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A goPage says what the Go code of a page stands in: the imports, and the variables that it has from before.
type goPage struct {
	imports []string
	given   string
}

var goPages = map[string]goPage{
	"clients.md":       {imports: []string{"client"}},
	"configuration.md": {imports: []string{"config", "config/open"}},
	"documents.md":     {imports: []string{"document", "store"}, given: "var st store.Store"},
	"public-forms.md":  {imports: []string{"public"}, given: "var photoForm public.Form"},
	"sequences.md":     {imports: []string{"", "sequence", "store/postgres", "database/sql"}, given: "var db *sql.DB; var ids []firn.ID"},
	"server.md":        {imports: []string{"config", "server/daemon"}},
	"shards.md":        {imports: []string{"", "shard", "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgxpool"}, given: "var a, b *pgxpool.Pool"},
}

// notFirns are pages whose Go code is for modules that firn does not have.
var notFirns = map[string]bool{"frameworks.md": true}

var (
	goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```")
	unused  = regexp.MustCompile("declared and not used|^#|imported and not used|too many errors")
)

// TestGoOfPages: the Go code of the pages compiles, but for variables that it does not use.
func TestGoOfPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	args := []string{"build", "-gcflags=-e", "-overlay", filepath.Join(t.TempDir(), "overlay.json")}
	found := map[string]bool{}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		for i, block := range goBlock.FindAllStringSubmatch(string(text), -1) {
			page, known := goPages[name]
			switch {
			case notFirns[name]:
				continue
			case !known:
				t.Fatalf("%s has Go code, and goPages does not say what it stands in", name)
			}
			found[name] = true
			dir := fmt.Sprintf("pages/%s%d", strings.TrimSuffix(name, ".md"), i)
			file := filepath.Join(t.TempDir(), "page.go")
			if err := os.WriteFile(file, []byte(page.program(block[1])), 0o600); err != nil {
				t.Fatal(err)
			}
			overlay.Replace[filepath.Join(dir, "page.go")] = file
			args = append(args, "./"+dir)
		}
	}
	if len(found) != len(goPages) {
		t.Errorf("of goPages only %v have Go code", found)
	}
	b, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(args[3], b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !unused.MatchString(line) {
			t.Error(strings.TrimSpace(line))
		}
	}
	if err != nil && len(out) == 0 {
		t.Error(err)
	}
}

// program puts code into a function; declarations of types with methods, from the first of them on, follow it.
func (p goPage) program(code string) string {
	var b strings.Builder
	b.WriteString("package page\nimport (\n\"context\"\n")
	for _, path := range p.imports {
		if !strings.Contains(path, ".") && path != "database/sql" {
			path = strings.TrimSuffix("github.com/firn-id/firn/"+path, "/")
		}
		fmt.Fprintf(&b, "%q\n", path)
	}
	fmt.Fprintf(&b, ")\n%s\n", p.given)
	inside, declared := code, ""
	if i := strings.Index(code, "\ntype "); i >= 0 {
		inside, declared = code[:i], code[i:]
	}
	inside = strings.ReplaceAll(inside, "{ ... }", "{ return nil }")
	fmt.Fprintf(&b, "func _(ctx context.Context) error {\nvar err error\n_ = err\n{\n%s\n}\nreturn nil\n}\n%s", inside, declared)
	return b.String()
}
