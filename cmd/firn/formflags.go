package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
)

// keysBack comes before any hint to make a key: what a lost key has written cannot be read
// with a new one, and nothing tells that the new one is another.
const keysBack = "if there was a key before, put it back, from a backup or from another host: without it nothing that it has written can be read"

// firstKey says how a first key is made.
func firstKey(path string) string {
	return "only if there never was a key: firn public keygen --out " + phrase.ShellWord(path)
}

// addForm adds --as and --keys to a command that writes or reads public forms.
func addForm(cmd *cobra.Command, usage string) {
	cmd.Flags().String("as", "", usage)
	cmd.Flags().String("keys", "", "the keys of a cipher or of opaque ids: a file, or env:NAME")
	if err := cmd.RegisterFlagCompletionFunc("as", completeForms); err != nil {
		panic(err) // the flag is not there
	}
}

func completeForms(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all := []cobra.Completion{cobra.CompletionWithDesc(config.AsConfigured, "what firn.yaml says of the series")}
	for _, k := range config.FormKinds {
		all = append(all, cobra.CompletionWithDesc(k.Name, k.About))
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// seriesHint says how a command is told of which series the ids are: by --series, or by the argument of
// firn next, with the form as it was given. The prefix of an opaque id often is the name of its series.
func seriesHint(cmd *cobra.Command) string {
	if cmd == nil || flagOf(cmd, "series") != nil {
		return "--series NAME"
	}
	flags := ""
	for _, flag := range []string{"as", "keys"} {
		if f := flagOf(cmd, flag); f != nil && saidBy(f) {
			flags += " --" + flag + " " + phrase.ShellWord(f.Value.String())
		}
	}
	name, prefixed := "", false
	if as := flagOf(cmd, "as"); as != nil {
		name, prefixed = strings.CutPrefix(as.Value.String(), "opaque:")
	}
	if !prefixed || !config.IsSeriesName(name) {
		return "with the name of the series: " + cmd.CommandPath() + " NAME" + flags
	}
	return "if they are ids of the series " + name + ": " + cmd.CommandPath() + " " + phrase.ShellWord(name) + flags
}
