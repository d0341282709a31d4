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

// docPages are the pages whose every command is run, by TestPages.
var docPages = []string{"../../docs/coming-from/*.md", "../../docs/choosing.md", "../../docs/concepts.md", "../../docs/getting-started.md", "../../docs/guides/past-ids.md", "../../docs/guides/moving-to-postgresql.md", "../../docs/guides/kubernetes.md"}

// Every firn command line in the documentation and in help is one that exists,
// with flags that exist.
func TestDocumentedCommands(t *testing.T) {
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" || isRun(path) || filepath.Base(path) == "commands.md" { // that is help
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
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

// isRun reports whether a file is one of docPages.
func isRun(path string) bool {
	return slices.ContainsFunc(docPages, func(pattern string) bool {
		ok, err := filepath.Match(pattern, filepath.ToSlash(path))
		return ok && err == nil
	})
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
