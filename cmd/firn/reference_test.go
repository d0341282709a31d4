//go:build !windows

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const commandsPage = "../../docs/reference/commands.md"

// docs/reference/commands.md is what each command prints for --help. With -update it is written anew.
func TestCommandsPage(t *testing.T) {
	var page strings.Builder
	page.WriteString("# Commands\n\nWhat each command prints for `--help`. `firn --help` groups the commands: ids, run, operate, shards.\n")
	root := newRoot()
	addHelp(&page, root)
	got := page.String()
	if *updatePages {
		if err := os.WriteFile(commandsPage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the commands print for --help: go test ./cmd/firn -run TestCommandsPage -update", commandsPage)
	}
}

// addHelp adds a command that can be run, and those below it.
func addHelp(page *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden {
		return
	}
	if !cmd.HasSubCommands() || cmd.Runnable() && cmd.HasParent() {
		cmd.InitDefaultHelpFlag()
		var help strings.Builder
		printHelp(&help, cmd, false)
		fmt.Fprintf(page, "\n## %s\n\n```text\n%s\n```\n", cmd.CommandPath(), strings.TrimRight(help.String(), "\n"))
	}
	for _, c := range cmd.Commands() {
		addHelp(page, c)
	}
}
