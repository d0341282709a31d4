package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

func newSeriesRaise() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "raise NAME VALUE",
		Short: "Continue a series above a value",
		Long: `Continue a series above a value that is in use: of another system that the series takes
over from, or from before the store lost it. VALUE is a number for a sequence, and a text for
a document, whose counter of that date is raised. Processes that have the series open still
use the numbers that they have reserved. A name of a template, such as bill:42 of 'bill:*', begins so
where it is new.

A series never goes back: a VALUE that it is above already is refused. The command asks before
a VALUE that is more than 1,000 times and 10^9 above the last, or that leaves less than a
hundredth of what there was; a script passes --yes. A VALUE that leaves no number is refused.`,
		Example: `  firn series raise orders 1000000
  firn series raise invoice INV-20261120-000041`,
		Args:              arguments(2, 2),
		ValidArgsFunction: completeSeries(countingKinds...),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onSeries(cmd, args[0], func(d *drawing, st store.Store) error {
				if d.Kind == config.Document {
					return d.raiseText(cmd, st, args[1], yes)
				}
				return d.raiseNumber(cmd, st, args[1], yes)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask: VALUE is right, however far it is")
	addStore(cmd)
	return cmd
}

// raiseNumber continues a sequence above a number.
func (d *drawing) raiseNumber(cmd *cobra.Command, st store.Store, value string, yes bool) error {
	n, err := config.ParsePositive(value)
	if err != nil {
		return ui.Bad("%w", err).Hint("%s is a %s, so VALUE is a number: firn series raise %s 1000000", d.Name, d.Kind, phrase.ShellWord(d.Name))
	}
	return d.change(cmd, st, func() (sequence.Info, error) {
		r, err := sequenceRaise(cmd.Context(), st, d.Name, firn.ID(n))
		if err != nil {
			return sequence.Info{}, err
		}
		if err := r.agree(cmd.Context(), cmd, yes); err != nil {
			return sequence.Info{}, err
		}
		return sequence.Raise(cmd.Context(), st, d.Name, firn.ID(n))
	})
}

// raiseText continues a document above a text.
func (d *drawing) raiseText(cmd *cobra.Command, st store.Store, text string, yes bool) error {
	r, err := documentRaise(cmd.Context(), st, d.Name, text)
	if err != nil {
		return err
	}
	if err := r.agree(cmd.Context(), cmd, yes); err != nil {
		return err
	}
	_, err = document.Raise(cmd.Context(), st, d.Name, text)
	var wrong *firn.SyntaxError
	var option *document.OptionError
	switch {
	case errors.As(err, &wrong):
		f := documentSyntax("the text", wrong)
		if _, err := config.ParsePositive(text); err == nil && !strings.HasPrefix(d.Options.Document.Pattern, "{") { // a number, as for a sequence
			f.Hint("%s is a document, so VALUE is a text of its pattern: firn series raise %s TEXT", d.Name, phrase.ShellWord(d.Name))
		}
		return f
	case errors.As(err, &option) && option.Option == "to":
		return ui.Bad("%w", err).Hint("if no text in use anywhere is above %s, there is nothing to raise", text)
	}
	if err != nil {
		return d.explain(err)
	}
	return d.tell(cmd, st, "document %s continues above %s\n", d.Name, text)
}

// A raise continues a counter above a number. The rest of this file asks before one that goes a
// long way: a counter never goes back, and a digit too many ends a series.
type raise struct {
	series         string
	from, to, last int64 // the last number granted, the one to go on above, and the last there can be
}

// Limits of a raise that nobody is asked about.
const (
	farTimes  = 1000          // the number before, and
	farBeyond = 1_000_000_000 // more than it
	mostOf100 = 99            // of what is left
)

// isFar reports whether it may well be a mistake.
func (r raise) isFar() bool {
	skipped, left := r.to-r.from, r.last-r.from
	return skipped > farBeyond && r.to/farTimes > max(r.from, 1) || float64(skipped)/float64(left)*100 > mostOf100
}

// agree asks about a raise that is far.
func (r raise) agree(ctx context.Context, cmd *cobra.Command, yes bool) error {
	if yes || r.to <= r.from || r.to >= r.last || !r.isFar() {
		return nil // or the store refuses it
	}
	question := fmt.Sprintf("Series %s is at %d. Above %d it has %s left, and it never goes back. Is %[3]d right?", r.series, r.from, r.to, phrase.Plural(int(r.last-r.to), "number"))
	return ui.MustAsk(ctx, cmd, question, "the same command with --yes")
}

// sequenceRaise is a raise of a sequence. What the store does not have is left for it
// to say.
func sequenceRaise(ctx context.Context, st store.Store, name string, to firn.ID) (raise, error) {
	all, err := sequence.List(ctx, st)
	if err != nil {
		return raise{}, err
	}
	for _, i := range all {
		if i.Name == name && i.Err == nil {
			return raise{name, int64(i.Granted), int64(to), int64(i.Max)}, nil
		}
	}
	return raise{}, nil
}

// documentRaise is a raise of a document, whose text is of a date and a number. Of other
// dates than the last the number is not known, and taken for 0.
func documentRaise(ctx context.Context, st store.Store, name, text string) (raise, error) {
	i, err := document.Show(ctx, st, name)
	var none *document.MissingError
	if errors.As(err, &none) && none.Template != "" { // a new name of a template
		i, err = document.Show(ctx, st, none.Template)
	}
	if errors.As(err, &none) {
		return raise{}, nil
	}
	if err != nil {
		return raise{}, err
	}
	p, err := document.ParsePattern(i.Pattern)
	if err != nil {
		return raise{}, nil
	}
	to, err := p.Parse(text)
	if err != nil {
		return raise{}, nil
	}
	r := raise{name, 0, to.Count, p.Max()}
	if i.Period == to.Period {
		r.from = i.Count
	}
	return r, nil
}
