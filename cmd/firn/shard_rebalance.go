package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/rebalance"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsRebalance() *cobra.Command {
	var o shardsRebalance
	cmd := &cobra.Command{
		Use:   "rebalance",
		Short: "Move shards until all servers carry the same load; --drain empties one",
		Long: `Move shards so that all servers bear an equal load, with few bytes copied: first it
shows what each server has and would have, then it moves, and drops the old copies.

The load is the size of tables and indexes, or with --by rate the rows that are written,
which it counts for --sample. Within 5 percent of the mean a server is left as it is.

Before it begins it says how long the copies, the WAL that servers keep and the pauses are expected to be.
With --max-wal a move stops where the server that has its shards keeps more WAL than that
for it, and no other move begins; PostgreSQL continues the copy, until firn shard pause
stops it or firn shard abort drops it.

--drain empties a server, after which firn shard remove-server takes it out of the
cluster.

Broken off at any moment, it continues when it is run again: with the moves that are under
way first, and then by a new plan. It does not move a shard again that somebody took back
with firn shard revert. firn shard move says what a move needs.`,
		Example: `  firn shard add-server c=postgres://firn@db3/app
  firn shard rebalance --dry-run
  firn shard rebalance --parallel 2
  firn shard rebalance --drain a`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return o.run(ctx, cmd)
		},
	}
	addServers(cmd)
	o.addFlags(cmd)
	o.addMaxWAL(cmd)
	flags := cmd.Flags()
	flags.StringVar((*string)(&o.By), "by", "size", "what to make even: size or rate")
	flags.DurationVar(&o.Sample, "sample", 10*time.Second, "how long rows that are written are counted, with --by rate")
	flags.StringVar(&o.Drain, "drain", "", "the server to empty, instead of making all even")
	flags.IntVar(&o.Parallel, "parallel", 1, "how many moves are under way at once, each of up to 32 shards between two servers")
	flags.BoolVar(&o.Keep, "keep", false, "leave the old copies, until firn shard finish")
	flags.BoolVar(&o.dry, "dry-run", false, "show what would be done, and do nothing")
	return cmd
}

type shardsRebalance struct {
	shardsMove
	rebalance.Options
}

func (o *shardsRebalance) run(ctx context.Context, cmd *cobra.Command) error {
	switch {
	case o.By != rebalance.Size && o.By != rebalance.Rate:
		return ui.Bad("--by %q: it is size or rate", o.By)
	case o.Sample <= 0:
		return ui.Bad("--sample %s: it is above 0", o.Sample)
	case o.Parallel < 1:
		return ui.Bad("--parallel %d: at least 1", o.Parallel)
	}
	o.Move = o.options
	servers, err := members(ctx, cmd)
	if err != nil {
		return notBegun(ctx, cmd, err)
	}
	if o.Drain != "" && !slices.ContainsFunc(servers, func(s topology.Server) bool { return s.Name == o.Drain }) {
		return unknownServer(o.Drain, servers)
	}
	if !o.dry {
		defer func() {
			if ctx.Err() != nil {
				sayBrokenOff(ctx, cmd, servers, nil, "firn shard rebalance, with the same flags")
			}
		}()
	}
	return o.even(ctx, cmd, servers)
}

// even brings to their ends the moves that are under way, and then makes a new plan and
// carries it out.
func (o *shardsRebalance) even(ctx context.Context, cmd *cobra.Command, servers []topology.Server) error {
	if err := o.goOn(ctx, cmd, servers); err != nil {
		return err
	}
	p, err := o.planned(ctx, cmd, servers)
	if err != nil {
		return err
	}
	if len(p.Moves) == 0 {
		return printPlanned(cmd.OutOrStdout(), p, ui.IsTerminal(cmd.OutOrStdout()), wantsJSON(cmd))
	}
	return o.carry(ctx, cmd, servers, p)
}

// members are the servers that were named, as far as they are in the cluster. All of
// those have to be there: nobody evens out what is not seen.
func members(ctx context.Context, cmd *cobra.Command) ([]topology.Server, error) {
	servers, err := shardServers(cmd)
	if err != nil {
		return nil, err
	}
	m, err := mapOf(ctx, servers)
	if err != nil {
		return nil, err
	}
	if len(m.Missing) > 0 {
		return nil, ui.Failed("server %s is in the cluster, and is not named", strings.Join(m.Missing, ", ")).
			Hint("name it in the same command: --server %s=postgres://USER@HOST/DATABASE, or in firn.yaml", m.Missing[0]).
			Hint("if it is permanently lost: " + lostPage)
	}
	return slices.DeleteFunc(slices.Clone(servers), func(s topology.Server) bool {
		if slices.Contains(m.Servers, s.Name) {
			return false
		}
		ui.PrintWarning(cmd.ErrOrStderr(), "server %s is not in the cluster, and gets no shards; to take it in: %s", s.Name, hinter{cmd: cmd}.compose("firn shard add-server "+s.Name))
		return true
	}), nil
}

