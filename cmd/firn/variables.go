package main

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/variable"
)

// The commands that lease a worker or say what a lease would be; and the first of
// them without run, whose program has a generator of its own.
var (
	leaseCommands = append(drawCommands, "run", "agent")
	drawCommands  = []string{"next", "doctor", "config show"}
)

// The commands that create a pool.
var createCommands = []string{"pool create", "pool ensure"}

// readBy are the commands that read a variable, without "firn", by the flag that it sets. One
// that is not here is read by each command with the flag.
var readBy = map[string][]string{
	"pool":       slices.Concat(leaseCommands, createCommands, []string{"serve", "pool show", "pool set", "worker release", "backfill"}),
	"layout":     slices.Concat(leaseCommands, createCommands, []string{"decode", "encode", "backfill", "verify"}),
	"lanes":      append(drawCommands, "agent"),
	"renew":      leaseCommands,
	"ttl":        leaseCommands,
	"outage":     slices.Concat(leaseCommands, createCommands, []string{"store recover"}),
	"max-ahead":  append(drawCommands, "agent"),
	"wait":       append(drawCommands, "run"),
	"grant-file": drawCommands,
	"keys":       {"next", "decode", "public encode"},
	"resp":       {"serve", "config show"},
	"http":       {"serve", "config show"},
	"admin":      {"serve", "config show"},
	"names":      {"serve", "config show"},
	"db":         {"series import"},
}

// variableOf returns the variable that a flag of a command is taken from.
func variableOf(cmd *cobra.Command, flag string) (name string, ok bool) {
	_, command, _ := strings.Cut(cmd.CommandPath(), " ")
	commands, some := readBy[flag]
	i := slices.IndexFunc(variable.All, func(v variable.Variable) bool { return v.Key == flag })
	if i < 0 || some && !slices.Contains(commands, command) {
		return "", false
	}
	return variable.Name(flag), true
}

// variableNames are the names of all variables.
func variableNames() []string {
	var names []string
	for _, v := range variable.All {
		names = append(names, v.Name())
	}
	return names
}

// fromVariable is the annotation of a flag that was set from a variable.
const fromVariable = "firn_variable"

// fromEnvironment sets the flags that were not given from their variables. A
// variable or flag that is given and empty is an error: it is nearly always one of a
// script that nobody has set, and with the default firn would take another store, pool or shard.
func fromEnvironment(cmd *cobra.Command) error {
	var first error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if first != nil {
			return
		}
		if f.Changed && f.Value.Type() == "string" && f.Value.String() == "" {
			first = ui.Bad("--%s is empty", f.Name).Hint("leave --%s out, or give it a value", f.Name)
			return
		}
		name, ok := variableOf(cmd, f.Name)
		if !ok {
			return
		}
		value, set := os.LookupEnv(name)
		switch {
		case f.Changed || !set:
		case value == "":
			first = ui.Bad("the variable %s is set and empty", name).Hint("unset %s, or give it a value", name)
		default:
			if err := cmd.Flags().Set(f.Name, value); err != nil {
				first = valueError(name, err)
				return
			}
			f.Annotations = map[string][]string{fromVariable: {name}}
		}
	})
	if first != nil {
		return first
	}
	return placeStore(cmd)
}

// A strayVariable is a FIRN_ variable that firn does not read.
type strayVariable struct{ name, do string }

func (v strayVariable) text() string { return "firn does not read the variable " + v.name }

// strayVariables are those of an environment. What others set for a reason is left
// out: Kubernetes, for services called firn; firn's tests; and run, for its
// command.
func strayVariables(root *cobra.Command, environ []string) []strayVariable {
	known, flags := variableNames(), flagVariables(root)
	_, held := lookup(environ, variable.Name("worker"))
	var all []strayVariable
	for _, one := range environ {
		name, value, _ := strings.Cut(one, "=")
		switch {
		case !strings.HasPrefix(name, variable.Prefix), slices.Contains(known, name),
			name == variable.Name("worker"), variable.OfKubernetes(name), ofTests.MatchString(name),
			held && digits.MatchString(value): // a worker field of the layout
			continue
		}
		v := strayVariable{name: name}
		if flag, ok := flags[name]; ok {
			v.do = "only the flag --" + flag + " counts"
		} else if variable.MistypedStore(name) {
			v.do = "is it " + variable.Name("store") + "?"
		} else if best := nearest.Name(name, known); best != "" {
			v.do = "is it " + best + "?"
		}
		all = append(all, v)
	}
	return all
}

