package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/version"
)

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "firn",
		Short: "Generate, read and look after 64-bit ids",
		Long: `firn generates 64-bit ids that are unique, sort by time, and say which worker made them.
It reads the ids of other systems too.

The settings of a store, its pools and series can be in firn.yaml, or in variables, each
for the flag of its name: firn config show prints each setting and where it comes from.

The exit code is 0, 1 if it failed, 2 if what it was given is wrong, 3 if a check found a
problem. With --json an error is JSON too, on standard error:
docs/reference/exit-codes.md.`,
		Example: `  firn next -n 3
  firn decode 175928847299117063
  firn layout show twitter`,
		Version: version.Number,
		// Errors are printed in one place, report.
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true,
		PersistentPreRunE:  prepare,
	}
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().Bool("json", false, "print JSON, one object a line, also of errors")
	root.PersistentFlags().String("config", "", "the config (./firn.yaml, ~/.config/firn/firn.yaml or /etc/firn/firn.yaml)")
	root.AddCommand(newNext(), newDecode(), newEncode(), newBackfill(), newVerify(), newPlan(), newLayout(), newPublic())
	root.AddCommand(newRun(), newAgent(), newServe(), newToken())
	root.AddCommand(newPool(), newWorker(), newSeries(), newStore(), newDoctor(), newConfig(), newVersion())
	root.AddCommand(newShards())
	root.AddCommand(newCompletion())
	acceptList(root)
	readDecimal(root)
	setHelp(root)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	return root
}

// acceptList has each ls answer to list.
func acceptList(cmd *cobra.Command) {
	if cmd.Name() == "ls" {
		cmd.Aliases = append(cmd.Aliases, "list")
	}
	for _, c := range cmd.Commands() {
		acceptList(c)
	}
}

// readDecimal has the flags of all commands read numbers in decimal: 010 is ten, as a shard or a worker of
// that name is for a person, and not eight.
func readDecimal(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "int", "int64":
			f.Value = decimal{f.Value}
		}
	})
	for _, c := range cmd.Commands() {
		readDecimal(c)
	}
}

// A decimal is the value of a flag that is a whole number.
type decimal struct{ pflag.Value }

func (d decimal) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	return d.Value.Set(strconv.FormatInt(n, 10))
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help of a command",
		Example: "  firn help decode",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			topic.InitDefaultHelpFlag()
			return printHelp(cmd.OutOrStdout(), topic, wantsJSON(cmd))
		},
	}
}

// wantsJSON reports whether --json was given.
func wantsJSON(cmd *cobra.Command) bool {
	yes, err := cmd.Flags().GetBool("json")
	return yes && err == nil
}

// A layoutFlag is the value of --layout.
type layoutFlag struct{ firn.Layout }

func (l *layoutFlag) String() string {
	if !l.IsValid() {
		return ""
	}
	return layoutName(l.Layout)
}

func (l *layoutFlag) Set(text string) (err error) {
	l.Layout, err = firn.ParseLayout(text)
	return err
}

func (l *layoutFlag) Type() string { return "LAYOUT" }

// addLayout adds --layout with its completion.
func addLayout(cmd *cobra.Command, l *layoutFlag, usage string) {
	cmd.Flags().Var(l, "layout", usage)
	if err := cmd.RegisterFlagCompletionFunc("layout", completeLayouts); err != nil {
		panic(err) // the flag is not there
	}
}

// completeLayouts offers the presets, each with its fields.
func completeLayouts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	for name, l := range firn.Presets() {
		names = append(names, cobra.CompletionWithDesc(name, l.String()))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// layoutName is what a layout is called: the preset's name, or its spec.
func layoutName(l firn.Layout) string {
	if name := l.Name(); name != "" {
		return name
	}
	return l.String()
}

// flagError explains what is wrong with the flags of a command line.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && cmd.HasSubCommands() && cmd.Flags().NArg() > 0 {
		return unknownCommand(cmd, cmd.Flags().Arg(0)) // the flag may be one of the command that was meant
	}
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedName()
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if len(unknown.GetSpecifiedShortnames()) > 0 {
			return ui.Bad("unknown flag -%s", name).Hint("%s --help", cmd.CommandPath())
		}
		f := ui.Bad("unknown flag --%s", name)
		if name == "series" && strings.Contains(cmd.Use, " [SERIES]") {
			return f.Hint("the series is an argument: %s NAME", cmd.CommandPath())
		}
		if best := nearest.Name(name, names); best != "" && (isPlural(name, best) || !isFlag(cmd.Root(), name)) {
			f = f.Hint("is it --%s?", best)
		}
		return f.Hint("%s --help", cmd.CommandPath())
	}
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return valueError("--"+value.GetFlag().Name, value.Unwrap())
	}
	return ui.Bad("%s", err).Hint("%s --help", cmd.CommandPath())
}

