package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/balance"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
)

func newShardsRebalance() *cobra.Command {
	var o shardsRebalance
	cmd := &cobra.Command{
		Use:   "rebalance",
		Short: "Move shards so that all servers bear an equal load",
		Long: `Move shards so that all servers bear an equal load, with few bytes copied: first it
shows what each server has and would have, then it moves, and drops the old copies.

The load is the size of tables and indexes, or with --by rate the rows that are written,
which it counts for --sample. Within 5 percent of the mean a server is left as it is.

--drain empties a server, after which firn shards remove-server takes it out of the
cluster.

Broken off at any instant, it goes on when it is run again: with the moves that are under
way first, and then by a new plan. firn shards move says what a move needs.`,
		Example: `  firn shards add-server c=postgres://firn@db3/app
  firn shards rebalance --dry-run
  firn shards rebalance --parallel 2
  firn shards rebalance --drain a`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return signalled(ctx, o.run(ctx, cmd))
		},
	}
	addServers(cmd)
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.by, "by", "size", "what is to be even: size or rate")
	flags.DurationVar(&o.sample, "sample", 10*time.Second, "how long rows that are written are counted, with --by rate")
	flags.StringVar(&o.drain, "drain", "", "the server to empty, instead of making all even")
	flags.IntVar(&o.parallel, "parallel", 1, "how many moves are under way at once, each of up to 32 shards between two servers")
	flags.BoolVar(&o.keep, "keep", false, "leave the old copies, until firn shards finish")
	flags.BoolVar(&o.dry, "dry-run", false, "show what would be done, and do nothing")
	return cmd
}

type shardsRebalance struct {
	shardsMove
	by       string
	sample   time.Duration
	drain    string
	parallel int
	keep     bool
}

// together is how many shards one move takes: all are copied before the first changes over.
const together = 32

func (o *shardsRebalance) run(ctx context.Context, cmd *cobra.Command) error {
	switch {
	case o.by != "size" && o.by != "rate":
		return bad("--by %q: it is size or rate", o.by)
	case o.sample <= 0:
		return bad("--sample %s: it is above 0", o.sample)
	case o.parallel < 1:
		return bad("--parallel %d: at least 1", o.parallel)
	}
	servers, _, err := o.find(ctx, cmd, allShards)
	if err != nil {
		return err
	}
	if o.drain != "" && !slices.ContainsFunc(servers, func(s shard.Server) bool { return s.Name == o.drain }) {
		return unknownServer(o.drain, servers)
	}
	if err := o.goOn(ctx, cmd, servers); err != nil {
		return err
	}
	p, err := o.planned(ctx, servers)
	if err != nil {
		return err
	}
	if err := p.print(cmd.OutOrStdout(), isTerminal(cmd.OutOrStdout()), wantsJSON(cmd)); err != nil || o.dry || len(p.moves) == 0 {
		return err
	}
	return o.carry(ctx, cmd, servers, p)
}

// allShards is a list of all shards there can be.
const allShards = "0-2147483647"

// goOn brings moves that are under way to their ends. Old copies that somebody has
// left are left.
func (o *shardsRebalance) goOn(ctx context.Context, cmd *cobra.Command, servers []shard.Server) error {
	flights, err := move.Flights(ctx, servers)
	if err != nil {
		return moveFailure(err)
	}
	for _, f := range flights {
		switch {
		case f.Phase == move.Arrived:
			printWarning(cmd.ErrOrStderr(), "the old copy of shard %s is on %s still: firn shards finish %[1]s drops it", shardList(f.Shards), f.Source)
			continue
		case o.dry:
			printWarning(cmd.ErrOrStderr(), "shard %s is on the way from %s to %s, which comes first", shardList(f.Shards), f.Source, f.Target)
			continue
		}
		legs, err := move.Under(ctx, servers, f.Shards)
		if err != nil {
			return moveFailure(err)
		}
		if err := o.legs(ctx, cmd, legs); err != nil {
			return err
		}
	}
	return nil
}

// A rebalancing is what is to be moved, and why.
type rebalancing struct {
	by      string
	servers []string
	shards  []balance.Shard
	moves   []balance.Move
}

