package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/store"
)

func newSerials() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "serials",
		Short:   "Look after series of texts with a date and a counter",
		Example: "  firn serials ls",
		RunE:    needsCommand,
	}
	cmd.AddCommand(newSerialsLs(), newSerialsCreate(), newSerialsChange(), newSerialsRaise())
	return cmd
}

func newSerialsLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the serials of a store, and where each counter is",
		Long: `List the serials of a store: the pattern and zone of each, and of its last date the
last text that was granted, which need not have been used.`,
		Example: `  firn serials ls
  firn serials ls --store sqlite:/var/lib/app/ids.db --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd, func(st store.Store) error {
				all, err := document.List(cmd.Context(), st)
				if err != nil {
					return err
				}
				return printSerials(cmd.OutOrStdout(), all, wantsJSON(cmd))
			})
		},
	}
	addStore(cmd)
	return cmd
}

// A serialLine is a series as --json prints it.
type serialLine struct {
	Series  string `json:"series"`
	Pattern string `json:"pattern"`
	Zone    string `json:"zone,omitempty"`
	Period  string `json:"period,omitempty"`
	Count   int64  `json:"count,string"`
	Text    string `json:"text,omitempty"`
	Periods int    `json:"periods"`
}

func printSerials(out io.Writer, all []document.Info, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		for _, i := range all {
			if err := enc.Encode(serialLine{i.Name, i.Pattern, i.Zone, i.Period, i.Count, i.Text, i.Periods}); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERIES\tPATTERN\tZONE\tLAST")
	for _, i := range all {
		zone, last := i.Zone, i.Text
		if zone == "" {
			zone = "-"
		}
		if last == "" {
			last = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", i.Name, i.Pattern, zone, last)
	}
	return w.Flush()
}

func newSerialsCreate() *cobra.Command {
	var mayRepeat []string
	var after string
	cmd := &cobra.Command{
		Use:   "create SERIES",
		Short: "Begin a serial that there never was",
		Long: `Begin a serial in a store that other hosts share. Only who knows that there never
was one does that: a store that has forgotten it looks the same, and would give out
its texts again. A file of this host notices that by itself, and begins a serial with
its first text.

Run it once, in the step that creates the database. Never run it in the step that starts
a program, in an init container or an entrypoint: after the store was lost it would begin
the texts again. The step that starts a program needs no command: where the serial is
missing, the program fails and says so. To check before that: firn doctor, whose exit code
is 3 where the store does not have a serial of firn.yaml. If the serial is there already,
nothing changes, and the exit code is 1.

A serial whose texts could equal those of another serial of the store is refused:
--may-repeat NAME claims that the texts of both never meet.

The pattern and the zone are those of firn.yaml, or of the flags. A series that goes
on from another system's: firn serials raise.`,
		Example: `  firn serials create invoice
  firn serials create invoice --pattern 'INV-{yyyyMMdd}-{6}' --zone Asia/Ho_Chi_Minh`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeSeries(config.Serial),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, d, err := serialDrawing(cmd, args[0])
			if err != nil {
				return err
			}
			if saidBy(cmd.Flags().Lookup("may-repeat")) { // a claim is not taken from a variable
				d.Options.Serial.MayEqual = mayRepeat
			}
			if saidBy(cmd.Flags().Lookup("after")) {
				d.Options.Serial.After = after
			}
			st, err := open.Store(cmd.Context(), s.StoreURL().Text, sayMade(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			if err = open.CheckPlace(cmd.Context(), st); err == nil {
				err = otherKind(cmd.Context(), st, d.Name, config.Serial)
			}
			if err == nil {
				d.Options.Serial.New, err = d.mayBeNew(cmd, []store.Store{st})
			}
			if err == nil {
				_, err = document.Create(cmd.Context(), st, d.Name, &d.Options.Serial)
			}
			if err = errors.Join(err, st.Close()); err != nil {
				if errors.As(err, new(*document.ExistsError)) {
					return counterExists("serial", d.Name, "firn serials ls")
				}
				return d.explain(err)
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "serial %s has begun: %s\n", d.Name, d.Options.Serial.Pattern)
			return err
		},
	}
	addStore(cmd)
	addSeries(cmd, config.Serial)
	addNew(cmd)
	cmd.Flags().StringVar(&after, "after", "", "the last text that was given out, above which its counter begins")
	cmd.Flags().StringArrayVar(&mayRepeat, "may-repeat", nil, "a serial of this store whose texts may equal this one's, because they never meet in one table, queue or cache; may be given several times")
	return cmd
}

