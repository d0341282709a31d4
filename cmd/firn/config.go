package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Check firn.yaml, or show what is in force",
		Example: "  firn config check",
		RunE:    needsCommand,
	}
	cmd.AddCommand(newConfigCheck(), newConfigShow())
	return cmd
}

func newConfigCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report every fault of a firn.yaml",
		Long: `Report everything that is wrong with a config, a line for each fault with its line
and column. Without FILE that is the one that would be used: --config, FIRN_CONFIG,
./firn.yaml, $XDG_CONFIG_HOME/firn/firn.yaml (~/.config), /etc/firn/firn.yaml, the
first that is there. The key files of public forms are read; nothing else is opened that
the file names: firn doctor compares the file with the store.

The exit code is 3 if there is a fault. Two documents that could give the same text are a
warning, which changes no exit code.`,
		Example: `  firn config check
  firn config check /etc/firn/firn.yaml --json`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var place config.Location
			if len(args) > 0 {
				place.Path = args[0]
			} else {
				var err error
				if place, err = findConfig(cmd); err != nil {
					return err
				}
			}
			if place.Path == "" {
				return ui.Failed("there is no config to check").Hint("firn config check FILE")
			}
			return checkConfig(cmd.Context(), place, ui.Verdict{Writer: cmd.OutOrStdout()}, wantsJSON(cmd))
		},
	}
}

// A faultLine is a fault as --json prints it.
type faultLine struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Fault  string `json:"fault,omitempty"`

	Warning string `json:"warning,omitempty"` // instead of Fault
}

func checkConfig(ctx context.Context, place config.Location, out io.Writer, asJSON bool) error {
	path := place.Path
	c, err := ui.Within(ctx, func() (*config.File, error) {
		c, err := place.Read()
		if err == nil {
			err = c.CheckKeys(withAdvice)
		}
		return c, err
	})
	var wrong *config.FaultsError
	switch {
	case errors.As(err, new(*config.NoFileError)):
		return ui.Bad("%w", err).Hint("name a file that is there, or no file, to check the one that commands read: firn config check")
	case errors.As(err, &wrong) && asJSON:
		enc := json.NewEncoder(out)
		for _, f := range wrong.Faults {
			if err := enc.Encode(faultLine{File: path, Line: f.Line, Column: f.Column, Fault: f.Text}); err != nil {
				return err
			}
		}
	case errors.As(err, &wrong):
		if _, err := fmt.Fprintln(out, wrong); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		if err := printTwins(path, c.Twins(), out, asJSON); err != nil || asJSON {
			return err
		}
		_, err = fmt.Fprintf(out, "%s: ok: %s, %d series\n", path, phrase.Plural(len(c.Pools), "pool"), len(c.Series))
		return err
	}
	return &ui.Failure{Code: ui.ExitFound, Err: ui.Rename(fmt.Sprintf("%s: %s", path, phrase.Plural(len(wrong.Faults), "fault")), wrong)}
}

// printTwins prints the warnings about documents that could give the same text.
func printTwins(path string, all []config.Fault, out io.Writer, asJSON bool) error {
	for _, f := range all {
		var err error
		if asJSON {
			err = json.NewEncoder(out).Encode(faultLine{File: path, Line: f.Line, Column: f.Column, Warning: f.Text})
		} else {
			_, err = fmt.Fprintf(out, "%s:%d:%d: warning: %s\n", path, f.Line, f.Column, f.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func newConfigShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show each setting and where it comes from",
		Long: `Show each setting and where it comes from: a FIRN_ variable, a line of firn.yaml, or the
default, in this order. A flag of a command goes before all of them. Passwords in URLs are
hidden.

The variables, each for the flag of its name:

` + variablesHelp(),
		Example: `  firn config show
  firn config show --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := onlyVariables(cmd); err != nil {
				return err
			}
			s, err := loadSettings(cmd)
			if err != nil {
				return err
			}
			all, err := s.Lines(implicitText())
			if err != nil {
				return err
			}
			return printSettings(cmd.OutOrStdout(), all, wantsJSON(cmd))
		},
	}
	addPool(cmd)
	addSeries(cmd, config.Sequence, config.Document)
	addListen(cmd)
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = true }) // they hold what variables say
	addStore(cmd)
	return cmd
}

// onlyVariables refuses the hidden flags: they are of commands that are about one pool or series.
func onlyVariables(cmd *cobra.Command) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Hidden && origin(f) == "--"+f.Name && err == nil {
			err = ui.Bad("unknown flag --%s", f.Name).Hint("%s --help", cmd.CommandPath())
		}
	})
	return err
}

func printSettings(out io.Writer, all []config.Line, asJSON bool) error {
	return ui.Emit(out, asJSON, []string{"SETTING", "VALUE", "FROM"}, all, func(v config.Line) []any { return []any{v.Key, v.Value, v.From} })
}

// implicitText returns the URL of the default store, or the reason why there is no default store.
func implicitText() string {
	path, err := whichstore.Default()
	if err != nil {
		return "none: " + err.Error()
	}
	return "sqlite:" + path
}
