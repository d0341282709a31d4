package repotest

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// How many names a user's packages may export at the top level. Methods and fields do not
// count. A name more in one package is a name less in another.
const maxNames = 190

// maxIn is how many names one package may export, where it has a limit of its own.
var maxIn = map[string]int{
	"lease": 30, "shard": 15, "shard/topology": 24,
	"config": 66, "config/open": 17, "server": 48, "server/daemon": 12, "client": 8,
	"verify": 14, "plan": 14, "inspect": 10, "doctor": 8, "recovery": 14, "backfill": 6,
}

// TestSurface counts the names that somebody meets who writes a program with firn.
func TestSurface(t *testing.T) {
	counted := []string{".", "lease", "pool", "sequence", "document", "public", "store"}
	sum := 0
	for _, p := range packages(t) {
		most, limited := maxIn[p.name()]
		if !limited && !slices.Contains(counted, p.name()) {
			continue
		}
		names := exported(t, p)
		t.Logf("%-14s %3d", p.name(), len(names))
		if limited && len(names) > most {
			t.Errorf("%s exports %d names, at most %d: %s", p.name(), len(names), most, strings.Join(names, " "))
		}
		if slices.Contains(counted, p.name()) {
			sum += len(names)
		}
	}
	if t.Logf("%-14s %3d", "sum", sum); sum > maxNames {
		t.Errorf("%d exported names in %s, at most %d", sum, strings.Join(counted, ", "), maxNames)
	}
}

// exported are the names that a package exports at the top level: constants, variables,
// types and functions.
func exported(t *testing.T, p pkg) (names []string) {
	t.Helper()
	for _, file := range p.GoFiles {
		_, f := parse(t, filepath.Join(p.Dir, file))
		for _, d := range f.Decls {
			for _, name := range topLevel(d) {
				if name.IsExported() {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// topLevel are the names that a declaration introduces in its package.
func topLevel(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name)
			case *ast.ValueSpec:
				names = append(names, s.Names...)
			}
		}
	}
	return names
}

// TestExamples: a package that a user opens shows how it is used.
func TestExamples(t *testing.T) {
	for _, p := range packages(t) {
		name := p.name()
		first, _, _ := strings.Cut(name, "/")
		if slices.Contains([]string{"internal", "cmd", "bench", "examples", "site"}, first) || strings.Contains(name, "/internal") || len(p.GoFiles) == 0 {
			continue
		}
		if !hasExample(t, p) {
			t.Errorf("%s has no example: write a func Example in example_test.go", name)
		}
	}
}

func hasExample(t *testing.T, p pkg) bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		_, f := parse(t, path)
		return slices.ContainsFunc(f.Decls, func(d ast.Decl) bool {
			fn, ok := d.(*ast.FuncDecl)
			return ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Example")
		})
	})
}