// counterExists is the error of creating a counter that is there, be it as it is to be: a
// create that may be repeated ends up in the step that starts a program.
func counterExists(what, name, ls string) error {
	return ui.Failed("the %s %s is there already", what, name).Hint("to see it: %s", ls).
		Hint("a counter is created in the step that creates the database. A step that starts a program creates none: after the store was lost it would begin again at its first number, and repeat all that was given out. It may check instead: firn doctor, whose exit code is 3 where the store does not have a counter of firn.yaml")
}

// serialDrawing is the serial that a command is about.
func serialDrawing(cmd *cobra.Command, name string) (*settings, *drawing, error) {
	if !config.IsSeriesName(name) {
		return nil, nil, ui.Bad("series %q: %s", name, config.SeriesNameRule)
	}
	s, err := loadSettings(cmd)
	if err != nil {
		return nil, nil, err
	}
	one, err := s.SeriesNamed(name)
	if err != nil {
		return nil, nil, err
	}
	if one != nil && one.Kind.Text != config.Serial {
		return nil, nil, ui.Bad("series %s is of kind %s, and not a serial", name, one.Kind.Text)
	}
	d := &drawing{Series: &config.Series{Name: name, Kind: config.Serial, URLs: []string{s.StoreURL().Text}}}
	return s, d, s.Counted(d.Series, one, nil)
}

func newSerialsChange() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "change SERIES",
		Short: "Give a serial a wider counter, or another zone",
		Long: `Give a serial another pattern or zone: those of firn.yaml, or of the flags. In the
pattern only the width of the counter may differ: {6} to {8}, or to {6+}, which grows.
Then no text can repeat; with anything else one could, and that is refused: it is
another series.

Processes that have the series open go on as they are. When they start again they
have to have the new pattern.`,
		Example: `  firn serials change invoice
  firn serials change invoice --pattern 'INV-{yyyyMMdd}-{8}' --zone Asia/Ho_Chi_Minh`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeSeries(config.Serial),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, d, err := serialDrawing(cmd, args[0])
			if err != nil {
				return err
			}
			return withStore(cmd, func(st store.Store) error {
				if _, err := document.Widen(cmd.Context(), st, d.Name, d.Options.Serial.Pattern, d.Options.Serial.Zone); err != nil {
					return d.ofOther(cmd.Context(), st, d.explain(err))
				}
				_, err := fmt.Fprintf(cmd.ErrOrStderr(), "serial %s: %s\n", d.Name, d.Options.Serial.Pattern)
				return err
			})
		},
	}
	addStore(cmd)
	addSeries(cmd, config.Serial)
	return cmd
}

func newSerialsRaise() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "raise SERIES TEXT",
		Short: "Have a serial go on above a text that was given out",
		Long: `Have a serial go on above a text that was given out: by another system that it
takes over from, or before the store forgot. It is about the date of the text; others
count as ever. A counter that is above it already stays: it never goes back. It takes
effect at once, for whoever has the series open, too, but for numbers that were
reserved with cache: those are given out yet. It asks before a number that is far above
the last, or leaves less than a hundredth of what there was, or wants --yes.`,
		Example:           `  firn serials raise invoice INV-20261120-000041`,
		Args:              arguments(2, 2),
		ValidArgsFunction: completeSeries(config.Serial),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !config.IsSeriesName(args[0]) {
				return ui.Bad("series %q: %s", args[0], config.SeriesNameRule)
			}
			s, err := loadSettings(cmd)
			if err != nil {
				return err
			}
			one, err := s.SeriesNamed(args[0])
			if err != nil {
				return err
			}
			d := &drawing{Series: &config.Series{Name: args[0], Kind: config.Serial, URLs: []string{s.StoreURL().Text}, Listed: one != nil && one.Kind.Text == config.Serial}}
			return withStore(cmd, func(st store.Store) error {
				r, err := serialRaise(cmd.Context(), st, d.Name, args[1])
				if err != nil {
					return err
				}
				if err := r.agree(cmd.Context(), cmd, yes); err != nil {
					return err
				}
				_, err = document.Raise(cmd.Context(), st, d.Name, args[1])
				what := "goes on above that"
				var wrong *firn.SyntaxError
				var option *document.OptionError
				switch {
				case errors.As(err, &option) && option.Option == "to":
					what = "was above that already"
				case errors.As(err, &wrong):
					return serialSyntax("the text", wrong)
				case err != nil:
					return d.ofOther(cmd.Context(), st, d.explain(err))
				}
				_, err = fmt.Fprintf(cmd.ErrOrStderr(), "serial %s: %s: %s\n", d.Name, args[1], what)
				return err
			})
		},
	}
	addStore(cmd)
	addRaiseYes(cmd, &yes)
	return cmd
}