// isFlag reports whether the command or one of its subcommands has a flag of that name: then it was not mistyped.
func isFlag(cmd *cobra.Command, name string) bool {
	return flagOf(cmd, name) != nil || slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return isFlag(c, name) })
}

// isPlural reports whether one of the names is the plural of the other, as of --shard and --shards.
func isPlural(a, b string) bool { return a == b+"s" || b == a+"s" }

// valueError explains what is wrong with the value of a flag or variable.
func valueError(name string, err error) error {
	var f *ui.Failure
	if errors.As(err, &f) {
		return err
	}
	var syntax *firn.SyntaxError
	if errors.As(err, &syntax) {
		return syntaxFailure(name, syntax)
	}
	var number *strconv.NumError
	switch {
	case errors.As(err, &number) && errors.Is(err, strconv.ErrRange):
		return ui.Bad("%s: %s is too large", name, number.Num)
	case errors.As(err, &number) && number.Func == "ParseBool":
		return ui.Bad("%s: %q is not true or false", name, number.Num)
	case errors.As(err, &number):
		return ui.Bad("%s: %q is not a whole number", name, number.Num)
	}
	return ui.Bad("%s: %s", name, strings.TrimPrefix(err.Error(), "time: "))
}

// explain turns the errors of cobra, which come before a command runs, into
// ours.
func explain(cmd *cobra.Command, err error) error {
	if errors.As(err, new(ui.Exit)) {
		return err
	}
	err = poolTrouble(cmd, forgotten(cmd, err))
	var f *ui.Failure
	if err != nil && !errors.As(err, &f) {
		if f := settingFailure(cmd, err); f != nil {
			return f
		}
	}
	if err == nil || errors.As(err, &f) {
		return err
	}
	if rest, ok := strings.CutPrefix(err.Error(), "unknown command "); ok {
		if quoted, err := strconv.QuotedPrefix(rest); err == nil {
			name, _ := strconv.Unquote(quoted)
			return unknownCommand(cmd, name)
		}
	}
	return err
}

func unknownCommand(cmd *cobra.Command, name string) error {
	f := ui.Bad("%s has no command %q", cmd.CommandPath(), name)
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	longer := cmd.SuggestionsFor(name) // commands whose names begin so
	if near := nearest.Name(name, names); near != "" {
		return f.HintGuess("is it %s %s?", cmd.CommandPath(), near)
	} else if len(longer) > 0 {
		return f.HintGuess("is it %s %s?", cmd.CommandPath(), longer[0])
	}
	return f.Hint("%s --help", cmd.CommandPath())
}

// needsCommand is the RunE of a command that only groups others.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return ui.Bad("%s needs a command: %s", cmd.CommandPath(), strings.Join(names, ", ")).
		Hint("%s --help", cmd.CommandPath())
}

// arguments returns the Args of a command that takes from least to most.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var f *ui.Failure
		switch {
		case len(args) < least:
			f = ui.Bad("%s needs %s", cmd.CommandPath(), phrase.Plural(least, "argument"))
		case len(args) > most && most == 0:
			f = ui.Bad("%s takes no arguments, not %q", cmd.CommandPath(), args[0])
		case len(args) > most:
			f = ui.Bad("%s takes %s, not %d", cmd.CommandPath(), phrase.Plural(most, "argument"), len(args))
		default:
			return nil
		}
		return f.Hint("%s --help", cmd.CommandPath())
	}
}
