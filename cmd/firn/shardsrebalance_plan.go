package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/balance"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
)

// A rebalancing is what is to be moved, and why.
type rebalancing struct {
	by      string
	servers []string
	shards  []balance.Shard
	moves   []balance.Move
}

func (o *shardsRebalance) planned(ctx context.Context, cmd *cobra.Command, servers []shard.Server) (*rebalancing, error) {
	p := &rebalancing{by: o.by}
	for _, s := range servers {
		p.servers = append(p.servers, s.Name)
	}
	var err error
	if p.shards, err = o.measured(ctx, cmd, servers); err != nil {
		return nil, err
	}
	flights, err := move.Flights(ctx, servers)
	if err != nil {
		return nil, moveFailure(err)
	}
	for i, one := range p.shards {
		at := slices.IndexFunc(flights, func(f move.Flight) bool { return slices.Contains(f.Shards, one.Number) })
		moving := at >= 0
		switch {
		case one.Server == o.drain && moving:
			return nil, failed("shard %d on %s is in a move that is not finished", one.Number, o.drain).hint("%s", nextText(flights[at]))
		case one.Server == o.drain && one.Fixed:
			return nil, failed("shard %d on %s is closed, and only an open one moves", one.Number, o.drain).hint("firn shards doctor")
		}
		p.shards[i].Fixed = one.Fixed || moving
	}
	if o.drain != "" {
		p.moves, err = balance.Drain(p.servers, p.shards, o.drain)
	} else {
		p.moves, err = balance.Even(p.servers, p.shards)
	}
	return p, err
}

// measured are the shards with what they bear.
func (o *shardsRebalance) measured(ctx context.Context, cmd *cobra.Command, servers []shard.Server) ([]balance.Shard, error) {
	first, err := loads(ctx, servers)
	if err != nil {
		return nil, err
	}
	var shards []balance.Shard
	for _, l := range first {
		for _, s := range l.Shards {
			// A shard without rows is not nothing: it has files, and may get rows.
			shards = append(shards, balance.Shard{Number: s.Shard, Server: l.Server, Bytes: s.Bytes, Load: float64(s.Bytes + 8192), Fixed: !s.Open})
		}
	}
	if o.by == "size" {
		return shards, nil
	}
	show := showLine(true, cmd.ErrOrStderr(), func(elapsed time.Duration) string {
		return fmt.Sprintf("counting rows that are written: %s of %s", elapsed.Round(time.Second), o.sample)
	})
	select {
	case <-time.After(o.sample):
	case <-ctx.Done():
	}
	show.stop()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	second, err := loads(ctx, servers)
	if err != nil {
		return nil, err
	}
	return rated(shards, first, second), nil
}

// loads are what all servers bear.
func loads(ctx context.Context, servers []shard.Server) ([]*check.Load, error) {
	all := check.Loads(ctx, servers)
	for _, l := range all {
		if l.Err != nil {
			return nil, l.Err
		}
	}
	return all, nil
}

// rated are shards whose load is what was written to them between two looks, in rows a
// second: nothing where that cannot be told.
func rated(shards []balance.Shard, first, second []*check.Load) []balance.Shard {
	rates := make(map[string]map[int64]float64)
	for i, l := range second {
		rates[l.Server] = l.Rates(first[i])
	}
	for i, s := range shards {
		shards[i].Load = rates[s.Server][s.Number]
	}
	return shards
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
}

type balanceMoving struct {
	Shard int64  `json:"shard"`
	From  string `json:"from"`
	To    string `json:"to"`
	Bytes int64  `json:"bytes"`
}

func (p *rebalancing) line() rebalanceLine {
	l := rebalanceLine{By: p.by, Moves: []balanceMoving{}}
	before, after := balance.Loads(p.servers, p.shards, nil), balance.Loads(p.servers, p.shards, p.moves)
	shards, change := make(map[string]int), make(map[string]int)
	for _, s := range p.shards {
		shards[s.Server]++
	}
	for _, m := range p.moves {
		change[m.Server]--
		change[m.To]++
		l.Bytes += m.Bytes
		l.Moves = append(l.Moves, balanceMoving{m.Number, m.Server, m.To, m.Bytes})
	}
	for _, name := range p.servers {
		l.Servers = append(l.Servers, balanceLine{name, shards[name], shards[name] + change[name], before[name], after[name]})
	}
	return l
}

func (p *rebalancing) print(out io.Writer, terminal, asJSON bool) error {
	l := p.line()
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
	load := func(v float64) string { return byteText(int64(v)) }
	if p.by == "rate" {
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
	if len(p.moves) == 0 {
		_, err := fmt.Fprintln(out, "\nnothing is to be moved")
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s to move, %s to copy\n\n", plural(len(p.moves), "shard"), byteText(l.Bytes))
	return err
}
