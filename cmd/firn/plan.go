package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/nearest"
)

func newPlan() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan --rate R --workers N --years Y",
		Short: "Find layouts for a rate, a number of workers and of years",
		Long: `Find layouts that have room for so many ids per second, made by so many workers,
for so many years from now. A worker has to make its share of the rate; where the
load is uneven, --worker-rate says how much one has to make. The epoch is the start
of this year, unless the layout is one known by name.

The best comes first. Room is how many times over a layout has what is asked, in
rate, workers or years, wherever that is least. firn's own layout is best if it
fits, as nothing has to be set; then come those with room of at least 2, the finer
tick first, for ids of different workers are in order as finely as that; then those
with less. --sort-by orders otherwise. Of two that are alike the one with more
room, a finer tick, fewer bits comes first.

--above ID leaves only layouts whose every id from now on is greater than ID, for a
system that changes its ids and wants them to keep increasing; the epoch is then as
early as that takes. ID is the greatest there will be when the change is made, and
clocks may be a minute behind this one.

If nothing fits in 63 bits the hints are what would do, each by itself.`,
		Example: `  firn plan --rate 20000 --workers 500 --years 50
  firn plan --rate 1000 --worker-rate 1000 --workers 64 --years 20 --sort-by bits
  firn plan --rate 100 --workers 4 --years 30 --above 1541815603606036480 --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := o.need()
			if err != nil {
				return err
			}
			now := time.Now()
			all := n.plan(now)
			if len(all) == 0 {
				return n.nothing(now)
			}
			sortProposals(all, o.order)
			return printPlan(cmd.OutOrStdout(), all, now, wantsJSON(cmd))
		},
	}
	cmd.Flags().Float64Var(&o.rate, "rate", 0, "ids per second, of all workers together")
	cmd.Flags().Int64Var(&o.workers, "workers", 0, "how many workers")
	cmd.Flags().Float64Var(&o.years, "years", 0, "how many years from now on")
	cmd.Flags().Float64Var(&o.peak, "worker-rate", 0, "ids per second that one worker has to make (its share of --rate)")
	cmd.Flags().StringVar(&o.above, "above", "", "the greatest id there is: all from now on are to be greater")
	orders := strings.Join(slices.Sorted(maps.Keys(planOrders)), ", ")
	cmd.Flags().StringVar(&o.order, "sort-by", "best", "what comes first: "+orders)
	return cmd
}

type planOptions struct {
	rate, peak, years float64
	workers           int64
	above, order      string
}

// Limits of what can be asked.
const (
	mostYears = 1000
	mostRate  = 1e15
)

// need checks the flags.
func (o *planOptions) need() (need, error) {
	n := need{rate: o.rate, peak: o.peak, workers: o.workers, years: o.years}
	example := "firn plan --rate 20000 --workers 500 --years 50"
	switch {
	case o.rate == 0 || o.workers == 0 || o.years == 0:
		return n, bad("--rate, --workers and --years have to be said").hint("%s", example)
	case !(o.rate > 0 && o.rate <= mostRate):
		return n, bad("--rate %v: there is more than 0 and at most %v", o.rate, float64(mostRate))
	case !(o.peak >= 0 && o.peak <= o.rate):
		return n, bad("--worker-rate %v: one worker makes at most what all make, %v", o.peak, o.rate)
	case o.workers < 0:
		return n, bad("--workers %d: there is at least 1", o.workers)
	case !(o.years > 0 && o.years <= mostYears):
		return n, bad("--years %v: there is more than 0 and at most %d", o.years, mostYears)
	}
	if _, ok := planOrders[o.order]; !ok {
		names := slices.Sorted(maps.Keys(planOrders))
		f := bad("--sort-by %s: it is one of %s", o.order, strings.Join(names, ", "))
		if best := nearest.Name(o.order, names); best != "" {
			f = f.hint("is it %s?", best)
		}
		return n, f
	}
	if o.above != "" {
		id, err := firn.ParseID(o.above)
		if err != nil {
			return n, valueError("--above", err)
		}
		n.above = id
	}
	return n, nil
}

// nothing says why nothing fits, and what would.
func (n need) nothing(now time.Time) error {
	worker, seq := n.least(1)
	f := failed("nothing fits in %d bits: in ticks of 1ms, %s of workers and %s of sequence leave %s of time", widest,
		plural(worker, "bit"), plural(seq, "bit"), plural(max(widest-worker-seq, 0), "bit"))
	flags := n.relaxed(now)
	if n.above > 0 {
		free := n
		free.above = 0
		if free.possible(now) {
			f.err = fmt.Errorf("nothing that fits in %d bits has ids above %d: an epoch is not before 1970, "+
				"so too much of the time would have passed", widest, n.above)
		}
	}
	for _, flag := range flags {
		f = f.hint("%s would do, the rest as it is", flag)
	}
	if len(flags) == 0 {
		f = f.hint("no single one of them, made smaller, would do: --rate, --worker-rate, --workers, --years")
	}
	return f
}

// A proposalLine is a proposal as --json prints it.
type proposalLine struct {
	layoutFacts
	Room  float64 `json:"room"`
	Spare int     `json:"spare_bits"`
	First string  `json:"first_id"` // of this instant
}

func printPlan(out io.Writer, all []proposal, now time.Time, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		for _, p := range all {
			first, _, err := p.Bounds(now, now)
			if err != nil {
				return err
			}
			if err := enc.Encode(proposalLine{factsOf(p.Layout, now), math.Floor(p.room*100) / 100, p.spare, first.String()}); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ROOM\tBITS\tSPARE\tTICK\tIDS/S A WORKER\tWORKERS\tENDS\tYEARS LEFT\tEXACT IN JS\tLAYOUT")
	for _, p := range all {
		f := factsOf(p.Layout, now)
		inJS := "always"
		if p.Safe53().Before(p.End()) {
			inJS = "until " + p.Safe53().Format(time.DateOnly)
		}
		fmt.Fprintf(w, "%sx\t%s\t%d\t%s\t%s\t%s\t%s\t%.1f\t%s\t%s\n", roomText(p.room), f.Bits, p.spare, f.Tick,
			count(int64(f.Rate)), count(f.Workers), p.End().Format(time.DateOnly), f.YearsLeft, inJS, f.Layout)
	}
	return w.Flush()
}

// roomText writes how many times, rounded down: 1.3, 27, 5,400.
func roomText(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.1f", math.Floor(x*10)/10)
	}
	return count(int64(x))
}
