package repotest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxFile     = 800 // lines; 500 is what we aim at
	maxFunction = 70  // lines, tests excepted: a table may be long
)

// Words for which the project has another one, in names that we declare.
var otherWords = map[string]string{
	"node": "worker", "snowflake": "id", "util": "what it is about", "utils": "what it is about",
	"helper": "what it does", "helpers": "what they do", "manager": "what it does",
}

// Directories named after nothing.
var emptyNames = []string{"util", "utils", "common", "types", "helpers", "misc", "base", "pkg", "models"}

func TestPackages(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(emptyNames, filepath.Base(p.Dir)) {
			t.Errorf("%s: the name says nothing of what it is about", p.name())
		}
		if len(p.GoFiles) > 0 && !hasComment(t, p) {
			t.Errorf("%s: no package comment", p.name())
		}
	}
}

func hasComment(t *testing.T, p pkg) bool {
	t.Helper()
	want := "Package " + p.Name + " "
	if p.Name == "main" {
		want = "Command " + filepath.Base(p.Dir) + " "
	}
	return slices.ContainsFunc(p.GoFiles, func(name string) bool {
		_, f := parse(t, filepath.Join(p.Dir, name))
		return strings.HasPrefix(f.Doc.Text(), want)
	})
}

func TestSource(t *testing.T) {
	files(t, ".go", func(path string) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(src, []byte("\n")); n > maxFile {
			t.Errorf("%s: %d lines, at most %d: divide it by ideas", path, n, maxFile)
		}
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		fset, f := parse(t, path)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > maxFunction {
					t.Errorf("%s: %s has %d lines, at most %d", fset.Position(fn.Pos()), fn.Name.Name, n, maxFunction)
				}
			}
			for _, name := range declared(d) {
				for _, w := range words(name.Name) {
					if use, ok := otherWords[w]; ok && name.IsExported() {
						t.Errorf("%s: %s: say %s, not %s", fset.Position(name.Pos()), name.Name, use, w)
					}
				}
			}
		}
	})
}

// declared are the names a declaration introduces: functions, types, constants,
// variables, and the fields and methods of its types.
func declared(d ast.Decl) (names []*ast.Ident) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name)
			return false
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
			return false
		case *ast.Field:
			names = append(names, n.Names...)
		}
		return true
	})
	return names
}

// words divides an identifier at its capitals: "fooBarID" is foo, bar, i, d.
func words(name string) []string {
	var b strings.Builder
	for _, r := range name {
		if 'A' <= r && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.Fields(strings.ToLower(b.String()))
}

// The decisions of a lease and of documents and their drivers are pure: given the same state, time
// and event they are the same, so that they can be simulated and proven.
func TestDriversArePure(t *testing.T) {
	for _, dir := range []string{"/internal/term", "/internal/holder", "/internal/dated"} {
		pure(t, root+dir)
	}
}

func pure(t *testing.T, dir string) {
	t.Helper()
	impure := []string{"context", "crypto/rand", "io", "log", "log/slog", "net", "os", "runtime", "sync", "syscall"}
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	paths, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no Go files (%v)", dir, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		fset, f := parse(t, path)
		for _, imp := range f.Imports {
			if p := strings.Trim(imp.Path.Value, `"`); slices.ContainsFunc(impure, func(s string) bool {
				return p == s || strings.HasPrefix(p, s+"/")
			}) {
				t.Errorf("%s: imports %s", fset.Position(imp.Pos()), p)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: starts a goroutine", fset.Position(n.Pos()))
			case *ast.SelectStmt, *ast.SendStmt:
				t.Errorf("%s: uses a channel", fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
					t.Errorf("%s: reads the clock: time.%s", fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// parse reads a file with its comments.
func parse(t *testing.T, path string) (*token.FileSet, *ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return fset, f
}