// goOn brings moves that are under way to their ends; with --dry-run it says what comes first.
func (o *shardsRebalance) goOn(ctx context.Context, cmd *cobra.Command, servers []topology.Server) error {
	if !o.dry {
		var left []move.Move
		err := o.show(ctx, cmd, func() (moved []rebalance.Moved, err error) {
			moved, left, err = rebalance.Resume(ctx, servers, &o.Options)
			return moved, err
		})
		o.sayStays(cmd, left)
		return err
	}
	moves, err := move.Moves(ctx, servers)
	if err != nil {
		return moveFailure(err)
	}
	for _, f := range moves {
		if rebalance.Stays(f) {
			o.sayStays(cmd, []move.Move{f})
			continue
		}
		ui.PrintWarning(cmd.ErrOrStderr(), "shard %s is on the way from %s to %s, which comes first; %s", phrase.Numbers(f.Shards), f.Source, f.Target, hinter{cmd: cmd}.next(f))
	}
	return nil
}

func (o *shardsRebalance) sayStays(cmd *cobra.Command, left []move.Move) {
	for _, f := range left {
		ui.PrintWarning(cmd.ErrOrStderr(), "%s, and the rebalance leaves that; %s", standsText(f), hinter{cmd: cmd}.next(f))
	}
}

// carry prints what is planned and does it, or with --dry-run says what speaks against it.
func (o *shardsRebalance) carry(ctx context.Context, cmd *cobra.Command, servers []topology.Server, p *rebalance.Plan) error {
	obstacles, notes, err := p.Check(ctx, servers, &o.Options)
	if err := printPlanned(cmd.OutOrStdout(), p, ui.IsTerminal(cmd.OutOrStdout()), wantsJSON(cmd)); err != nil {
		return err
	}
	if err != nil {
		return moveFailure(err)
	}
	for _, n := range notes {
		ui.PrintWarning(cmd.ErrOrStderr(), "%s (%s)", n, n.Do())
	}
	if len(obstacles) > 0 {
		return refusedMove(&move.RefusedError{Obstacles: obstacles}, ". Nothing was changed").Hint("%s", fixObstacles(obstacles, dryAgain(cmd, "firn shard rebalance")))
	}
	if o.dry {
		return nil
	}
	return o.show(ctx, cmd, func() ([]rebalance.Moved, error) { return p.Run(ctx, servers, &o.Options) })
}

// show shows how far moves are, and then what was moved.
func (o *shardsRebalance) show(ctx context.Context, cmd *cobra.Command, run func() ([]rebalance.Moved, error)) error {
	var far atomic.Pointer[rebalance.Progress]
	o.Progress = func(p rebalance.Progress) { far.Store(&p) }
	began := time.Now()
	line := ui.ShowLine(true, cmd.ErrOrStderr(), func(time.Duration) string {
		p := far.Load()
		if p == nil {
			return ""
		}
		now := ""
		if p.Now.Phase != "" {
			now = phaseLine(p.Now)
		}
		return fmt.Sprintf("%d of %d shards moved; %s", p.Done, p.Shards, now)
	})
	moved, err := run()
	line.Stop()
	return reportMoved(ctx, cmd, began, moved, err)
}

// reportMoved prints what was moved.
func reportMoved(ctx context.Context, cmd *cobra.Command, began time.Time, moved []rebalance.Moved, err error) error {
	out := cmd.OutOrStdout()
	var worst float64
	var rows int64
	for _, m := range moved {
		l := newMovedLine(m.Moved, m.From, m.To)
		worst, rows = max(worst, l.Pause), rows+l.Rows
		if wantsJSON(cmd) {
			if err := json.NewEncoder(out).Encode(l); err != nil {
				return err
			}
		}
	}
	if !wantsJSON(cmd) && len(moved) > 0 {
		if _, err := fmt.Fprintf(out, "%s moved with %s rows in %s, the longest pause %.0f ms\n",
			phrase.Plural(len(moved), "shard"), phrase.Count(rows), time.Since(began).Round(100*time.Millisecond), worst); err != nil {
			return err
		}
	}
	if err := cmp.Or(err, ctx.Err()); err != nil {
		if lacksRight(err) {
			return moveFailure(err)
		}
		if ofPause(err) {
			return moveFailure(err).Hint("after that the same command continues the rebalance")
		}
		return moveFailure(err).Hint("the same command again continues where it stopped; to see moves that are under way: firn shard status")
	}
	return nil
}
