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
)

// A variable is a FIRN_ variable that sets a flag where the flag is not given.
type variable struct {
	flag     string
	commands []string // that read it, without "firn"; nil: each command with the flag
	about    string   // what it says, for help and docs
}

func (v variable) name() string { return variableName(v.flag) }

const environment = "FIRN_"

// variableName is what the variable of a flag is called, if it has one.
func variableName(flag string) string {
	return environment + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// The commands that lease a worker or say what a lease would be; and the first of
// them without workers hold, whose program has a generator of its own.
var (
	leaseCommands = append(drawCommands, "workers hold")
	drawCommands  = []string{"next", "doctor", "config print"}
)

// The commands that create a pool.
var createCommands = []string{"pool create", "pool ensure"}

// variables are all variables that firn reads. A flag is here only if it describes
// where firn runs and means the same in each of its commands. What a person claims
// or confirms (--new, --yes, --write, ...) is not: a variable that somebody has set
// on another day cannot vouch for anything. --worker is not either: FIRN_WORKER is
// what workers hold tells its command.
var variables = []variable{
	{"config", nil, "the config"},
	{"json", nil, "print JSON"},
	{"store", nil, "where records are kept"},
	{"pool", slices.Concat(leaseCommands, createCommands, []string{"serve", "pool show", "pool set", "workers release", "encode"}), "the pool"},
	{"layout", slices.Concat(leaseCommands, createCommands, []string{"decode", "encode", "verify"}), "the layout of the ids"},
	{"lanes", drawCommands, "how many workers to hold"},
	{"renew", leaseCommands, "how often the lease is extended"},
	{"ttl", leaseCommands, "when others may take the worker"},
	{"outage", slices.Concat(leaseCommands, createCommands, []string{"store recover"}), "how long ids go on without the store"},
	{"borrow", drawCommands, "how far ids may run ahead of the clock"},
	{"wait", leaseCommands, "how long to wait for a worker"},
	{"file", drawCommands, "the grant file"},
	{"keys", []string{"next", "decode", "public encode"}, "the keys of public forms"},
	{"resp", []string{"serve", "config print"}, "where the server listens for the Redis protocol"},
	{"http", []string{"serve", "config print"}, "where the server listens for HTTP"},
	{"admin", []string{"serve", "config print"}, "where the server shows metrics and probes"},
	{"names", []string{"serve", "config print"}, "what clients and proxies call the server"},
	{"server", nil, "servers with shards, NAME=URL with a space between them"},
	{"reach", nil, "how servers with shards reach each other, SERVER=URL"},
	{"db", []string{"segments import"}, "the other system's database"},
}

// variableOf returns the variable that a flag of a command is taken from.
func variableOf(cmd *cobra.Command, flag string) (name string, ok bool) {
	_, command, _ := strings.Cut(cmd.CommandPath(), " ")
	for _, v := range variables {
		if v.flag == flag && (v.commands == nil || slices.Contains(v.commands, command)) {
			return v.name(), true
		}
	}
	return "", false
}

// variableNames are the names of all variables.
func variableNames() []string {
	var names []string
	for _, v := range variables {
		names = append(names, v.name())
	}
	return names
}

// fromVariable is the annotation of a flag that was set from a variable.
const fromVariable = "firn_variable"

// fromEnvironment sets the flags that were not given from their variables. A
// variable or flag that is given and empty is an error: it is nearly always one of a
// script that nobody has set, and going on would take another store or pool.
func fromEnvironment(cmd *cobra.Command) error {
	var first error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name, ok := variableOf(cmd, f.Name)
		if !ok || first != nil {
			return
		}
		value, set := os.LookupEnv(name)
		switch {
		case f.Changed && f.Value.Type() == "string" && f.Value.String() == "":
			first = ui.Bad("--%s is empty", f.Name).Hint("leave --%s out, or give it a value", f.Name)
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
// out: Kubernetes, for services called firn; firn's tests; and workers hold, for its
// command.
func strayVariables(root *cobra.Command, environ []string) []strayVariable {
	known, flags := variableNames(), flagVariables(root)
	_, held := lookup(environ, variableName("worker"))
	var all []strayVariable
	for _, one := range environ {
		name, value, _ := strings.Cut(one, "=")
		switch {
		case !strings.HasPrefix(name, environment), slices.Contains(known, name),
			name == variableName("worker"), ofKubernetes.MatchString(name), ofTests.MatchString(name),
			held && digits.MatchString(value): // a worker field of the layout
			continue
		}
		v := strayVariable{name: name}
		if flag, ok := flags[name]; ok {
			v.do = "only the flag --" + flag + " counts"
		} else if best := nearest.Name(name, known); best != "" {
			v.do = "is it " + best + "?"
		}
		all = append(all, v)
	}
	return all
}

var (
	digits = regexp.MustCompile(`^[0-9]+$`)
	// What Kubernetes tells each pod of services called firn and firn-X.
	ofKubernetes = regexp.MustCompile(`^FIRN_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)
	// What firn's own tests and their servers are told: docs/internals.md.
	ofTests = regexp.MustCompile(`^FIRN_(TEST_\w+|\w+_TEST_\w+|DRAW_\w+|REQUIRE_SERVERS|INSTALL_SERVERS|CI|LONG|MODELS|HELPER|` +
		`MOVE_CHILD|SETUP_CHILD|MOVES_ORDER|STRICT_ON|SCREENSHOTS|SCHEDULES|PICTURES)$`)
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
	add := func(f *pflag.Flag) { all[variableName(f.Name)] = f.Name }
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
var ownWarnings = []string{"firn serve", "firn doctor", "firn workers hold"}

// prepare is what happens before a command runs.
func prepare(cmd *cobra.Command, _ []string) error {
	if strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) {
		return nil // a shell asks, while somebody types
	}
	if !slices.Contains(ownWarnings, cmd.CommandPath()) {
		warnOfVariables(cmd)
	}
	if !slices.Contains(ownSignals, cmd.CommandPath()) {
		ctx, _ := ui.UntilSignal(cmd.Context()) // its end is that of run
		cmd.SetContext(ctx)
	}
	return fromEnvironment(cmd)
}

// ownSignals are the commands whose context no signal ends: those that handle signals
// themselves, and those that only read and print, which the first signal ends at once.
var ownSignals = []string{"firn serve", "firn workers hold", "firn decode", "firn encode", "firn verify", "firn public encode"}

// variablesHelp lists the variables, for the help of firn.
func variablesHelp() string {
	var b strings.Builder
	width := 0
	for _, name := range variableNames() {
		width = max(width, len(name))
	}
	for _, v := range variables {
		b.WriteString("  " + v.name() + strings.Repeat(" ", width+3-len(v.name())) + v.about + "\n")
	}
	return b.String()
}
