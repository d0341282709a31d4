package main

import (
	"slices"
	"testing"
)

// Each command is in one group of the first help.
func TestHelpHasEveryCommand(t *testing.T) {
	in := map[string]int{}
	for _, g := range helpGroups {
		for _, name := range g.commands {
			in[name]++
		}
	}
	names := []string{}
	for _, c := range newRoot().Commands() {
		if c.IsAvailableCommand() && !slices.Contains([]string{"help", "completion"}, c.Name()) {
			names = append(names, c.Name())
		}
	}
	for _, name := range names {
		if in[name] != 1 {
			t.Errorf("%s is in %d groups of the help", name, in[name])
		}
		delete(in, name)
	}
	for name := range in {
		t.Errorf("the help has a group with %s, which is no command", name)
	}
}
