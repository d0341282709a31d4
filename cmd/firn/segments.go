package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

func newSegments() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "segments",
		Short:   "Look after series of dense numbers",
		Example: "  firn segments ls",
		RunE:    needsCommand,
	}
	cmd.AddCommand(newSegmentsLs(), newSegmentsCreate(), newSegmentsSet(), newSegmentsRaise(), newSegmentsImport())
	return cmd
}

func newSegmentsLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the segment series of a store, and how far each is",
		Long: `List the segment series of a store: the highest number that was granted to anybody
(which need not have been used), the cache, and the rate, which is of numbers granted
over the last minute; then who was granted numbers last, and when.

A ticket of firn.yaml has stores of its own: name one of them with --store to list
its part of the ticket. firn doctor checks all of them.`,
		Example: `  firn segments ls
  firn segments ls --store sqlite:/var/lib/app/ids.db --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd, func(st store.Store) error {
				all, err := sequence.List(cmd.Context(), st)
				if err != nil {
					return err
				}
				return printSegments(cmd.OutOrStdout(), all, wantsJSON(cmd))
			})
		},
	}
	addStore(cmd)
	return cmd
}

// A segmentLine is a series as --json prints it.
type segmentLine struct {
	Series    string  `json:"series"`
	Granted   int64   `json:"granted,string"`
	Cache     int64   `json:"cache"`
	Rate      float64 `json:"rate"`
	First     int64   `json:"first,string"`
	Max       int64   `json:"max,string"`
	Increment int64   `json:"increment"`
	Left      int64   `json:"left,string"`
	Order     string  `json:"order"`
	OnLossy   string  `json:"on_lossy_store,omitempty"`
	Stores    int     `json:"stores,omitempty"`
	Offset    *int    `json:"offset,omitempty"` // 0 is one
	By        string  `json:"by,omitempty"`
	At        string  `json:"at,omitempty"`
	Error     string  `json:"error,omitempty"`
}

func lineOf(i sequence.Info) segmentLine {
	l := segmentLine{
		Series: i.Name, Granted: int64(i.Granted), Cache: i.Cache, Rate: math.Round(i.Rate*1000) / 1000,
		First: int64(i.First), Max: int64(i.Max), Increment: i.Increment, Left: i.Left, Order: "free",
		By: i.By, At: phrase.Instant(i.At),
	}
	if i.Strict {
		l.Order = "strict"
	}
	if i.MayRepeat {
		l.OnLossy = "may-repeat"
	}
	if i.Stores > 1 {
		l.Stores, l.Offset = i.Stores, &i.Offset
	}
	if i.Err != nil {
		l.Error = phrase.WithoutPackage(i.Err.Error())
	}
	return l
}

func printSegments(out io.Writer, all []sequence.Info, asJSON bool) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERIES\tGRANTED\tCACHE\tRATE\tMAX\tORDER\tLAST")
	for _, i := range all {
		l := lineOf(i)
		switch {
		case asJSON:
			if err := enc.Encode(l); err != nil {
				return err
			}
			continue
		case i.Err != nil:
			fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t%s\n", i.Name, l.Error)
			continue
		}
		order, last := l.Order, "-"
		if i.Stores > 1 {
			order = fmt.Sprintf("%d of %d stores", i.Offset+1, i.Stores)
		}
		if i.MayRepeat {
			order += ", lossy"
		}
		if !i.At.IsZero() {
			last = i.By + " " + i.At.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s/s\t%s\t%s\t%s\n", i.Name, int64(i.Granted), i.Cache, phrase.SlowRate(i.Rate), i.Max, order, last)
	}
	if asJSON {
		return nil
	}
	return w.Flush()
}

// mayBegin returns an error where one of the stores is a copy, or has a counter of the name that
// is of another kind.
func (d *drawing) mayBegin(ctx context.Context, stores []store.Store) error {
	for i, st := range stores {
		if f := poolFailure(open.CheckPlace(ctx, st), poolPlace{url: open.StoreText(d.URLs[i])}); f != nil {
			return f
		}
		if err := otherKind(ctx, st, d.Name, config.Segment, config.Ticket); err != nil {
			return err
		}
	}
	return nil
}

func newSegmentsCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create SERIES",
		Short: "Begin a segment series that there never was",
		Long: `Begin a series of dense numbers in a store that other hosts share. Only who knows
