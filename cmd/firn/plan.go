package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/plan"
)

func newPlan() *cobra.Command {
	o := planOptions{workers: knobFlag{Key: config.KeyNamed(config.LeaseKeys, "workers")}}
	cmd := &cobra.Command{
		Use:   "plan --rate R --workers N --years Y",
		Short: "Find a layout for a rate, a number of workers and years",
		Long: `Find layouts that have room for so many ids per second, made by so many workers,
for so many years from now. A worker has to make its share of the rate; where the
load is uneven, --worker-rate says how much one has to make. The epoch is the start
of this year, unless the layout is one known by name.

The best comes first. Room is how many times over a layout has what is asked, in
rate, workers or years, wherever that is least. firn's own layout is best if it
fits, as nothing has to be set; then come those with room of at least 2, the finer
tick first, for ids of different workers are in order as finely as that; then those
with less. Of two that are alike the one with more room, a finer tick, fewer bits
comes first.

--above ID leaves only layouts whose every id from now on is greater than ID, for a
system that changes its ids and wants them to keep increasing; the epoch is then as
early as that takes. ID is the greatest there will be when the change is made, and
clocks may be a minute behind this one.

If nothing fits in 63 bits the hints are what would do, each by itself.`,
		Example: `  firn plan --rate 20000 --workers 500 --years 50
  firn plan --rate 1000 --worker-rate 1000 --workers 64 --years 20
  firn plan --rate 100 --workers 4 --years 30 --above 1541815603606036480 --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := o.need(cmd.Flags())
			if err != nil {
				return err
			}
			now := time.Now()
			all, err := n.Proposals(now)
			if err != nil {
				return planFailure(cmd, err)
			}
			return printPlan(cmd.OutOrStdout(), all, now, wantsJSON(cmd))
		},
	}
	cmd.Flags().Float64Var(&o.rate, "rate", 0, "ids per second, of all workers together")
	cmd.Flags().Var(&o.workers, "workers", "how many workers, or which, such as 0-255")
	cmd.Flags().Float64Var(&o.years, "years", 0, "how many years from now on")
	cmd.Flags().Float64Var(&o.peak, "worker-rate", 0, "ids per second that one worker has to make (its share of --rate)")
	cmd.Flags().StringVar(&o.above, "above", "", "the greatest id that exists: all later ones must be greater")
	return cmd
}

type planOptions struct {
	rate, peak, years float64
	workers           knobFlag // of the knob workers: N, or A-B
	above             string
}

// planFlags are the flags of what is asked.
var planFlags = map[plan.Requirement]string{
	plan.Rate: "rate", plan.Workers: "workers", plan.WorkerRate: "worker-rate", plan.Years: "years",
}

// need is what the flags ask for.
func (o *planOptions) need(flags *pflag.FlagSet) (plan.Need, error) {
	var pool config.LeaseOptions
	if o.workers.text != "" {
		if err := config.SetWorkers(&pool, o.workers.text); err != nil {
			return plan.Need{}, valueError("--workers", err)
		}
	}
	n := plan.Need{Rate: o.rate, WorkerRate: o.peak, Workers: pool.Workers.Last - pool.Workers.First + 1, Years: o.years}
	if !flags.Changed("rate") || o.workers.text == "" || !flags.Changed("years") {
		return n, ui.Bad("--rate, --workers and --years are required").Hint("firn plan --rate 20000 --workers 500 --years 50")
	}
	if o.above != "" {
		id, err := firn.ParseID(o.above)
		if err != nil {
			return n, valueError("--above", err)
		}
		n.Above = id
	}
	return n, nil
}

// planFailure says of which flag there is something else, or which smaller values would do.
func planFailure(cmd *cobra.Command, err error) error {
	var outside *plan.RangeError
	if errors.As(err, &outside) {
		name := planFlags[outside.Requirement]
		return ui.Bad("--%s %s: %s", name, cmd.Flag(name).Value, outside.Range)
	}
	f := ui.Failed("%w", err)
	var none *plan.NoneError
	if !errors.As(err, &none) {
		return f
	}
	for _, r := range none.Relaxed {
		f = f.Hint("--%s %.0f would do, the rest as it is", planFlags[r.Requirement], r.Most)
	}
	if len(none.Relaxed) == 0 {
		f = f.Hint("no single one of them, made smaller, would do: --rate, --worker-rate, --workers, --years")
	}
	return f
}

// A proposalLine is a proposal as --json prints it.
type proposalLine struct {
	layoutFacts
	Room  float64 `json:"room"`
	Spare int     `json:"spare_bits"`
	First string  `json:"first_id"` // of this instant

	room string
}

func printPlan(out io.Writer, all []plan.Proposal, now time.Time, asJSON bool) error {
	var lines []proposalLine
	for _, p := range all {
		first, _, err := p.Layout.Bounds(now, now)
		if err != nil {
			return err
		}
		lines = append(lines, proposalLine{factsOf(p.Layout, now), math.Floor(p.Room*100) / 100, p.Spare, first.String(), roomText(p.Room)})
	}
	header := []string{"ROOM", "BITS", "SPARE", "TICK", "IDS/S A WORKER", "WORKERS", "ENDS", "YEARS LEFT", "EXACT IN JS", "LAYOUT"}
	return ui.Emit(out, asJSON, header, lines, func(f proposalLine) []any {
		inJS := "always"
		if f.of.Safe53().Before(f.of.End()) {
			inJS = "until " + f.of.Safe53().Format(time.DateOnly)
		}
		return []any{
			f.room + "x", f.Bits, f.Spare, f.Tick, phrase.Count(int64(f.Rate)), phrase.Count(f.Workers),
			f.of.End().Format(time.DateOnly), fmt.Sprintf("%.1f", f.YearsLeft), inJS, f.Layout,
		}
	})
}

// roomText writes how many times, rounded down: 1.3, 27, 5,400.
func roomText(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.1f", math.Floor(x*10)/10)
	}
	return phrase.Count(int64(x))
}
