package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/countername"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

func newSeries() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "series",
		Short: "Look after series that count",
		Long: `Look after series that count. A series is a named stream of ids. Of three kinds, two
have a counter in the store: a sequence gives numbers (1, 2, 3), a document gives texts
with a date and a counter (INV-20261120-000042). A flake has none: its ids come from the
workers of a pool.`,
		Example: "  firn series ls",
		RunE:    needsCommand,
	}
	cmd.AddCommand(newSeriesLs(), newSeriesShow(), newSeriesCreate(), newSeriesSet(), newSeriesRaise(), newSeriesImport())
	return cmd
}

func newSeriesLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the series of a store",
		Long: `List the series of a store that count. LAST is the highest number, or the last text, that a
process was granted; it may be unused. Each date of a document has a counter of its own: if
later dates than today's were in use, because a clock was ahead, LAST has the last text of
today and of each later date. CACHE is how many numbers a process reserves at a time, RATE is
numbers granted per second over the last minute, and BY is the process that was granted
numbers last.

A sequence with stores in firn.yaml has a line for each of them; with --store, only what that
store has is listed.`,
		Example: `  firn series ls
  firn series ls --store sqlite:/var/lib/app/ids.db --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listSeries(cmd)
		},
	}
	addStore(cmd)
	return cmd
}

func newSeriesShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show kind, settings and last value of a series",
		Long: `Show the kind, the settings and the last value of a series, as the store has them. A
