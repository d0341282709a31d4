package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// hintCalls are the functions that are given what a person types next, and the arguments
// that say it.
var hintCalls = map[string][]int{"Hint": {0}, "HintFlag": {1}, "HintAsking": {0, 1}, "MustAsk": {3}, "say": {2}}

// Every command that a hint names can be typed as it stands: the command is there, has the
// flags, and takes as many arguments.
func TestHintCommands(t *testing.T) {
	seen := 0
	inSource(t, ".", func(at string, n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		for _, i := range hintCalls[calleeOf(call)] {
			if i >= len(call.Args) {
				continue
			}
			ast.Inspect(call.Args[i], func(n ast.Node) bool {
				text, ok := constantText(n)
				seen += checkHint(t, at, text)
				return !ok
			})
		}
		return true
	})
	if seen < 40 {
		t.Errorf("only %d commands were found in hints", seen)
	}
}

// A command of firn shard that any text names as what to type next can be typed as it stands, with the
// flags that are added behind it: no words follow it.
func TestShardCommands(t *testing.T) {
	var seen int
	check := func(at, text string) {
		for _, typed := range toType.FindAllStringIndex(text, -1) {
			seen += checkFirst(t, at, text[typed[1]-len("firn shard"):])
		}
	}
	for _, dir := range []string{".", "../../shard/check", "../../shard/move", "../../shard/setup"} {
		inSource(t, dir, func(at string, n ast.Node) bool {
			if pair, ok := n.(*ast.KeyValueExpr); ok && slices.Contains([]string{"Short", "Long", "Example"}, nameOf(pair.Key)) {
				return false // prose
			}
			text, ok := constantText(n)
			check(at, text)
			return !ok
		})
	}
	paths, err := filepath.Glob("../../shard/install/*.sql")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, literal := range sqlText.FindAllStringSubmatch(string(source), -1) {
			check(path, formatted(literal[1]))
		}
	}
	if seen < 70 {
		t.Errorf("only %d commands were found", seen)
	}
}

// toType finds a command that a text says to type: it begins the text, or stands where a sentence or
// a choice begins.
var toType = regexp.MustCompile(`(?:^|[:;,] (?:or |and |then )?)firn shard\b`)

var sqlText = regexp.MustCompile(`'([^'\n]*firn shard[^'\n]*)'`)

func nameOf(n ast.Expr) string {
	if id, ok := n.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// A command of firn's that any text of the source or the prose of a page names has the
// flags that it is named with.
func TestNamedCommands(t *testing.T) {
	for _, dir := range []string{".", "../../lease", "../../internal/term", "../../pool", "../../sequence", "../../document", "../../shard", "../../store", "../../store/sqlite", "../../store/open", "../../server"} {
		inSource(t, dir, func(at string, n ast.Node) bool {
			text, ok := constantText(n)
			checkFlags(t, at, text)
			return !ok
		})
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" || strings.Contains(path, "decisions") {
			return err
		}
		page, err := os.ReadFile(path)
		for _, said := range inlineCode.FindAllString(fenced.ReplaceAllString(string(page), ""), -1) {
			checkFlags(t, path, strings.Trim(said, "`"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var inlineCode = regexp.MustCompile("`firn [^`]+`")

// inSource calls visit for the nodes of the source of a package, with where each is.
func inSource(t *testing.T, dir string, visit func(at string, n ast.Node) bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	files := token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			return n != nil && visit(files.Position(n.Pos()).String(), n)
		})
	}
}

func calleeOf(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// constantText is the text of a literal, or of several that are added. What is formatted
// into it is a word.
func constantText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(n.Value)
		return formatted(text), n.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		a, ok := constantText(n.X)
		b, ok2 := constantText(n.Y)
		if !ok2 {
			b = "x"
		}
		return a + b, ok && n.Op == token.ADD
	}
	return "", false
}

func formatted(text string) string {
	text = attachedVerb.ReplaceAllString(text, "$1") // flags, which begin with a space
	return verb.ReplaceAllString(text, "1")
}

var (
	attachedVerb = regexp.MustCompile(`([a-zA-Z])(%s)+`)
	verb         = regexp.MustCompile(`%[-+#0-9.*$\[\]]*[a-z]`)
)

// checkHint checks the commands of a hint, and returns how many there are.
func checkHint(t *testing.T, at, text string) (seen int) {
	t.Helper()
	for _, found := range mention.FindAllStringIndex(text, -1) {
		seen += checkFirst(t, at, text[found[0]:])
	}
	return seen
}

// checkFirst checks the command that a text begins with, and returns how many there are.
func checkFirst(t *testing.T, at, text string) (seen int) {
	t.Helper()
	cmd, length := commandAt(newRoot(), text)
	if cmd == nil && regexp.MustCompile(`^firn shard( 1| x| ?$)`).MatchString(text) {
		return 0 // one of several
	}
	if cmd == nil {
		t.Errorf("%s: no command: %s", at, text)
		return 0
	}
	args := text[length:]
	args = strings.ReplaceAll(args[:commandEnd(args)], "LIST", "1")
	cmd.InitDefaultHelpFlag()
	err := cmd.ParseFlags(shellWords(args))
	if errors.As(err, new(*pflag.InvalidValueError)) || slices.Contains(shellWords(args), "--help") {
		return 1 // a placeholder
	}
	if err == nil {
		given := cmd.Flags().Args()
		err = cmd.ValidateArgs(given)
		if last := len(given) - 1; err != nil && last >= 0 && given[last] == "x" { // of a value, which may be flags
			err = cmd.ValidateArgs(given[:last])
		}
	}
	if err != nil {
		t.Errorf("%s: firn%s%s: %v", at, text[4:length], args, err)
	}
	return 1
}

// checkFlags checks the flags of the commands of a text.
func checkFlags(t *testing.T, at, text string) {
	t.Helper()
	for _, found := range mention.FindAllStringIndex(text, -1) {
		cmd, length := commandAt(newRoot(), text[found[0]:])
		if cmd == nil {
			continue
		}
		cmd.InitDefaultHelpFlag()
		args := text[found[0]+length:]
		for _, word := range strings.Fields(args[:commandEnd(args)]) {
			if word == "--" || strings.HasPrefix(word, "|") {
				break
			}
			name, _, _ := strings.Cut(strings.Trim(word, "[]'\"`,;.:"), "=")
			if flag, ok := strings.CutPrefix(name, "--"); ok && flag != "" && cmd.Flag(flag) == nil {
				t.Errorf("%s: %s has no flag %s: %s", at, cmd.CommandPath(), name, text[found[0]:])
			}
		}
	}
}

// shellWords are the words of a text as a shell has them.
func shellWords(text string) (words []string) {
	var word strings.Builder
	quote, begun := rune(0), false
	for _, c := range text + " " {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, begun = c, true
		case quote == 0 && (c == ' ' || c == '\n'):
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			begun = true
			word.WriteRune(c)
		}
	}
	return words
}
