package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
)

// This file writes help: the commands in four groups, and flags in one style.

// helpGroups are the parts of the help of firn, each with its commands in order.
var helpGroups = []struct {
	title    string
	commands []string
}{
	{"Ids", []string{"next", "decode", "encode", "backfill", "verify", "plan", "layout", "public"}},
	{"Run", []string{"serve", "run", "agent", "token"}},
	{"Operate", []string{"pool", "worker", "series", "store", "doctor", "config", "version"}},
	{"Shards", []string{"shard"}},
}

// firstFlags come before all others in help: those that somebody needs who begins.
var firstFlags = []string{
	"count", "rate", "workers", "years", "time", "last", "layout", "kind", "resp", "http", "admin", "query", "db", "key", "shard", "from", "to",
	"store", "pool", "server", "dry-run", "yes",
}

// valueNames are what values are called in help, where that is not the name of the flag.
var valueNames = map[string]string{
	"store": "URL", "db": "URL", "config": "FILE", "out": "FILE", "bounds": "FILE", "keys": "FILE|env:NAME", "as": "FORM", "query": "SQL",
	"http": "ADDRESS", "resp": "ADDRESS", "admin": "ADDRESS", "listen": "ADDRESS", "mode": "MODE", "gone": "SERVER", "to": "SERVER", "from": "SERVER", "drain": "SERVER",
	"by": "size|rate", "set": "FIELD=N", "per-table": "TABLE,...", "grant": "ROLE,...", "role": "ROLE,...", "rights": "RIGHT,...", "may-repeat": "POOL",
	"names": "NAME,...", "above": "ID", "map-file": "FILE", "keys-by": "SCHEME",
}

func init() { cobra.EnableCommandSorting = false } // they are in the order of help

// setHelp makes a command and all below it print help in this style.
func setHelp(root *cobra.Command) {
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usageOf(cmd))
		return err
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		printHelp(cmd.OutOrStdout(), cmd, messagesAsJSON(cmd)) // the error is that of standard output
	})
	root.SetVersionTemplate(`{{if .ErrOrStderr.AsJSON}}{"version":"{{.Version}}"}{{else}}firn {{.Version}}{{end}}` + "\n")
}

// messagesAsJSON reports whether JSON was asked for, also before the flags and variables are read.
func messagesAsJSON(cmd *cobra.Command) bool {
	m, ok := cmd.ErrOrStderr().(*ui.Messages)
	return ok && m.AsJSON
}

// printHelp prints the help of a command.
func printHelp(out io.Writer, cmd *cobra.Command, asJSON bool) error {
	text := strings.TrimRight(cmp.Or(cmd.Long, cmd.Short), "\n") + "\n\n" + usageOf(cmd)
	if asJSON {
		return json.NewEncoder(out).Encode(struct {
			Command string `json:"command"`
			Help    string `json:"help"`
		}{cmd.CommandPath(), text})
	}
	_, err := io.WriteString(out, text)
	return err
}

// usageOf is what stands below the description of a command.
func usageOf(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	} else {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if !cmd.HasParent() {
		width := widestPath(cmd)
		for _, g := range helpGroups {
			fmt.Fprintf(&b, "\n%s:\n", g.title)
			for _, name := range g.commands {
				if sub, _, err := cmd.Find([]string{name}); err == nil {
					b.WriteString(commandLines(sub, width))
				}
			}
		}
	} else if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n" + commandLines(cmd, widestPath(cmd)))
	}
	if text := flagLines(cmd.LocalFlags()); text != "" {
		b.WriteString("\nFlags:\n" + text)
	}
	if text := flagLines(cmd.InheritedFlags()); text != "" {
		b.WriteString("\nGlobal flags:\n" + text)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nHelp of a command: %s COMMAND --help\n", cmd.CommandPath())
	}
	return b.String()
}

