package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/plan"
	"github.com/firn-id/firn/shard/setup"
)

// This file says what a new cluster is for good, and asks whether that is meant.

// addYes adds --yes to a command that asks about what never changes in a cluster, or whether shards were never made.
func addYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask: what never changes is as it should be")
}

// agree asks whether a cluster that is not there yet is to be what is planned.
func (o *shardsInit) agree(ctx context.Context, cmd *cobra.Command, p *setup.Plan) error {
	switch made := p.Made(); {
	case o.dryRun, p.Cluster != "" && (made == 0 && p.Grown == 0 || o.yes):
		return nil
	case p.Grown > 0:
		question := fmt.Sprintf("Keys from %d on are of the new shards, from shard %d on. Rows with such keys that are there stay on shard %d, and no program finds them by their key. Is no such key in use, and will none be before a minute after this?",
			p.Keys.Bounds()[p.Grown], p.Grown, p.Grown-1)
		return ui.MustAsk(ctx, cmd, question, "the same command with --yes")
	case p.Cluster != "":
		question := fmt.Sprintf("Shards on no server, which would be made empty: %s. If a server had them, their rows are only in its backup, and numbers of your own sequences begin again. Were they never made?", phrase.Count(made))
		return ui.MustAsk(ctx, cmd, question, "the same command with --yes")
	}
	question := "How many shards there are, the layout, the keys and the schemas never change. Make the cluster so?"
	return askOfLayout(ctx, cmd, p.Layout, o.yes, question)
}

// askOfLayout asks a question about what is chosen for good; without one, only whether a
// layout is meant that ends soon.
func askOfLayout(ctx context.Context, cmd *cobra.Command, l firn.Layout, yes bool, question string) error {
	years := plan.YearsBetween(time.Now(), l.End())
	switch {
	case yes, years >= plan.FewYears && question == "":
		return nil
	case years < plan.FewYears:
		question = fmt.Sprintf("The layout ends on %s, in %.1f years, and never changes; from then on there are no ids. Is that long enough?", l.End().Format(time.DateOnly), years)
	}
	return ui.MustAsk(ctx, cmd, question, "the same command with --yes")
}

// printCluster prints what a new cluster is for good.
func printCluster(out io.Writer, p *setup.Plan) error {
	_, err := fmt.Fprintf(out, "%s of layout %s, keys %s, schemas %s\n%s\n",
		phrase.Plural(int(p.Keys.Shards()), "shard"), layoutName(p.Layout), p.Keys, p.Schemas, layoutLimits(p.Layout))
	return err
}

// layoutLimits says how many ids a shard gives, and until when.
func layoutLimits(l firn.Layout) string {
	seq, _ := l.Field("seq")
	tick := "every " + l.Unit().String()
	if l.Unit() == time.Millisecond {
		tick = "a millisecond"
	}
	return fmt.Sprintf("each gives up to %s ids %s, until %s", phrase.Count(1<<seq.Width), tick, l.End().Format(time.DateOnly))
}
