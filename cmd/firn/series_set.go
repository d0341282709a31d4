package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

func newSeriesSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change how a series reserves, or widen its counter",
		Long: `Change a series.

Of a sequence, --cache is how many numbers a process reserves by one write, at least.
Every process that has the sequence open follows at its next reservation.

Of a document, the pattern and the zone are those of firn.yaml, or of the flags. In the
pattern only the width of the counter may differ: {6} to {8}, or to {6+}, which grows. Then
no text can repeat. A narrower counter, {6} to {4}, ends earlier: it is refused if the texts of
today or of a later date have reached its end. Any other change could repeat a text and is refused: create another
series. Processes that have the document open continue as they are, and need the new
pattern when they start again.

Of a template, such as 'bill:*', --names is how many names it has at most.`,
		Example: `  firn series set orders --cache 1000
  firn series set invoice --pattern 'INV-{yyyyMMdd}-{8}' --zone Asia/Ho_Chi_Minh
  firn series set 'bill:*' --names 5000`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeSeries(countingKinds...),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onSeries(cmd, args[0], func(d *drawing, st store.Store) error {
				if d.Kind == config.Document {
					return d.widen(cmd, st)
				}
				return d.setStep(cmd, st)
			})
		},
	}
	addSeriesKey(cmd, "cache")
	addSeriesKey(cmd, "pattern")
	addSeriesKey(cmd, "zone")
	cmd.Flags().Int("names", 0, "of a template, such as bill:*: how many names it has at most")
	addStore(cmd)
	return cmd
}

// setStep changes how many numbers of a sequence are reserved at a time.
func (d *drawing) setStep(cmd *cobra.Command, st store.Store) error {
	if err := onlyFor(cmd, d, config.Document, "the only setting of a sequence that changes is its cache: firn series set %s --cache N", "pattern", "zone", "names"); err != nil {
		return err
	}
	if !cmd.Flags().Changed("cache") {
		return ui.Bad("nothing to set: --cache is missing").Hint("firn series set %s --cache 1000", phrase.ShellWord(d.Name))
	}
	return d.change(cmd, st, func() (sequence.Info, error) {
		return sequence.SetCache(cmd.Context(), st, d.Name, d.Options.Sequence.Cache)
	})
}

// widen gives a document another pattern or zone.
func (d *drawing) widen(cmd *cobra.Command, st store.Store) error {
	if err := onlyFor(cmd, d, config.Sequence, "firn series set %s --pattern PATTERN", "cache"); err != nil {
		return err
	}
	if f := cmd.Flags().Lookup("names"); f.Changed {
		if err := config.KeyNamed(config.CounterKeys, "names").Set(&d.Options, f.Value.String()); err != nil {
			return valueError("--names", err)
		}
	}
	info, err := document.Widen(cmd.Context(), st, d.Name, &d.Options.Document)
	if err != nil {
		return d.explain(err)
	}
	zone := ""
	if info.Zone != "" {
		zone = " and the zone " + info.Zone
	}
	if info.MaxNames > 0 {
		return d.tell(cmd, st, "template %s has the pattern %s%s and %d of at most %s\n", d.Name, info.Pattern, zone, info.Names, phrase.Plural(info.MaxNames, "name"))
	}
	return d.tell(cmd, st, "document %s has the pattern %s%s\n", d.Name, info.Pattern, zone)
}

// onlyFor refuses flags that are for series of another kind, with the command that there is.
func onlyFor(cmd *cobra.Command, d *drawing, kind, instead string, flags ...string) error {
	for _, name := range flags {
		if cmd.Flags().Changed(name) {
			return ui.Bad("--%s is for series of kind %s, and %s is a %s", name, kind, d.Name, d.Kind).HintOtherKind(instead, phrase.ShellWord(d.Name))
		}
	}
	return nil
}

// change changes a sequence and prints what it is then.
func (d *drawing) change(cmd *cobra.Command, st store.Store, change func() (sequence.Info, error)) error {
	i, err := change()
	switch {
	case errors.As(err, new(*sequence.OptionError)):
		return whereIs(cmd.Context(), st, d.Name, ui.Bad("%w", err))
	case errors.As(err, new(*sequence.MissingError)):
		return d.explain(ui.Bad("%w", ui.Rename(phrase.Reason(err), err))).(*ui.Failure).Hint("to list all: firn series ls")
	case err != nil:
		return err
	}
	return d.tell(cmd, st, "%s %s continues above %d, and a process reserves %s at a time\n", d.Kind, d.Name, int64(i.Granted), phrase.Plural(int(i.Cache), "number"))
}

// tell prints what a series is now.
func (d *drawing) tell(cmd *cobra.Command, st store.Store, format string, args ...any) error {
	if wantsJSON(cmd) {
		l, err := lineOf(cmd.Context(), d, st)
		if err != nil {
			return err
		}
		return printSeries(cmd.OutOrStdout(), []seriesLine{l}, true)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format, args...)
	return err
}

// whereIs adds to a refused change where the sequence is, and how far it can be raised.
func whereIs(ctx context.Context, st store.Store, name string, f *ui.Failure) *ui.Failure {
	i, err := sequence.Show(ctx, st, name)
	if err != nil || i.Err != nil {
		return f.Hint("firn series ls")
	}
	last := int64(i.Max) - i.Increment*int64(i.Stores) // a number has to be left
	if last <= int64(i.Granted) {
		return f.Hint("%s is at %d and ends at %d: there is nothing to raise. what is left is given out first", name, i.Granted, i.Max)
	}
	return f.Hint("%s is at %d and ends at %d: VALUE is the highest number in use anywhere, %d to %d", name, i.Granted, i.Max, i.Granted+1, last)
}