// commandLines are the lines of a command, or of those below it.
func commandLines(cmd *cobra.Command, width int) string {
	if !cmd.HasAvailableSubCommands() {
		return fmt.Sprintf("  %-*s   %s\n", width, pathOf(cmd), cmd.Short)
	}
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			b.WriteString(commandLines(c, width))
		}
	}
	return b.String()
}

// pathOf is what somebody types for a command: "pool show [POOL]".
func pathOf(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path + argumentsOf(cmd.Use)
}

// widestPath is the longest path of a command and all below it.
func widestPath(cmd *cobra.Command) int {
	width := 0
	for _, c := range cmd.Commands() {
		switch {
		case !c.IsAvailableCommand() || c.Name() == "help" || c.Name() == "completion":
		case c.HasAvailableSubCommands():
			width = max(width, widestPath(c))
		default:
			width = max(width, len(pathOf(c)))
		}
	}
	return width
}

// argumentsOf are the arguments of a usage line, without flags: " [POOL]".
func argumentsOf(use string) string {
	_, rest, _ := strings.Cut(use, " ")
	var b strings.Builder
	isValue := false
	for word := range strings.FieldsSeq(rest) {
		switch flag := strings.HasPrefix(word, "--") && word != "--" || strings.HasPrefix(word, "[--"); {
		case word == "[FLAGS]" || flag:
			isValue = flag && !strings.HasSuffix(word, "]")
		case isValue:
			isValue = false
		default:
			b.WriteString(" " + word)
		}
	}
	return b.String()
}

// flagLines are the lines of flags, those first that most people need.
func flagLines(flags *pflag.FlagSet) string {
	flags.SortFlags = false
	var all []*pflag.Flag
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all = append(all, f)
		}
	})
	rank := func(f *pflag.Flag) int {
		if i := slices.Index(firstFlags, f.Name); i >= 0 {
			return i
		}
		if f.Name == "help" || f.Name == "version" {
			return len(firstFlags) + 1
		}
		return len(firstFlags)
	}
	slices.SortStableFunc(all, func(a, b *pflag.Flag) int { return cmp.Compare(rank(a), rank(b)) })
	lines := make([][2]string, len(all))
	width := 0
	for i, f := range all {
		lines[i] = flagLine(f)
		width = max(width, len(lines[i][0]))
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%-*s   %s\n", width, l[0], l[1])
	}
	return b.String()
}

// flagLine is a flag with its value, and what it does with its default.
func flagLine(f *pflag.Flag) [2]string {
	left := "      --" + f.Name
	if f.Shorthand != "" {
		left = "  -" + f.Shorthand + ", --" + f.Name
	}
	_, usage := pflag.UnquoteUsage(f)
	if name := valueName(f); name != "" {
		left += " " + name
	}
	if text := defaultText(f); text != "" {
		usage += " (" + text + ")"
	}
	return [2]string{left, usage}
}

// valueName is what the value of a flag is called; "" of one that is on or off.
func valueName(f *pflag.Flag) string {
	kind := f.Value.Type()
	quoted, usage := pflag.UnquoteUsage(f)
	switch name, ok := valueNames[f.Name]; {
	case kind == "bool":
		return ""
	case usage != f.Usage: // it stands in the text, between backquotes
		return quoted
	case strings.ToUpper(kind) == kind, kind == "strict", kind == "accept": // said by its type
		return kind
	case ok:
		return name
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "float"):
		return "N"
	case kind == "duration":
		return "DURATION"
	}
	return strings.ToUpper(f.Name)
}

// defaultText is the default of a flag, where its text does not say it.
func defaultText(f *pflag.Flag) string {
	if d, err := time.ParseDuration(f.DefValue); err == nil && f.Value.Type() == "duration" && d > 0 {
		return phrase.Duration(d)
	}
	switch text := strings.Trim(f.DefValue, "[]"); text {
	case "", "0", "0s", "false", "-1":
		return ""
	default:
		return text
	}
}
