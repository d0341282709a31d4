package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/rebalance"
	"github.com/firn-id/firn/shard/topology"
)

// planned returns the shards that would move.
func (o *shardsRebalance) planned(ctx context.Context, cmd *cobra.Command, servers []topology.Server) (*rebalance.Plan, error) {
	show := ui.ShowLine(o.By == rebalance.Rate, cmd.ErrOrStderr(), func(elapsed time.Duration) string {
		return fmt.Sprintf("counting rows that are written: %s of %s", elapsed.Round(time.Second), o.Sample)
	})
	p, err := rebalance.NewPlan(ctx, servers, &o.Options)
	show.Stop()
	var fixed *rebalance.FixedError
	switch {
	case errors.As(err, &fixed) && fixed.Move != nil:
		return nil, ui.Failed("%s", phrase.WithoutPackage(err.Error())).Hint("%s", nextText(*fixed.Move))
	case errors.As(err, &fixed):
		return nil, ui.Failed("%s", phrase.WithoutPackage(err.Error())).Hint("firn shard doctor")
	case err != nil:
		return nil, moveFailure(err)
	}
	return p, nil
}

// barWidth is how many characters the longest bar has.
const barWidth = 24

// A balanceLine is a server as --json prints it, before and after.
type balanceLine struct {
	Server      string  `json:"server"`
	Shards      int     `json:"shards"`
	ShardsAfter int     `json:"shards_after"`
	Load        float64 `json:"load"` // bytes, or rows a second
	LoadAfter   float64 `json:"load_after"`
}

// A rebalanceLine is a plan as --json prints it.
type rebalanceLine struct {
	By      string          `json:"by"`
	Servers []balanceLine   `json:"servers"`
	Moves   []balanceMoving `json:"moves"`
	Bytes   int64           `json:"bytes"` // to copy

	Estimate *rebalanceEstimate `json:"estimate,omitempty"` // none where nothing was measured
}

type balanceMoving struct {
	Shard int64  `json:"shard"`
	From  string `json:"from"`
	To    string `json:"to"`
	Bytes int64  `json:"bytes"`
}

func planLine(p *rebalance.Plan) rebalanceLine {
	l := rebalanceLine{By: string(p.By), Moves: []balanceMoving{}}
	before, after := p.Loads()
	shards, change := make(map[string]int), make(map[string]int)
	for _, s := range p.Shards {
		shards[s.Server]++
	}
	for _, m := range p.Moves {
		change[m.Server]--
		change[m.To]++
		l.Bytes += m.Bytes
		l.Moves = append(l.Moves, balanceMoving{m.Number, m.Server, m.To, m.Bytes})
	}
	for _, name := range p.Servers {
		l.Servers = append(l.Servers, balanceLine{name, shards[name], shards[name] + change[name], before[name], after[name]})
	}
	l.Estimate = newRebalanceEstimate(p.Estimate())
	return l
}

func printPlanned(out io.Writer, p *rebalance.Plan, terminal, asJSON bool) error {
	l := planLine(p)
	if asJSON {
		return json.NewEncoder(out).Encode(l)
	}
	most := 0.0
	for _, s := range l.Servers {
		most = max(most, s.Load, s.LoadAfter)
	}
	block := "#"
	if terminal {
		block = "█"
	}
	bar := func(load float64) string {
		n := 0
		if most > 0 {
			n = int(math.Round(load / most * barWidth))
		}
		return strings.Repeat(block, n) + strings.Repeat(" ", barWidth-n)
	}
	load := func(v float64) string { return phrase.Bytes(int64(v)) }
	if p.By == rebalance.Rate {
		load = func(v float64) string { return fmt.Sprintf("%.1f rows/s", v) }
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\t\tSHARDS\tLOAD\t")
	for _, s := range l.Servers {
		fmt.Fprintf(w, "%s\tnow\t%d\t%s\t%s\n", s.Server, s.Shards, load(s.Load), strings.TrimRight(bar(s.Load), " "))
		fmt.Fprintf(w, "\tthen\t%d\t%s\t%s\n", s.ShardsAfter, load(s.LoadAfter), strings.TrimRight(bar(s.LoadAfter), " "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(p.Moves) == 0 {
		_, err := fmt.Fprintln(out, "\nnothing to move")
		return err
	}
	if _, err := fmt.Fprintf(out, "\n%s to move, %s to copy\n", phrase.Plural(len(p.Moves), "shard"), phrase.Bytes(l.Bytes)); err != nil {
		return err
	}
	return printRebalanceEstimate(out, p.Estimate())
}
