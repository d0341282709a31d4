package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var fenced = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```")

// notTyped are the pages with commands that TestPages does not type, each with the reason.
var notTyped = map[string]string{
	"docs/reference/firn-yaml.md": "TestConfigurationPageIsTyped types its commands, and compares what each series gives",
	"docs/reference/commands.md":  "it is written from the help of each command, whose examples are in the scripts of testdata",
	"CONTRIBUTING.md":             "make runs all tests, this one too",
	"docs/model/README.md":        "searches of a model: minutes to hours, of make model",
	"docs/proof/figures.md":       "benchmarks: minutes each",
	"docs/proof/moves.md":         "minutes to hours, of make moves",
	"docs/proof/performance.md":   "benchmarks: minutes each",
	"docs/proof/repeat.md":        "minutes to hours, of make sim, mutants, model and torture",
	"docs/proof/torture.md":       "minutes, of make torture",
}

var (
	fencedElsewhere = regexp.MustCompile("(?ms)^<!-- run by: \\S+ -->\n```[a-z]*\n(.*?)^```")

	shellBlock = regexp.MustCompile("(?m)^```(?:sh|bash|shell|console)$")
	typedLine  = regexp.MustCompile(`(?m)^\s*(\$ |firn )`)
	runBy      = regexp.MustCompile(`(?m)^<!-- run by: (\S+) -->$`)
)

// hasCommands reports whether a page shows commands to type.
func hasCommands(text string) bool {
	if shellBlock.MatchString(text) {
		return true
	}
	return slices.ContainsFunc(fenced.FindAllStringSubmatch(text, -1), func(block []string) bool { return typedLine.MatchString(block[1]) })
}

// allPages are the pages of the repository that people read, by their paths in it.
func allPages(t *testing.T) (pages map[string]string) {
	t.Helper()
	pages = map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md"} {
		paths, err := filepath.Glob("../../" + pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.ToSlash(strings.TrimPrefix(filepath.ToSlash(path), "../../"))
			if filepath.Dir(name) != "docs/decisions" && filepath.Base(name) != "CHANGELOG.md" {
				pages[name] = string(text)
			}
		}
	}
	return pages
}

// typedPages are the pages whose commands TestPages types: all that have commands, and are not in notTyped.
func typedPages(t *testing.T) (names []string) {
	t.Helper()
	for name, text := range allPages(t) {
		if hasCommands(text) && notTyped[name] == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A page that is in notTyped has commands. A block that another test types names a test that is there, in a file that
// names the page.
func TestPagesOfOtherTests(t *testing.T) {
	pages := allPages(t)
	for name, why := range notTyped {
		if !hasCommands(pages[name]) || why == "" {
			t.Errorf("notTyped has %s, %q: the page has no commands, or the reason is missing", name, why)
		}
	}
	tests := map[string]string{} // by the name of the test: the file
	paths, err := filepath.Glob("*_test.go")
	more, err2 := filepath.Glob("../../*/*/*_test.go")
	if err != nil || err2 != nil || len(paths) == 0 || len(more) == 0 {
		t.Fatal(err, err2)
	}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, path := range append(paths, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] += string(text)
		}
	}
	for name, text := range pages {
		for _, m := range runBy.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(tests[m[1]], name) {
				t.Errorf("%s: run by %s: there is no such test, or its file does not name the page", name, m[1])
			}
		}
	}
}

// Every firn command line in the documentation and in help is one that exists,
// with flags that exist.
func TestDocumentedCommands(t *testing.T) {
	const root = "../.."
	typed := typedPages(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "dist") { // make site has copies there
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" || filepath.Base(path) == "commands.md" { // that is help
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		blocks := fenced
		if slices.Contains(typed, strings.TrimPrefix(filepath.ToSlash(path), root+"/")) {
			blocks = fencedElsewhere // the others are typed, and the shell knows more than this test
		}
		for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
			checkCommands(t, path, block[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Example == "" || cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: help needs an example, and a line without a full stop", cmd.CommandPath())
		}
		checkCommands(t, cmd.CommandPath()+" --help", cmd.Example)
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRoot())
}

// spanned is a command in the text of a page.
var spanned = regexp.MustCompile("`firn ([^`]+)`")

// Each command of firn in the text of a page is one that exists, with flags that exist.
func TestCommandsInText(t *testing.T) {
	seen := 0
	for page, text := range allPages(t) {
		for _, m := range spanned.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			seen++
			words, _, _ := strings.Cut(" "+m[1]+" ", " -- ") // the rest is a command of somebody else
			cmd, rest, err := newRoot().Find(strings.Fields(words))
			if err != nil || !cmd.HasParent() && !strings.HasPrefix(m[1], "--") { // firn itself has only --help and --version
				t.Errorf("%s: `firn %s`: there is no such command", page, m[1])
				continue
			}
			cmd.InitDefaultHelpFlag()
			for _, word := range rest {
				name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
				if strings.HasPrefix(word, "--") && cmd.Flag(name) == nil {
					t.Errorf("%s: `firn %s`: there is no such flag: %s", page, m[1], word)
				}
			}
		}
	}
	if seen < 300 {
		t.Errorf("%d commands were found", seen)
	}
}

// checkCommands checks the lines of text that call firn.
func checkCommands(t *testing.T, where, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		for i, w := range words {
			words[i] = strings.Trim(w, `'"`)                      // none of ours has a space in it
			if strings.ContainsAny(w[:1], "|<>&#;") || w == `\` { // the rest is the shell's
				words = words[:i]
				break
			}
		}
		if len(words) == 0 || words[0] != "firn" {
			continue
		}
		cmd, rest, err := newRoot().Find(words[1:])
		switch {
		case err != nil, cmd.HasSubCommands() && cmd.HasParent() && cmd.Name() != "serve": // the others only group
			t.Errorf("%s: there is no such command: %s", where, line)
		default:
			cmd.InitDefaultHelpFlag()
			cmd.InitDefaultVersionFlag()
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %s: %v", where, strings.TrimSpace(line), err)
			}
		}
	}
}

// The one rule stands in the help of firn pool.
func TestTheRuleInHelp(t *testing.T) {
	out, errs, code := called(t, "pool", "--help")
	if code != 0 || !strings.Contains(out, "Ids that must never be equal come from one pool of one store.") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// Every command is run by some test: the name of each is in a script, or in a test in Go as
// arguments.
func TestEveryCommand(t *testing.T) {
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "testdata/*.txt", "testdata/*/*.txt", "../../internal/readme/*_test.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	seen := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		if cmd.HasSubCommands() {
			return
		}
		seen++
		words := strings.Fields(cmd.CommandPath())[1:]
		run := regexp.MustCompile("(?m)(firn |[\"`])" + strings.Join(words, "(?: |\", \")") + "(?:[ \"`]|$)")
		if !run.MatchString(tests.String()) {
			t.Errorf("no test runs %s", cmd.CommandPath())
		}
	}
	walk(newRoot())
	if seen < 40 {
		t.Errorf("%d commands were found", seen)
	}
}

// Every command that the README shows is there, so TestEveryCommand has found a test of it.
func TestReadmeCommands(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?m)(?:^\\$ |`)(firn [a-z][a-z ]*)").FindAllStringSubmatch(string(text), -1)
	if len(shown) < 12 {
		t.Errorf("%d commands were found", len(shown))
	}
	for _, m := range shown {
		if to, _, err := newRoot().Find(strings.Fields(m[1])[1:]); err != nil || !to.HasParent() {
			t.Errorf("the README shows %s, which is no command", m[1])
		}
	}
}
