package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/picture"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/plan"
)

func newLayout() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "layout",
		Aliases: []string{"layouts"},
		Short:   "List the known layouts, or show one",
		Example: "  firn layout show twitter",
		RunE:    needsCommand,
	}
	cmd.AddCommand(newLayoutLs(), newLayoutShow())
	return cmd
}

func newLayoutLs() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the known layouts",
		Long: `List the layouts that are known by name: their bits, when they begin and end, how many ids
a second one worker makes at most, and how many workers there are. Where ids are made in shards,
that is of each shard, and WORKERS says how many shards there are.`,
		Example: `  firn layout ls
  firn layout ls --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listLayouts(cmd.OutOrStdout(), wantsJSON(cmd), time.Now())
		},
	}
}

func newLayoutShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME|SPEC",
		Short: "Show the fields, limits and end date of a layout",
		Long: `Show a layout: its picture, when it begins and ends, how many workers it has and how many
ids each can make.

A spec lists the fields, high bits first, and says the epoch:
time:41@1ms,shard:13,seq:10;epoch=2011-08-24T21:07:01.721Z. A preset can be given
another epoch: twitter;epoch=2020-01-01T00:00:00Z.`,
		Example: `  firn layout show twitter
  firn layout show 'time:41@1ms,worker:10,seq:12;epoch=2026-01-01T00:00:00Z' --json`,
		Args: arguments(1, 1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeLayouts(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := firn.ParseLayout(args[0])
			if err != nil {
				return err
			}
			return showLayout(cmd.OutOrStdout(), l, wantsJSON(cmd), time.Now())
		},
	}
}

// A layoutFacts is what is worth knowing of a layout, as --json prints it.
type layoutFacts struct {
	Layout    string   `json:"layout"` // the preset's name, or the spec
	Spec      string   `json:"spec"`
	Bits      string   `json:"bits"` // 41/10/12
	Tick      string   `json:"tick"`
	Epoch     string   `json:"epoch"`
	End       string   `json:"end"`
	YearsLeft float64  `json:"years_left"`
	Rate      float64  `json:"ids_per_second"` // of one worker, at most
	Workers   int64    `json:"workers"`
	Shards    int64    `json:"shards"`
	Ordered   bool     `json:"ordered"`
	Safe53    string   `json:"exact_in_javascript_until"`
	Warnings  []string `json:"warnings,omitempty"`

	of firn.Layout
}

func factsOf(l firn.Layout, now time.Time) layoutFacts {
	spec := l.String()
	tick, _ := l.Field("time")
	_, unit, _ := strings.Cut(spec, fmt.Sprintf("time:%d@", tick.Width))
	unit = unit[:strings.IndexAny(unit, ",;")]
	var widths []string
	for f := range l.Fields() {
		widths = append(widths, strconv.Itoa(f.Width))
	}
	f := layoutFacts{
		of: l, Layout: layoutName(l), Spec: spec, Bits: strings.Join(widths, "/"), Tick: unit,
		Epoch: l.Epoch().Format(time.RFC3339Nano), End: l.End().Format(time.RFC3339Nano),
		YearsLeft: float64(int(plan.YearsBetween(now, l.End())*10)) / 10,
		Rate:      l.Rate(), Workers: l.Workers(), Shards: l.Shards(), Ordered: l.Ordered(),
		Safe53: l.Safe53().Format(time.RFC3339Nano),
	}
	if !l.End().After(now) {
		f.Warnings = append(f.Warnings, "it has ended: it makes no ids any more")
	} else if f.YearsLeft < plan.FewYears {
		f.Warnings = append(f.Warnings, fmt.Sprintf("it ends in %.1f years", f.YearsLeft))
	}
	if !f.Ordered {
		f.Warnings = append(f.Warnings, "its ids do not sort by time")
	}
	return f
}

// perMaker is which of them makes that many ids a second.
func (f *layoutFacts) perMaker() string {
	switch {
	case f.Shards == 1:
		return "a worker"
	case f.Workers == 1:
		return "a shard"
	}
	return "a worker of a shard"
}

// makers are the workers, or the shards of a layout whose ids are made in shards.
func (f *layoutFacts) makers() string {
	shards := strconv.FormatInt(f.Shards, 10) + " shards"
	switch {
	case f.Shards == 1:
		return strconv.FormatInt(f.Workers, 10)
	case f.Workers == 1:
		return shards
	}
	return fmt.Sprintf("%d in each of %s", f.Workers, shards)
}

func listLayouts(out io.Writer, asJSON bool, now time.Time) error {
	var all []layoutFacts
	for _, l := range firn.Presets() {
		all = append(all, factsOf(l, now))
	}
	header := []string{"NAME", "BITS", "TICK", "EPOCH", "ENDS", "IDS/S", "WORKERS", "SORTS BY TIME", "EXACT IN JS UNTIL"}
	return ui.Emit(out, asJSON, header, all, func(f layoutFacts) []any {
		sorts := "yes"
		if !f.Ordered {
			sorts = "no"
		}
		l := f.of
		return []any{
			f.Layout, f.Bits, f.Tick, l.Epoch().Format(time.DateOnly), l.End().Format(time.DateOnly),
			phrase.Count(int64(f.Rate)), f.makers(), sorts, l.Safe53().Format(time.DateOnly),
		}
	})
}

func showLayout(out io.Writer, l firn.Layout, asJSON bool, now time.Time) error {
	if l.Epoch().After(now) {
		return ui.Bad("layout %s begins in the future, on %s", layoutName(l), l.Epoch().Format(time.RFC3339Nano)).
			Hint("choose an epoch that has passed: an id made before it would be negative")
	}
	f := factsOf(l, now)
	if asJSON {
		return json.NewEncoder(out).Encode(f)
	}
	ordered := "yes"
	if !f.Ordered {
		ordered = "no"
	}
	fmt.Fprintf(out, "%s\n\n%s\n\n", f.Layout, strings.TrimRight(picture.Of(l), "\n"))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("spec", "%s", f.Spec)
	row("begins", "%s", f.Epoch)
	row("ends", "%s (%.1f years left)", f.End, max(f.YearsLeft, 0))
	row("tick", "%s", f.Tick)
	row("ids per second", "%s %s, at most", phrase.Count(int64(f.Rate)), f.perMaker())
	if f.Workers > 1 || f.Shards == 1 {
		row("workers", "%s", phrase.Count(f.Workers))
	}
	if f.Shards > 1 {
		row("shards", "%s", phrase.Count(f.Shards))
	}
	row("sorts by time", "%s", ordered)
	row("exact in JavaScript", "until %s", f.Safe53)
	for _, warning := range f.Warnings {
		row("warning", "%s", warning)
	}
	return w.Flush()
}
