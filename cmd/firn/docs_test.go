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
var docPages = []string{"../../docs/coming-from/*.md", "../../docs/choosing.md", "../../docs/past-ids.md"}

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
		if filepath.Ext(path) != ".md" || isRun(path) {
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