sequence with stores in firn.yaml is shown for each of them. If a document has texts of later
dates than today's, because a clock was ahead, it is shown with the last text of today and of
each later date (texts in JSON).`,
		Example: `  firn series show orders
  firn series show invoice --json`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeSeries(countingKinds...),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onSeries(cmd, args[0], func(d *drawing, st store.Store) error {
				l, err := lineOf(cmd.Context(), d, st)
				if err != nil {
					return d.explain(err)
				}
				if wantsJSON(cmd) {
					return printSeries(cmd.OutOrStdout(), []seriesLine{l}, true)
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				for _, fact := range l.facts() {
					fmt.Fprintf(w, "%s\t%s\n", fact[0], fact[1])
				}
				return w.Flush()
			})
		},
	}
	addStore(cmd)
	return cmd
}

// countingKinds are the kinds of series that a store has a counter of.
var countingKinds = []string{config.Sequence, config.Document}

// A seriesLine is a series as the commands print it: an object with --json, a row of series ls,
// or facts of series show.
type seriesLine interface {
	name() string
	row() [7]any
	facts() [][2]string
}

// A sequenceLine is a sequence, or one store's part of it.
type sequenceLine struct {
	Series    string  `json:"series"`
	Kind      string  `json:"kind"`
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

func sequenceLineOf(i sequence.Info) *sequenceLine {
	l := &sequenceLine{
		Series: i.Name, Kind: config.Sequence, Granted: int64(i.Granted), Cache: i.Cache, Rate: math.Round(i.Rate*1000) / 1000,
		First: int64(i.First), Max: int64(i.Max), Increment: i.Increment, Left: i.Left, Order: "free",
		By: i.By, At: phrase.Instant(i.At),
	}
	if i.Strict {
		l.Order = "strict"
	}
	l.OnLossy = onLossy(i.MayRepeat)
	if i.Stores > 1 {
		l.Stores, l.Offset = i.Stores, &i.Offset
	}
	if i.Err != nil {
		l.Error = phrase.WithoutPackage(i.Err.Error())
	}
	return l
}

func (l *sequenceLine) name() string { return l.Series }

// by is the process that was granted numbers last, and when.
func (l *sequenceLine) by() string {
	if l.At == "" {
		return "-"
	}
	at, _ := time.Parse(time.RFC3339, l.At)
	return l.By + " " + at.UTC().Format(time.RFC3339)
}

func (l *sequenceLine) row() [7]any {
	if l.Error != "" {
		return [7]any{l.Series, l.Kind, "-", "-", "-", "-", l.Error}
	}
	var settings []string
	if l.Offset != nil {
		settings = append(settings, fmt.Sprintf("%d of %d stores", *l.Offset+1, l.Stores))
	}
	if l.Increment > 1 && l.Offset == nil {
		settings = append(settings, fmt.Sprintf("increment %d", l.Increment))
	}
	if l.Max != math.MaxInt64 {
		settings = append(settings, fmt.Sprintf("max %d", l.Max))
	}
	if l.Order != "free" {
		settings = append(settings, l.Order)
	}
	if l.OnLossy != "" {
		settings = append(settings, "lossy")
	}
	return [7]any{l.Series, l.Kind, number(l.Granted), number(l.Cache), phrase.SlowRate(l.Rate) + "/s", orDash(strings.Join(settings, ", ")), l.by()}
}

func (l *sequenceLine) facts() [][2]string {
	if l.Error != "" {
		return [][2]string{{"series", l.Series}, {"kind", l.Kind}, {"error", l.Error}}
	}
	all := [][2]string{
		{"series", l.Series},
		{"kind", l.Kind},
		{"last number", number(l.Granted)},
		{"numbers left", phrase.Count(l.Left)},
		{"first", number(l.First)},
		{"max", number(l.Max)},
		{"increment", number(l.Increment)},
		{"cache", number(l.Cache)},
		{"order", l.Order},
		{"rate", phrase.SlowRate(l.Rate) + "/s"},
		{"last by", l.by()},
	}
	if l.OnLossy != "" {
		all = append(all, [2]string{"on-lossy-store", l.OnLossy})
	}
	if l.Offset != nil {
		all = append(all, [2]string{"store", fmt.Sprintf("%d of %d", *l.Offset+1, l.Stores)})
	}
	return all
}

// A documentLine is a document.
type documentLine struct {
	Series  string   `json:"series"`
	Kind    string   `json:"kind"`
	Pattern string   `json:"pattern"`
	Zone    string   `json:"zone,omitempty"`
	OnLossy string   `json:"on_lossy_store,omitempty"`
	Period  string   `json:"period,omitempty"`
	Count   int64    `json:"count,string"`
	Text    string   `json:"text,omitempty"`
	Texts   []string `json:"texts,omitempty"` // where later dates than today's are in use
	Periods int      `json:"periods"`

	Template string `json:"template,omitempty"`  // of a name
	Names    *int   `json:"names,omitempty"`     // of a template, which has this many
	MaxNames int    `json:"max_names,omitempty"` // of at most so many

	last []document.Number // the texts, one where no later date is in use
}

func documentLineOf(i document.Info) *documentLine {
	l := &documentLine{
		Series: i.Name, Kind: config.Document, Pattern: i.Pattern, Zone: i.Zone, OnLossy: onLossy(i.MayRepeat),
		Period: i.Period, Count: i.Count, Text: i.Text, Texts: severalTexts(i.Texts), Periods: i.Periods, last: i.Texts,
		Template: i.Template, MaxNames: i.MaxNames,
	}
	if l.MaxNames > 0 {
		l.Names = &i.Names
	}
	return l
}

// textsOf are the texts of numbers.
func textsOf(numbers []document.Number) []string {
	var all []string
	for _, n := range numbers {
		all = append(all, n.Text)
	}
	return all
}

// severalTexts are the texts of several numbers; nil of one, whose text stands elsewhere.
func severalTexts(numbers []document.Number) []string {
	if len(numbers) < 2 {
		return nil
	}
	return textsOf(numbers)
}

func (l *documentLine) name() string { return l.Series }

func (l *documentLine) row() [7]any {
	settings := l.Pattern
	if l.Zone != "" {
		settings += ", " + l.Zone
	}
	if l.OnLossy != "" {
		settings += ", lossy"
	}
	if l.Names != nil {
		settings += fmt.Sprintf(", %d of %s", *l.Names, phrase.Plural(l.MaxNames, "name"))
	}
	return [7]any{l.Series, l.Kind, orDash(strings.Join(textsOf(l.last), ", ")), "-", "-", settings, "-"}
}

func (l *documentLine) facts() [][2]string {
	all := [][2]string{{"series", l.Series}, {"kind", l.Kind}}
	if l.Names != nil {
		return l.lossyFact(append(all, [][2]string{
			{"pattern", l.Pattern},
			{"zone", orDash(l.Zone)},
			{"names", strconv.Itoa(*l.Names)},
			{"names at most", strconv.Itoa(l.MaxNames)},
		}...))
	}
	if l.Template != "" {
		all = append(all, [2]string{"template", l.Template})
	}
	if len(l.last) < 2 {
		all = append(all, [2]string{"last text", orDash(l.Text)})
	} else {
		for _, n := range l.last {
			all = append(all, [2]string{"last text of " + n.Period, n.Text})
		}
	}
	all = append(all, [][2]string{
		{"pattern", l.Pattern},
		{"zone", orDash(l.Zone)},
		{"last date", orDash(l.Period)},
		{"dates", strconv.Itoa(l.Periods)},
	}...)
	return l.lossyFact(all)
}

// lossyFact adds what the series was created with for a store that can lose writes.
func (l *documentLine) lossyFact(all [][2]string) [][2]string {
	if l.OnLossy != "" {
		all = append(all, [2]string{"on-lossy-store", l.OnLossy})
	}
	return all
}

// onLossy is the value of on-lossy-store that a series was created with; empty if none.
func onLossy(mayRepeat bool) string {
	if mayRepeat {
		return "may-repeat"
	}
	return ""
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// listSeries prints the series of the store, and of the stores of sequences over several.
func listSeries(cmd *cobra.Command) error {
	s, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	across, only, err := acrossOf(s)
	if err != nil {
		return err
	}
	var all []seriesLine
	var damaged []*store.FormatError
	listed := "none"
	if !only {
		listed = s.StoreURL().Text
		err = withStore(cmd, func(st store.Store) (err error) {
			all, damaged, err = seriesLines(cmd.Context(), st)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, d := range across {
		lines, bad := d.partLines(cmd, listed)
		all, damaged = append(all, lines...), append(damaged, bad...)
	}
	slices.SortStableFunc(all, func(a, b seriesLine) int { return phrase.CompareNames(a.name(), b.name()) })
	warnDamaged(cmd, damaged)
	return printSeries(cmd.OutOrStdout(), all, wantsJSON(cmd))
}

// seriesLines are all series of a store, by name.
func seriesLines(ctx context.Context, st store.Store) (all []seriesLine, damaged []*store.FormatError, err error) {
	numbers, err := sequence.List(ctx, st)
	if err != nil {
		return nil, nil, err
	}
	texts, ofTexts, err := readSound(st, definition, func(st store.Store) ([]document.Info, error) { return document.List(ctx, st) })
	if err != nil {
		return nil, nil, err
	}
	for _, i := range numbers {
		all = append(all, sequenceLineOf(i))
		var bad *store.FormatError
		if errors.As(i.Err, &bad) {
			damaged = append(damaged, bad)
		}
	}
	for _, bad := range ofTexts {
		all = append(all, damagedDocument(bad))
	}
	for _, i := range texts {
		if i.MaxNames > 0 { // how many names it has only Show says
			if i, err = document.Show(ctx, st, i.Name); err != nil {
				return nil, nil, err
			}
		}
		all = append(all, documentLineOf(i))
	}
	return all, append(damaged, ofTexts...), nil
}

// lineOf is the series that a command is about.
func lineOf(ctx context.Context, d *drawing, st store.Store) (seriesLine, error) {
	if d.Kind == config.Document {
		i, err := document.Show(ctx, st, d.Name)
		return documentLineOf(i), err
	}
	i, err := sequence.Show(ctx, st, d.Name)
	return sequenceLineOf(i), cmp.Or(err, i.Err)
}

func printSeries(out io.Writer, all []seriesLine, asJSON bool) error {
	header := []string{"SERIES", "KIND", "LAST", "CACHE", "RATE", "SETTINGS", "BY"}
	return ui.Emit(out, asJSON, header, all, func(l seriesLine) []any {
		row := l.row()
		return row[:]
	})
}

// onSeries calls f with the store of a series that counts, or with each store of a sequence over several. The
// drawing says the kind: that of firn.yaml, or where it does not list the series, of the store.
func onSeries(cmd *cobra.Command, name string, f func(*drawing, store.Store) error) error {
	if !template.Is(name) && !config.IsSeriesName(name) {
		return ui.Bad("series %q: %s", name, config.SeriesNameRule)
	}
	s, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	one, err := s.SeriesNamed(name)
	if err != nil {
		return err
	}
	d := &drawing{&config.Series{Name: name, URLs: []string{s.StoreURL().Text}}, hinter{cmd: cmd}}
	if one == nil {
		return withStore(cmd, func(st store.Store) error {
			if err := d.learnKind(cmd.Context(), s, st); err != nil {
				return err
			}
			return f(d, st)
		})
	}
	d.Listed, d.Kind = true, one.Kind.Text
	if d.Kind == config.Flake {
		return ui.Bad("series %s is of kind %s and has no counter: its ids come from the workers of a pool", name, config.Flake).Hint("firn worker ls")
	}
	if err := s.Counted(d.Series, one, nil); err != nil {
		return err
	}
	if !d.Across() {
		return withStore(cmd, func(st store.Store) error {
			if err := countername.SameKind(cmd.Context(), st, d.Series); err != nil {
				return d.explain(err)
			}
			return f(d, st)
		})
	}
	stores, closeStores, err := d.openStores(cmd.Context(), nil)
	if err != nil {
		return err
	}
	for i, st := range stores {
		if err := f(d, st); err != nil {
			return errors.Join(fmt.Errorf("store %d of %d: %w", i+1, len(stores), err), closeStores())
		}
	}
	return closeStores()
}

// learnKind finds out the kind of a series that firn.yaml does not list. A store's part of a
// sequence over several is changed as a sequence is.
func (d *drawing) learnKind(ctx context.Context, s *settings, st store.Store) error {
	there, err := countername.Counter(ctx, st, d.Name)
	if err != nil {
		return err
	}
	if there == nil {
		return d.nowhere(ctx, st)
	}
	d.Kind, there.Stores = there.Kind, 0
	return s.Counted(d.Series, nil, there)
}

// nowhere is the error of a series of which neither the store nor firn.yaml knows the kind.
func (d *drawing) nowhere(ctx context.Context, st store.Store) error {
	near, err := countername.Misspelled(ctx, st, d.Name)
	if err != nil {
		return err
	}
	lost, err := countername.MayHaveLost(ctx, st)
	if err != nil {
		return err
	}
	f := ui.Failed("%w", ui.Rename(fmt.Sprintf("the store has no series %q", d.Name), &sequence.MissingError{Name: d.Name, MayBeLost: lost}))
	if near != "" {
		f.Hint("to use the counter that is there, write its name: %s", near)
	}
	name := phrase.ShellWord(d.Name)
	f.Hint("to list all: firn series ls")
	if template.Is(d.Name) {
		return f.HintOtherKind("if it existed, or this store was restored or lost: firn series create %s --pattern PATTERN --after TEXT, with PATTERN that of its programs, and TEXT the one with the highest count that any name of it gave", name).
			HintOtherKind("only if it never existed: firn series create %s --pattern PATTERN%s", name, asNew(lost))
	}
	return f.
		HintOtherKind("if it existed, or this store was restored or lost: firn series create %s --kind sequence --first N, with N above every number in use; of a document: firn series create %s --pattern PATTERN --after TEXT, with PATTERN that of its programs, and TEXT the last one given out", name, name).
		HintOtherKind("only if it never existed: firn series create %s --kind sequence%s; or with texts: firn series create %[1]s --pattern PATTERN%[2]s", name, asNew(lost))
}