func (o *shardsRebalance) planned(ctx context.Context, servers []shard.Server) (*rebalancing, error) {
	p := &rebalancing{by: o.by}
	for _, s := range servers {
		p.servers = append(p.servers, s.Name)
	}
	var err error
	if p.shards, err = o.measured(ctx, servers); err != nil {
		return nil, err
	}
	flights, err := move.Flights(ctx, servers)
	if err != nil {
		return nil, moveFailure(err)
	}
	for i, one := range p.shards {
		p.shards[i].Fixed = slices.ContainsFunc(flights, func(f move.Flight) bool { return slices.Contains(f.Shards, one.Number) })
		if p.shards[i].Fixed && one.Server == o.drain {
			return nil, failed("shard %d on %s is in a move that is not finished", one.Number, o.drain).hint("firn shards finish %d", one.Number)
		}
	}
	if o.drain != "" {
		p.moves, err = balance.Drain(p.servers, p.shards, o.drain)
	} else {
		p.moves, err = balance.Even(p.servers, p.shards)
	}
	return p, err
}

// measured are the shards with what they bear.
func (o *shardsRebalance) measured(ctx context.Context, servers []shard.Server) ([]balance.Shard, error) {
	first, err := loads(ctx, servers)
	if err != nil {
		return nil, err
	}
	var shards []balance.Shard
	for _, l := range first {
		for _, s := range l.Shards {
			// A shard without rows is not nothing: it has files, and may get rows.
			shards = append(shards, balance.Shard{Number: s.Shard, Server: l.Server, Bytes: s.Bytes, Load: float64(s.Bytes + 8192)})
		}
	}
	if o.by == "size" {
		return shards, nil
	}
	select {
	case <-time.After(o.sample):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	second, err := loads(ctx, servers)
	if err != nil {
		return nil, err
	}
	return rates(shards, first, second), nil
}

// loads are what all servers bear.
func loads(ctx context.Context, servers []shard.Server) ([]*check.Load, error) {
	all := check.Loads(ctx, servers)
	for _, l := range all {
		if l.Err != nil {
			return nil, failed("%w", l.Err).hint("all servers have to be there: firn shards status")
		}
	}
	return all, nil
}

// rates are shards whose load is what was written to them between two looks, by the
// second. One that moved meanwhile, or whose server counts anew, has written nothing.
func rates(shards []balance.Shard, first, second []*check.Load) []balance.Shard {
	type at struct {
		server string
		shard  int64
	}
	rate := make(map[at]float64)
	for i, l := range second {
		passed := l.At.Sub(first[i].At).Seconds()
		for _, s := range l.Shards {
			rate[at{l.Server, s.Shard}] = float64(s.Writes) / passed
		}
		for _, s := range first[i].Shards {
			rate[at{l.Server, s.Shard}] = max(rate[at{l.Server, s.Shard}]-float64(s.Writes)/passed, 0)
		}
	}
	for i, s := range shards {
		shards[i].Load = rate[at{s.Server, s.Number}]
	}
	return shards
}

// carry does what is planned, some moves at a time.
func (o *shardsRebalance) carry(ctx context.Context, cmd *cobra.Command, servers []shard.Server, p *rebalancing) error {
	to := make(map[string][]int64)
	for _, m := range p.moves {
		to[m.To] = append(to[m.To], m.Number)
	}
	var legs []move.Leg
	for _, name := range p.servers {
		if len(to[name]) == 0 {
			continue
		}
		some, err := move.Legs(ctx, servers, slices.Sorted(slices.Values(to[name])), name)
		if err != nil {
			return moveFailure(err)
		}
		legs = append(legs, some...)
	}
	if err := refusals(ctx, legs); err != nil {
		return err
	}
	var parts []move.Leg
	for _, l := range legs {
		for some := range slices.Chunk(l.Shards, together) {
			parts = append(parts, move.Leg{Source: l.Source, Target: l.Target, Shards: some, New: some})
		}
	}
	return o.legs(ctx, cmd, parts)
}

// refusals looks at what speaks against any of the moves, before the first is begun.
func refusals(ctx context.Context, legs []move.Leg) error {
	var refused []move.Refusal
	for _, l := range legs {
		p, err := move.NewPlan(ctx, l.Source, l.Target, l.New, false)
		if err != nil {
			return moveFailure(err)
		}
		refused = append(refused, p.Refusals...)
	}
	if len(refused) > 0 {
		return &failure{code: exitFound, err: &move.RefusedError{Refusals: refused}}
	}
	return nil
}

// legs moves the shards of legs, and drops their old copies. Where one fails, those that
// are under way come to their ends, and no other begins.
func (o *shardsRebalance) legs(ctx context.Context, cmd *cobra.Command, legs []move.Leg) error {
	far := &rebalanced{began: time.Now(), legs: make([]move.Progress, len(legs))}
	for i, l := range legs {
		far.legs[i].Shards = len(l.Shards)
	}
	show := showLine(true, cmd.ErrOrStderr(), far.line)
	var group errgroup.Group
	group.SetLimit(o.parallel)
	for i, l := range legs {
		group.Go(func() error {
			if far.failed() || ctx.Err() != nil {
				return nil
			}
			moved, err := o.leg(ctx, l, func(p move.Progress) { far.progress(i, p) })
			far.add(l, moved, err)
			return nil
		})
	}
	group.Wait()
	show.stop()
	return far.report(ctx, cmd)
}

func (o *shardsRebalance) leg(ctx context.Context, l move.Leg, progress func(move.Progress)) ([]move.Moved, error) {
	options := o.options
	options.Progress = progress
	m := move.New(l.Source, l.Target, &options)
	defer m.Close()
	moved, err := m.Move(ctx, l.Shards)
	if err == nil && !o.keep {
		_, err = m.Finish(ctx, l.Shards)
	}
	return moved, err
}

// A rebalanced is how far it is. It is safe for concurrent use.
type rebalanced struct {
	began time.Time

	mu    sync.Mutex
	legs  []move.Progress
	moved []movedLine
	err   error
}

func (r *rebalanced) progress(i int, p move.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.legs[i] = p
}

func (r *rebalanced) add(l move.Leg, moved []move.Moved, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range moved {
		r.moved = append(r.moved, newMovedLine(m, l.Source.Name, l.Target.Name))
	}
	r.err = errors.Join(r.err, err)
}

func (r *rebalanced) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

func (r *rebalanced) line(time.Duration) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var shards, done int
	var now string
	for _, p := range r.legs {
		shards, done = shards+p.Shards, done+p.Done
		if p.Phase != "" && p.Done < p.Shards {
			now = moveLine(p)
		}
	}
	return fmt.Sprintf("%d of %d shards moved; %s", done, shards, now)
}