var (
	digits = regexp.MustCompile(`^[0-9]+$`)
	// What firn's own tests and their servers are told: docs/internals.md.
	ofTests = regexp.MustCompile(`^FIRN_(TEST_\w+|\w+_TEST_\w+|DRAW_\w+|REQUIRE_SERVERS|INSTALL_SERVERS|CI|LONG|MODELS|HELPER|` +
		`MOVE_CHILD|SETUP_CHILD|MOVES_ORDER|STRICT_ON|SCREENSHOTS|SCHEDULES|PICTURES|GOLDEN)$`)
)

// lookup finds a variable of an environment.
func lookup(environ []string, name string) (value string, ok bool) {
	for _, one := range environ {
		if value, ok = strings.CutPrefix(one, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// flagVariables are the names that variables of all flags would have, with the flag.
func flagVariables(cmd *cobra.Command) map[string]string {
	all := map[string]string{}
	add := func(f *pflag.Flag) { all[variable.Name(f.Name)] = f.Name }
	cmd.Flags().VisitAll(add)
	cmd.PersistentFlags().VisitAll(add)
	for _, c := range cmd.Commands() {
		for name, flag := range flagVariables(c) {
			all[name] = flag
		}
	}
	return all
}

// warnOfVariables prints a warning for each variable that firn does not read.
func warnOfVariables(cmd *cobra.Command) {
	for _, v := range strayVariables(cmd.Root(), os.Environ()) {
		text := v.text()
		if v.do != "" {
			text += "; " + v.do
		}
		ui.PrintWarning(cmd.ErrOrStderr(), "%s", text)
	}
}

// ownWarnings are the commands that say themselves what variables firn does not
// read: in a log, as a finding, or once for two processes.
var ownWarnings = []string{"firn serve", "firn doctor", "firn run", "firn agent"}

// prepare is what happens before a command runs.
func prepare(cmd *cobra.Command, _ []string) error {
	if strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) {
		return nil // a shell asks, while somebody types
	}
	err := fromEnvironment(cmd)
	if m, ok := cmd.ErrOrStderr().(*ui.Messages); ok {
		m.AsJSON = wantsJSON(cmd)
	}
	if err := noFlagAsValue(cmd); err != nil {
		return err
	}
	if !slices.Contains(ownWarnings, cmd.CommandPath()) {
		warnOfVariables(cmd)
	}
	if !slices.Contains(ownSignals, cmd.CommandPath()) {
		untilSignal(cmd)
	}
	return err
}

// noFlagAsValue returns an error where a flag took the next flag as its value: its own value is
// missing, and the next flag would not count.
func noFlagAsValue(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if all, ok := f.Value.(pflag.SliceValue); ok {
			values = all.GetSlice()
		}
		for _, value := range values {
			name, _, _ := strings.Cut(strings.TrimPrefix(value, "--"), "=")
			if strings.HasPrefix(value, "--") && flagOf(cmd, name) != nil && err == nil {
				err = ui.Bad("--%s needs a value, and %s is a flag", f.Name, value)
			}
		}
	})
	return err
}

// ownSignals are the commands that handle signals themselves.
var ownSignals = []string{"firn serve", "firn run", "firn agent"}

// variablesHelp lists the variables, for the help of firn.
func variablesHelp() string {
	var b strings.Builder
	width := 0
	for _, name := range variableNames() {
		width = max(width, len(name))
	}
	for _, v := range variable.All {
		b.WriteString("  " + v.Name() + strings.Repeat(" ", width+3-len(v.Name())) + v.About + "\n")
	}
	return b.String()
}
