package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn/shard"
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
way first, and then by a new plan. It does not move a shard again that somebody took back
with firn shards revert. firn shards move says what a move needs.`,
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

func (o *shardsRebalance) run(ctx context.Context, cmd *cobra.Command) error {
	switch {
	case o.by != "size" && o.by != "rate":
		return bad("--by %q: it is size or rate", o.by)
	case o.sample <= 0:
		return bad("--sample %s: it is above 0", o.sample)
	case o.parallel < 1:
		return bad("--parallel %d: at least 1", o.parallel)
	}
	servers, err := members(ctx, cmd)
	if err != nil {
		return notBegun(ctx, cmd, err)
	}
	if o.drain != "" && !slices.ContainsFunc(servers, func(s shard.Server) bool { return s.Name == o.drain }) {
		return unknownServer(o.drain, servers)
	}
	if !o.dry {
		defer func() {
			if ctx.Err() != nil {
				sayBrokenOff(ctx, cmd, servers, nil, "firn shards rebalance, with the same flags")
			}
		}()
	}
	return o.even(ctx, cmd, servers)
}

// even brings to their ends the moves that are under way, and then makes a new plan and
// carries it out.
func (o *shardsRebalance) even(ctx context.Context, cmd *cobra.Command, servers []shard.Server) error {
	if err := o.goOn(ctx, cmd, servers); err != nil {
		return err
	}
	p, err := o.planned(ctx, cmd, servers)
	if err != nil {
		return err
	}
	if err := p.print(cmd.OutOrStdout(), isTerminal(cmd.OutOrStdout()), wantsJSON(cmd)); err != nil || len(p.moves) == 0 {
		return err
	}
	return o.carry(ctx, cmd, servers, p)
}

// members are the servers that were named, as far as they are in the cluster. All of
// those have to be there: nobody evens out what is not seen.
func members(ctx context.Context, cmd *cobra.Command) ([]shard.Server, error) {
	servers, err := shardServers(cmd)
	if err != nil {
		return nil, err
	}
	m, err := mapOf(ctx, servers)
	if err != nil {
		return nil, err
	}
	if len(m.Missing) > 0 {
		return nil, failed("server %s is in the cluster, and is not named", strings.Join(m.Missing, ", ")).hint("--server %s=postgres://..., or in firn.yaml", m.Missing[0])
	}
	return slices.DeleteFunc(slices.Clone(servers), func(s shard.Server) bool {
		if slices.Contains(m.Servers, s.Name) {
			return false
		}
		printWarning(cmd.ErrOrStderr(), "server %s is not in the cluster, and gets no shards; to take it in: %s", s.Name, hinter{cmd}.compose("firn shards add-server "+s.Name))
		return true
	}), nil
}

// goOn brings moves that are under way to their ends. Old copies that somebody has
// left are left.
func (o *shardsRebalance) goOn(ctx context.Context, cmd *cobra.Command, servers []shard.Server) error {
	if !o.dry {
		if err := move.Sweep(ctx, servers); err != nil {
			return moveFailure(err)
		}
	}
	flights, err := move.Flights(ctx, servers)
	if err != nil {
		return moveFailure(err)
	}
	for _, f := range flights {
		if err := o.goOnWith(ctx, cmd, servers, f); err != nil {
			return err
		}
	}
	return nil
}

// goOnWith brings one move to its end. Where somebody wants the shards back, they come back, and
// no copy is dropped.
func (o *shardsRebalance) goOnWith(ctx context.Context, cmd *cobra.Command, servers []shard.Server, f move.Flight) error {
	shards, way := f.Shards, o.leg
	returns := f.Phase == move.Between && len(f.Back) > 0
	switch {
	case returns:
		shards, way = f.Waiting, o.openWaiting(f.Back)
	case f.Phase == move.HalfLeft:
		way = o.endHalf
	case f.Phase == move.Arrived || len(f.Back) > 0:
		printWarning(cmd.ErrOrStderr(), "%s, and stays there; %s", standsText(f), hinter{cmd}.compose(nextText(f)))
		return nil
	}
	if o.dry {
		printWarning(cmd.ErrOrStderr(), "shard %s is on the way from %s to %s, which comes first; %s", move.List(f.Shards), f.Source, f.Target, hinter{cmd}.compose(nextText(f)))
		return nil
	}
	legs, err := move.Under(ctx, servers, shards)
	if err != nil {
		return moveFailure(err)
	}
	if err := o.legs(ctx, cmd, legs, way); err != nil || !returns {
		return err
	}
	flights, err := move.Flights(ctx, servers) // to say where the shards are now
	if err != nil {
		return moveFailure(err)
	}
	if at := slices.IndexFunc(flights, func(one move.Flight) bool { return one.Batch == f.Batch }); at >= 0 {
		return o.goOnWith(ctx, cmd, servers, flights[at])
	}
	return nil
}

// carry does what is planned, some moves at a time, or with --dry-run says what speaks
// against it.
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
	if err := o.refusals(ctx, cmd, legs); err != nil || o.dry {
		return err
	}
	return o.legs(ctx, cmd, inParts(legs), o.leg)
}

// refusals looks at what speaks against any of the moves, before the first is begun.
func (o *shardsRebalance) refusals(ctx context.Context, cmd *cobra.Command, legs []move.Leg) error {
	var refused []move.Refusal
	for _, l := range legs {
		p, err := move.NewPlan(ctx, l.Source, l.Target, l.New, false, &o.options)
		if err != nil {
			return moveFailure(err)
		}
		refused = append(refused, p.Refusals...)
		for _, n := range p.Notes {
			printWarning(cmd.ErrOrStderr(), "%s (%s)", n, n.Do)
		}
	}
	if len(refused) > 0 {
		return &failure{code: exitFound, err: &move.RefusedError{Refusals: refused}}
	}
	return nil
}

// A legFunc does what is left to do of one leg.
type legFunc func(context.Context, move.Leg, func(move.Progress)) ([]move.Moved, error)

// legs does something with all legs, some at a time. Where one fails, those that are
// under way come to their ends, and no other begins.
func (o *shardsRebalance) legs(ctx context.Context, cmd *cobra.Command, legs []move.Leg, way legFunc) error {
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
			moved, err := way(ctx, l, func(p move.Progress) { far.progress(i, p) })
			far.add(l, moved, err)
			return nil
		})
	}
	group.Wait()
	show.stop()
	return far.report(ctx, cmd)
}

// leg moves the shards of a leg, and drops their old copies.
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

// openWaiting opens shards that were let go, on the server that they were let go to: some go
// back.
func (o *shardsRebalance) openWaiting(back []int64) legFunc {
	return func(ctx context.Context, l move.Leg, _ func(move.Progress)) ([]move.Moved, error) {
		m := move.New(l.Source, l.Target, &o.options)
		defer m.Close()
		returns := func(n int64) bool { return slices.Contains(back, n) }
		if some := slices.DeleteFunc(slices.Clone(l.Shards), func(n int64) bool { return !returns(n) }); len(some) > 0 {
			if _, err := m.Revert(ctx, some); err != nil {
				return nil, err
			}
		}
		if some := slices.DeleteFunc(slices.Clone(l.Shards), returns); len(some) > 0 {
			return m.Move(ctx, some)
		}
		return nil, nil
	}
}

// endHalf ends what only one of two servers knows of. Somebody has begun to drop old copies, or
// to give it up; or it has just begun and copied nothing, and the next plan begins it anew.
func (o *shardsRebalance) endHalf(ctx context.Context, l move.Leg, _ func(move.Progress)) ([]move.Moved, error) {
	m := move.New(l.Source, l.Target, &o.options)
	defer m.Close()
	_, err := m.Finish(ctx, l.Shards)
	if errors.As(err, new(*move.StuckError)) {
		if _, err = m.Abort(ctx, l.Shards); err == nil {
			_, err = m.Finish(ctx, l.Shards) // those of them that have moved
		}
	}
	return nil, err
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
			now = phaseLine(p)
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
		if lacksRight(err) {
			return moveFailure(err)
		}
		return moveFailure(err).hint("the same command again goes on where it was; to see moves that are under way: firn shards status")
	}
	return nil
}