// report prints what was moved.
func (r *rebalanced) report(ctx context.Context, cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	var worst float64
	var rows int64
	for _, l := range r.moved {
		worst, rows = max(worst, l.Pause), rows+l.Rows
		if wantsJSON(cmd) {
			if err := json.NewEncoder(out).Encode(l); err != nil {
				return err
			}
		}
	}
	if !wantsJSON(cmd) && len(r.moved) > 0 {
		if _, err := fmt.Fprintf(out, "%s moved with %s rows in %s, the longest pause %.0f ms\n",
			plural(len(r.moved), "shard"), count(rows), time.Since(r.began).Round(100*time.Millisecond), worst); err != nil {
			return err
		}
	}
	if err := cmp.Or(r.err, ctx.Err()); err != nil {
		return moveFailure(err).hint("firn shards rebalance goes on where it was, with the same flags; firn shards status shows moves that are under way")
	}
	return nil
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

// shardList is a list of shards as it is typed.
func shardList(shards []int64) string {
	var n shardNumbers
	for _, s := range slices.Sorted(slices.Values(shards)) {
		if last := len(n.ranges) - 1; last >= 0 && n.ranges[last].last+1 == s {
			n.ranges[last].last = s
		} else {
			n.ranges = append(n.ranges, shardRange{s, s})
		}
	}
	return n.String()
}
