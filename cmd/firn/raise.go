package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// This file asks before a counter is raised a long way: it never goes back, and a digit
// too many ends a series.

// A raise has a counter go on above a number.
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

// addRaiseYes adds --yes to a command that raises.
func addRaiseYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask: the number is right, however far it is")
}

// segmentRaise is a raise of a segment series. What the store does not have is left for it
// to say.
func segmentRaise(ctx context.Context, st store.Store, name string, to firn.ID) (raise, error) {
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

// serialRaise is a raise of a serial, whose text is of a date and a number. Of other
// dates than the last the number is not known, and taken for 0.
func serialRaise(ctx context.Context, st store.Store, name, text string) (raise, error) {
	all, err := document.List(ctx, st)
	if err != nil {
		return raise{}, err
	}
	for _, i := range all {
		p, err := document.ParsePattern(i.Pattern)
		if i.Name != name || err != nil {
			continue
		}
		to, err := p.Parse(text)
		if err != nil {
			break
		}
		r := raise{name, 0, to.Count, p.Max()}
		if i.Period == to.Period {
			r.from = i.Count
		}
		return r, nil
	}
	return raise{}, nil
}
