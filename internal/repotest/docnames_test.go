package repotest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goName matches a name of Go in a page: lease.State, lease.Options{Wait: or pool.Info.Outage.
var goName = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*)|\{([A-Z]\w*):)?`)

// Every name of a package of firn that a page has is one that the package exports, and a program can
// import the package.
func TestNamesInPages(t *testing.T) {
	public, internal := map[string]map[string]bool{}, map[string]bool{}
	for _, p := range packages(t) {
		base := p.name()[strings.LastIndex(p.name(), "/")+1:]
		if p.name() == "." {
			base = "firn"
		}
		if len(p.GoFiles) == 0 {
			continue // tests only, such as clients/node: no page means a package with its name
		}
		if strings.Contains("/"+p.name()+"/", "/internal/") {
			internal[base] = true
			continue
		}
		if public[base] == nil {
			public[base] = map[string]bool{}
		}
		for _, file := range p.GoFiles {
			_, f := parse(t, filepath.Join(p.Dir, file))
			collect(f, public[base])
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	more, err2 := filepath.Glob("../../docs/[cgr]*/*.md") // coming-from, guides, reference
	if err != nil || err2 != nil || len(pages) == 0 || len(more) == 0 {
		t.Fatal(err, err2, len(pages), len(more))
	}
	for _, page := range append(append(pages, more...), "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(page) == "internals.md" {
			continue // it is about the packages that nobody else can import
		}
		for _, m := range goName.FindAllStringSubmatch(string(text), -1) {
			names, known := public[m[1]]
			member := m[3] + m[4]
			switch {
			case !known && internal[m[1]]:
				t.Errorf("%s: %s: no program can import package %s", page, m[0], m[1])
			case !known, m[0] == "store.Close": // a variable in a program
			case !names[m[2]], member != "" && !names[m[2]+"."+member]:
				t.Errorf("%s: %s: package %s has no such name", page, m[0], m[1])
			}
		}
	}
}

// collect adds the exported names of a file: those at the top level, and fields and methods as
// Type.Name.
func collect(f *ast.File, into map[string]bool) {
	for _, d := range f.Decls {
		for _, name := range topLevel(d) {
			into[name.Name] = name.IsExported()
		}
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				into[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					fields(s, into)
				}
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// fields adds the fields of a struct, or the methods of an interface.
func fields(s *ast.TypeSpec, into map[string]bool) {
	var list *ast.FieldList
	switch typ := s.Type.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			into[s.Name.Name+"."+name.Name] = true
		}
	}
}