that there never was one does that: a store that has forgotten it looks the same, and
would give out its numbers again. A file of this host notices that by itself, and
begins a series with its first number.

Run it once, in the step that creates the database. Never run it in the step that starts
a program, in an init container or an entrypoint: after the store was lost it would begin
the numbers again. The step that starts a program needs no command: where the counter is
missing, the program fails and says so. To check before that: firn doctor, whose exit code
is 3 where the store does not have a counter of firn.yaml. If the series is there already,
nothing changes, and the exit code is 1.

The options are those of firn.yaml, or of the flags, by the names SEQUENCE has for
them: --first is START, --max MAXVALUE, --cache CACHE. A ticket of firn.yaml is begun
on all of its stores, which have to be there.`,
		Example: `  firn segments create orders
  firn segments create orders --first 1000000 --cache 500
  firn segments create invoices --order strict --max 999999`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeSeries(config.Counted...),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := segmentDrawing(cmd, args[0])
			if err != nil {
				return err
			}
			if err := d.Check(); err != nil {
				return err
			}
			stores, closeStores, err := d.openStores(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err = d.mayBegin(cmd.Context(), stores); err == nil {
				d.Options.Segment.New, err = d.mayBeNew(cmd, stores)
			}
			if err == nil {
				_, err = sequence.CreateAcross(cmd.Context(), stores, d.Name, &d.Options.Segment)
			}
			if err = errors.Join(err, closeStores()); err != nil {
				if errors.As(err, new(*sequence.ExistsError)) {
					return counterExists("series", d.Name, "firn segments ls")
				}
				return d.explain(err)
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "series %s has begun\n", d.Name)
			return err
		},
	}
	addStore(cmd)
	addSeries(cmd, config.Segment)
	addNew(cmd)
	for _, f := range createFlags {
		k := *config.KeyNamed(config.CounterKeys, f.name)
		k.Value, k.Usage = f.value, f.usage
		cmd.Flags().Var(&seriesFlag{Key: &k}, k.Name, k.Usage)
	}
	return cmd
}

// addNew adds --new.
func addNew(cmd *cobra.Command) {
	cmd.Flags().Bool("new", false, "on a store that was recovered: no counter of this name ever existed")
}

// createFlags are the keys of a series that are flags where one is created only.
var createFlags = []struct{ name, value, usage string }{
	{"first", "N", "the first number, below which there is none (1)"},
	{"max", "N", "no number is above it (9223372036854775807)"},
	{"increment", "N", "from one number to the next (1)"},
	{"order", "strict", "strict: numbers increase over all processes, and each call waits for the store (free)"},
}

// segmentDrawing is the segment series, or ticket, that a command is about.
func segmentDrawing(cmd *cobra.Command, name string) (*drawing, error) {
	if !config.IsSeriesName(name) {
		return nil, ui.Bad("series %q: %s", name, config.SeriesNameRule)
	}
	s, err := loadSettings(cmd)
	if err != nil {
		return nil, err
	}
	d := &drawing{Series: &config.Series{Name: name, Kind: config.Segment, URLs: []string{s.StoreURL().Text}}}
	one, err := s.SeriesNamed(name)
	if err != nil {
		return nil, err
	}
	if one != nil {
		if d.Kind = one.Kind.Text; d.Kind != config.Segment && d.Kind != config.Ticket {
			return nil, ui.Bad("series %s is of kind %s, and has no segments", name, d.Kind)
		}
	}
	if err := s.Counted(d.Series, one, nil); err != nil {
		return nil, err
	}
	for _, f := range createFlags {
		given, ok := cmd.Flags().Lookup(f.name), false
		if given == nil || !given.Changed {
			continue
		}
		if k, isKey := given.Value.(*seriesFlag); isKey {
			ok = k.Key.Set(&d.Options, k.text) == nil
		}
		if !ok {
			return nil, ui.Bad("--%s %s cannot be", f.name, given.Value)
		}
	}
	return d, nil
}

func newSegmentsSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set SERIES --cache N",
		Short: "Change how many numbers are reserved at a time",
		Long: `Change the cache of a series: how many numbers a process reserves by one write, at
