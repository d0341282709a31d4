package move

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestProtocolTable: the table of the package's documentation, the steps that a mover does and the
// functions that there are in Go and SQL are the same.
func TestProtocolTable(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var sql strings.Builder
	for _, name := range []string{"../install/owner.sql", "../install/stream.sql"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sql.Write(b)
	}
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		if row, ok := strings.CutPrefix(strings.TrimSpace(line), "//\t"); ok {
			rows = append(rows, regexp.MustCompile(` {2,}`).Split(row, -1))
		}
	}
	if len(rows) != len(protocol)+1 {
		t.Fatalf("%d lines for %d steps", len(rows)-1, len(protocol))
	}
	calls := goCalls(t)
	for i, p := range protocol {
		row := rows[i+1]
		if len(row) != 6 {
			t.Fatalf("%q has %d columns", row, len(row))
		}
		functions := strings.Join(p.calls, " ")
		if functions == "" {
			functions = "-"
		}
		if want := []string{string(p.do), p.on, row[2], functions}; !slices.Equal(row[:4], want) {
			t.Errorf("the table has %q, and the code %q", row[:4], want)
		}
		if calls[i] != row[2] {
			t.Errorf("%s calls %s, and the table says %s", p.do, calls[i], row[2])
		}
		for _, name := range append(slices.Clone(p.calls), row[5]) {
			if name != "-" && name != "revert" && !strings.HasPrefix(name, "pg_") && !strings.Contains(sql.String(), "FUNCTION firn."+name+"(") {
				t.Errorf("%s: there is no function firn.%s", p.do, name)
			}
		}
	}
}

// goCalls are the methods of a mover that the steps call, in order.
func goCalls(t *testing.T) (names []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "steps.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "run" {
			var b strings.Builder
			if err := printer.Fprint(&b, set, pair.Value); err != nil {
				t.Fatal(err)
			}
			found := regexp.MustCompile(`m\.(\w+)\(ctx`).FindStringSubmatch(b.String())
			if found == nil {
				t.Fatalf("it calls nothing: %s", b.String())
			}
			names = append(names, found[1])
		}
		return true
	})
	return names
}

// TestProtocolOrder: a move that nobody disturbs calls what the table says, in its order, and to
// finish, to revert and to abort call what the documentation says.
func TestProtocolOrder(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	known := map[string]bool{"end_move": true, "unsubscribe": true, "discard": true, "drop_leftovers": true}
	var moves, back []string
	for _, p := range protocol {
		for _, name := range p.calls {
			known[name] = true
		}
		switch p.do {
		case toEnable, toTake, toRecordOwner: // what is there already
		case toBegin, toClaim, toCut:
			back = append(back, p.calls...)
			moves = append(moves, p.calls...)
		default:
			moves = append(moves, p.calls...)
		}
	}
	function := regexp.MustCompile(`(?:firn\.|\b)(\w+) ?\(`)
	var said []string
	h := hook{before: func(message string) {
		for _, found := range function.FindAllStringSubmatch(message, -1) {
			if known[found[1]] && strings.Contains(message, "SELECT") {
				said = append(said, found[1])
			}
		}
	}}
	m := New(hooked(a.Server, h), hooked(b.Server, h), hasty())
	defer m.Close()
	ends := []string{"end_move", "unsubscribe", "discard", "drop_leftovers"}
	for _, way := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"move", func() error { _, err := m.Move(t.Context(), []int64{1}); return err }, moves},
		{"revert", func() error { _, err := m.Revert(t.Context(), []int64{1}); return err }, back},
		{"abort", func() error { _, err := m.Abort(t.Context(), []int64{1}); return err }, append([]string{"begin_move", "claim"}, ends...)},
		{"move again", func() error { _, err := m.Move(t.Context(), []int64{1}); return err }, moves},
		{"finish", func() error { _, err := m.Finish(t.Context(), []int64{1}); return err }, ends},
	} {
		said = nil
		if err := way.do(); err != nil {
			t.Fatalf("%s: %v", way.name, err)
		}
		if got := slices.Compact(said); !slices.Equal(got, slices.Compact(way.want)) {
			t.Errorf("%s:\n%q\n%q", way.name, got, way.want)
		}
	}
}
