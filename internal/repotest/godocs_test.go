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
	whole   bool // its blocks are one package: what one declares, others use
}

var goPages = map[string]goPage{
	"clients.md":       {imports: []string{"client"}},
	"configuration.md": {imports: []string{"config", "config/open"}},
	"frameworks.md":    {imports: []string{"shard", "internal/repotest/pages/gorm", "internal/repotest/pages/db", "github.com/jackc/pgx/v5"}, given: "var gdb *gorm.DB; var cluster *shard.Cluster; var name string; var id int64", whole: true},
	"documents.md":     {imports: []string{"document", "store"}, given: "var st store.Store"},
	"page.md":          {imports: []string{"page"}},
	"public-forms.md":  {imports: []string{"public"}, given: "var photoForm public.Form"},
	"sequences.md":     {imports: []string{"", "sequence", "store/postgres", "database/sql"}, given: "var db *sql.DB; var ids []firn.ID"},
	"server.md":        {imports: []string{"config", "server/daemon"}},
	"shards-tables.md": {imports: []string{"", "shard", "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgxpool"}, given: "var a, b *pgxpool.Pool"},
}

// stubs stand for packages that firn does not import: what pages use of them.
var stubs = map[string]string{
	// gorm.io/gorm v1
	"gorm": `package gorm
type DB struct { Error error }
func (*DB) Transaction(f func(tx *DB) error) error { return f(nil) }
func (*DB) Exec(sql string, values ...any) *DB { return nil }
func (*DB) Create(value any) *DB { return nil }
`,
	// what sqlc makes of the page's query
	"db": `package db
import ("context"; "github.com/jackc/pgx/v5")
type Queries struct{}
func New(tx pgx.Tx) *Queries { return nil }
func (*Queries) CreateUser(ctx context.Context, name string) (int64, error) { return 0, nil }
`,
}

var (
	goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```")
	unused  = regexp.MustCompile("declared and not used|^#|imported and not used|too many errors")
)

// TestGoOfPages: the Go code of the pages compiles, but for variables that it does not use.
func TestGoOfPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	guides, err2 := filepath.Glob("../../docs/guides/*.md")
	reference, err3 := filepath.Glob("../../docs/reference/*.md")
	if err != nil || err2 != nil || err3 != nil || len(pages) == 0 || len(guides) == 0 || len(reference) == 0 {
		t.Fatal(pages, err, guides, err2, reference, err3)
	}
	pages = append(append(pages, guides...), reference...)
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	args := []string{"build", "-gcflags=-e", "-overlay", filepath.Join(t.TempDir(), "overlay.json")}
	put := func(dir, text string) {
		file := filepath.Join(t.TempDir(), "page.go")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(dir, "page.go")] = file
	}
	found := map[string]bool{}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		var blocks []string
		for _, block := range goBlock.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(block[1], "package main\n") { // a whole program is built and run where the page's commands are
				blocks = append(blocks, block[1])
			}
		}
		page, known := goPages[name]
		if len(blocks) > 0 && !known {
			t.Fatalf("%s has Go code, and goPages does not say what it stands in", name)
		}
		if len(blocks) == 0 {
			continue
		}
		found[name] = true
		for i, program := range page.programs(blocks) {
			dir := fmt.Sprintf("pages/%s%s%d", filepath.Base(filepath.Dir(path)), strings.TrimSuffix(name, ".md"), i)
			put(dir, program)
			args = append(args, "./"+dir)
		}
	}
	for name, text := range stubs {
		put("pages/"+name, text)
	}
	for name := range goPages {
		if !found[name] {
			t.Errorf("%s is in goPages, and has no Go code", name)
		}
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

// programs are those of the blocks of a page: one each, or one of all.
func (p goPage) programs(blocks []string) (all []string) {
	if p.whole {
		return []string{p.program(blocks...)}
	}
	for _, code := range blocks {
		all = append(all, p.program(code))
	}
	return all
}

// program puts code into functions; declarations of types with methods, from the first of them on, follow it.
func (p goPage) program(blocks ...string) string {
	var b strings.Builder
	b.WriteString("package page\nimport (\n\"context\"\n")
	for _, path := range p.imports {
		if !strings.Contains(path, ".") && path != "database/sql" {
			path = strings.TrimSuffix("github.com/firn-id/firn/"+path, "/")
		}
		fmt.Fprintf(&b, "%q\n", path)
	}
	fmt.Fprintf(&b, ")\n%s\n", p.given)
	for _, code := range blocks {
		inside, declared := "\n"+code, ""
		if i := strings.Index(inside, "\ntype "); i >= 0 {
			inside, declared = inside[:i], inside[i:]
		}
		inside = strings.ReplaceAll(inside, "{ ... }", "{ return nil }")
		fmt.Fprintf(&b, "func _(ctx context.Context) error {\nvar err error\n_ = err\n{\n%s\n}\nreturn nil\n}\n%s", inside, declared)
	}
	return b.String()
}