least. Every process that has the series open follows at its next reservation.`,
		Example:           "  firn segments set orders --cache 1000",
		Args:              arguments(1, 1),
		ValidArgsFunction: completeSeries(config.Counted...),
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := cmd.Flags().GetInt64("cache")
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("cache") {
				return ui.Bad("what is to be set? --cache is missing").Hint("firn segments set %s --cache 1000", phrase.ShellWord(args[0]))
			}
			if cache < 1 || cache > block.MaxCache {
				return ui.Bad("--cache %d: it is 1 to %d", cache, int64(block.MaxCache))
			}
			return changeSegment(cmd, args[0], func(st store.Store) (sequence.Info, error) {
				return sequence.SetCache(cmd.Context(), st, args[0], int(cache))
			})
		},
	}
	addStore(cmd)
	cmd.Flags().Int64("cache", 0, "how many numbers to reserve by one write")
	return cmd
}

func newSegmentsRaise() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "raise SERIES N",
		Short: "Have a series go on above a number",
		Long: `Have a series go on above a number that is in use: by another system that it takes
over from, or from before the store forgot. Processes that have the series open still
use what they have reserved. It never goes back: it asks before a number that is more
than 1,000 times and 10^9 above the last, or leaves less than a hundredth of what there
was, or wants --yes. Where no number would be left it is refused.`,
		Example:           "  firn segments raise orders 1000000",
		Args:              arguments(2, 2),
		ValidArgsFunction: completeSeries(config.Counted...),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := config.ParsePositive(args[1])
			if err != nil {
				return ui.Bad("%w", err)
			}
			return changeSegment(cmd, args[0], func(st store.Store) (sequence.Info, error) {
				r, err := segmentRaise(cmd.Context(), st, args[0], firn.ID(n))
				if err != nil {
					return sequence.Info{}, err
				}
				if err := r.agree(cmd.Context(), cmd, yes); err != nil {
					return sequence.Info{}, err
				}
				return sequence.Raise(cmd.Context(), st, args[0], firn.ID(n))
			})
		},
	}
	addStore(cmd)
	addRaiseYes(cmd, &yes)
	return cmd
}

// whereIs adds to a refused change where the series stands: how far it can be raised.
func whereIs(ctx context.Context, st store.Store, name string, f *ui.Failure) *ui.Failure {
	i, err := sequence.Show(ctx, st, name)
	if err != nil || i.Err != nil {
		return f.Hint("firn segments ls")
	}
	last := int64(i.Max) - i.Increment*int64(i.Stores) // a number has to be left
	if last <= int64(i.Granted) {
		return f.Hint("%s is at %d and ends at %d: there is nothing to raise. what is left is given out first", name, i.Granted, i.Max)
	}
	return f.Hint("%s is at %d and ends at %d: N is the highest number in use anywhere, %d to %d", name, i.Granted, i.Max, i.Granted+1, last)
}

// changeSegment changes a series on its store, or on each store of a ticket, and
// prints what it is then.
func changeSegment(cmd *cobra.Command, name string, change func(store.Store) (sequence.Info, error)) error {
	d, err := segmentDrawing(cmd, name)
	if err != nil {
		return err
	}
	one := func(st store.Store) error {
		i, err := change(st)
		var option *sequence.OptionError
		var none *sequence.MissingError
		switch {
		case errors.As(err, &option):
			return whereIs(cmd.Context(), st, name, ui.Bad("%w", err))
		case errors.As(err, &none):
			return d.ofOther(cmd.Context(), st, d.explain(ui.Bad("%w", err)).(*ui.Failure).Hint("to list all: firn segments ls"))
		case err != nil:
			return err
		}
		if wantsJSON(cmd) {
			return printSegments(cmd.OutOrStdout(), []sequence.Info{i}, true)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "series %s goes on above %d, %d at a time\n", i.Name, int64(i.Granted), i.Cache)
		return err
	}
	if d.Kind == config.Segment {
		return withStore(cmd, one)
	}
	stores, closeStores, err := d.openStores(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	for i, st := range stores {
		if err := one(st); err != nil {
			return errors.Join(fmt.Errorf("store %d of %d: %w", i+1, len(stores), err), closeStores())
		}
	}
	return closeStores()
}
