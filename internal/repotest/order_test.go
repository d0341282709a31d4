package repotest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The language does not say whether a variable that is copied is read before or after a
// call in the same statement. So no statement may copy a variable and call a method that
// can change it:
//
//	return s, Action{Until: s.jitter(d)} // is the s that is returned the one after jitter?
//
// The machines of the leases and counters are such values, and draw from a generator of
// random numbers that is part of them: a copy from before the draw would draw the same
// owner token again. Whether a method with a pointer receiver changes anything is not
// looked at.
func TestNothingRestsOnTheOrderOfEvaluation(t *testing.T) {
	for _, p := range packages(t) {
		var files []*ast.File
		fset := token.NewFileSet()
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		for _, at := range unordered(files) {
			t.Errorf("%s: %s is copied and may be changed in one statement: call what changes it in a statement before", fset.Position(at.pos), at.name)
		}
	}
}

// The test above sees what it is for, and nothing else.
func TestUnordered(t *testing.T) {
	const machine = `package p
		import "math/rand/v2"
		type State struct { n int; random rand.ChaCha8; clock clock }
		type clock struct{ at int }
		func (c *clock) tick() int { c.at++; return c.at }
		func (s *State) draw() int { s.n++; return s.n }
		func (s State) next(int) (State, int) { return s, 0 }
		func (s State) step(b []byte) (State, int) { %s }`
	for body, want := range map[string]int{
		"return s, s.draw()":                           1,
		"return s, 1 + s.clock.tick()":                 1,
		"return s, int(s.random.Uint64())":             1,
		"return s.next(s.draw())":                      1,
		"if true { return s, s.draw() }; return s, 0":  1,
		"x, n := s, s.draw(); return x, n":             1,
		"n := s.draw(); return s, n":                   0,
		"n := s.draw(); return s.next(n)":              0,
		"s, n := s.next(2); return s, n":               0,
		"return s, s.n":                                0,
		"return s, len(b)":                             0,
		"if s.draw() > 1 { return s, 0 }; return s, 1": 0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", fmt.Sprintf(machine, body), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := unordered([]*ast.File{f}); len(got) != want {
			t.Errorf("%s: %d faults, want %d", body, len(got), want)
		}
	}
}

// A fault is a variable that is copied and may be changed in one statement.
type fault struct {
	name string
	pos  token.Pos
}

// unordered returns the faults of a package.
func unordered(files []*ast.File) (all []fault) {
	types := kinds(files)
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			for name, typ := range values(fn, types) {
				all = append(all, faults(fn.Body, name, typ, types)...)
			}
		}
	}
	return all
}

// A kind is what matters of a type: its fields, and which of its methods take a pointer.
type kind struct {
	fields  map[string]string // to the name of their type
	pointer map[string]bool   // of every method
}

// kinds are the types of a package, by name.
func kinds(files []*ast.File) map[string]*kind {
	types := map[string]*kind{}
	of := func(name string) *kind {
		if types[name] == nil {
			types[name] = &kind{map[string]string{}, map[string]bool{}}
		}
		return types[name]
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					for _, field := range s.Fields.List {
						for _, name := range field.Names {
							of(n.Name.Name).fields[name.Name] = typeName(field.Type)
						}
					}
				}
			case *ast.FuncDecl:
				if n.Recv != nil {
					name, star := strings.CutPrefix(typeName(n.Recv.List[0].Type), "*")
					of(name).pointer[n.Name.Name] = star
				}
				return false
			}
			return true
		})
	}
	return types
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + typeName(e.X)
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	case *ast.IndexExpr: // a generic receiver
		return typeName(e.X)
	}
	return ""
}

// values are the receiver, parameters and results of a function that are values of a type
// with methods, and the name of that type.
func values(fn *ast.FuncDecl, types map[string]*kind) map[string]string {
	found := map[string]string{}
	for _, list := range []*ast.FieldList{fn.Recv, fn.Type.Params, fn.Type.Results} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				if typ := typeName(field.Type); types[typ] != nil && len(types[typ].pointer) > 0 {
					found[name.Name] = typ
				}
			}
		}
	}
	return found
}

// faults are the statements of a body that copy the variable v and may change it.
func faults(body *ast.BlockStmt, v, typ string, types map[string]*kind) (all []fault) {
	ast.Inspect(body, func(n ast.Node) bool {
		var parts []ast.Node
		switch n := n.(type) {
		case *ast.ReturnStmt, *ast.ExprStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt:
			parts = append(parts, n)
		case *ast.AssignStmt: // what it assigns to is not read
			for _, e := range n.Rhs {
				parts = append(parts, e)
			}
		case *ast.DeclStmt:
			parts = append(parts, n)
		default:
			return true
		}
		copies, changes := false, false
		for _, part := range parts {
			c, w := uses(part, v, typ, types)
			copies, changes = copies || c, changes || w
		}
		if copies && changes {
			all = append(all, fault{v, n.Pos()})
		}
		return true
	})
	return all
}

// uses says whether an expression copies the variable v, and whether it may change it.
func uses(part ast.Node, v, typ string, types map[string]*kind) (copies, changes bool) {
	ast.Inspect(part, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // its statements are looked at by themselves
		case *ast.KeyValueExpr: // a key is no variable
			c, w := uses(n.Value, v, typ, types)
			copies, changes = copies || c, changes || w
			return false
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := typeAt(sel.X, v, typ, types)
			if !ok {
				return true
			}
			if types[of] == nil {
				changes = changes || strings.HasPrefix(of, "rand.")
			} else if star := types[of].pointer[sel.Sel.Name]; star {
				changes = true
			} else if of == typ {
				copies = true
			}
			for _, arg := range n.Args {
				c, w := uses(arg, v, typ, types)
				copies, changes = copies || c, changes || w
			}
			return false
		case *ast.SelectorExpr:
			_, of := typeAt(n, v, typ, types)
			return !of // a field is not the whole
		case *ast.Ident:
			copies = copies || n.Name == v
		}
		return true
	})
	return copies, changes
}

// typeAt is the type of v, v.field, v.field.field and so on.
func typeAt(e ast.Expr, v, typ string, types map[string]*kind) (string, bool) {
	switch e := e.(type) {
	case *ast.Ident:
		return typ, e.Name == v
	case *ast.SelectorExpr:
		of, ok := typeAt(e.X, v, typ, types)
		if !ok || types[of] == nil {
			return "", ok
		}
		return types[of].fields[e.Sel.Name], true
	}
	return "", false
}
