package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/phrase"
)

// dryAgain is a command with the flags that it was given, and --dry-run: with others it would make another plan. Flags
// that every hint repeats are added where the hint is printed.
func dryAgain(cmd *cobra.Command, command string) string {
	var b strings.Builder
	b.WriteString(command)
	h := hinter{cmd: cmd}
	own := cmd.LocalNonPersistentFlags()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if own.Lookup(f.Name) == nil || !saidBy(f) || slices.Contains(repeatable, f.Name) || slices.Contains([]string{"dry-run", "from", "yes"}, f.Name) {
			return
		}
		for _, value := range h.values(f) {
			b.WriteString(" --" + f.Name)
			if f.Value.Type() != "bool" {
				b.WriteString(" " + phrase.ShellWord(value))
			}
		}
	})
	return b.String() + " --dry-run"
}
