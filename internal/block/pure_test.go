package block_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What decides about numbers is pure: given the same state, time and event it
// decides the same, so that it can be simulated.
func TestBlockIsPure(t *testing.T) {
	pure(t, "*.go", "encoding/json", "errors", "fmt", "math", "math/rand/v2", "time", "github.com/firn-id/firn/internal/record", "github.com/firn-id/firn/store")
}

// So is what hands numbers to calls, but for the lock that keeps them apart.
func TestSupplyIsPure(t *testing.T) {
	pure(t, "../supply/*.go", "errors", "fmt", "slices", "sync", "sync/atomic", "time", "github.com/firn-id/firn",
		"github.com/firn-id/firn/internal/block", "github.com/firn-id/firn/internal/record", "github.com/firn-id/firn/store")
}

func pure(t *testing.T, files string, allowed ...string) {
	t.Helper()
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	random := []string{"NewChaCha8", "ChaCha8"}
	paths, err := filepath.Glob(files)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no Go files (%v)", err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			if p := strings.Trim(imp.Path.Value, `"`); !slices.Contains(allowed, p) {
				t.Errorf("%s: imports %s", fset.Position(imp.Pos()), p)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt:
				t.Errorf("%s: a goroutine or a channel", fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
					t.Errorf("%s: reads the clock: time.%s", fset.Position(n.Pos()), n.Sel.Name)
				}
				if ok && x.Name == "rand" && !slices.Contains(random, n.Sel.Name) {
					t.Errorf("%s: draws without a seed: rand.%s", fset.Position(n.Pos()), n.Sel.Name)
				}
				if ok && x.Name == "store" && n.Sel.Name == "NewVersion" {
					t.Errorf("%s: store.NewVersion is random", fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}
