package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsRevert() *cobra.Command {
	var o shardsMove
	cmd := &cobra.Command{
		Use:   "revert [LIST]",
		Short: "Return moved shards to their old server",
		Long: `Take shards back to the server that they were moved from, with all that was written
since: its copy has been kept up to date. That takes a moment, and copies nothing. It
can be done until firn shard finish has dropped the copy, and moved again afterwards.

Broken off at any moment, it continues when it is run again.`,
		Example: `  firn shard revert 17
  firn shard revert --from a`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			list, err := o.listOf(ctx, cmd, args)
			if err != nil {
				return err
			}
			return o.revert(ctx, cmd, list)
		},
	}
	addServers(cmd)
	o.addFlags(cmd)
	o.addFrom(cmd, "take back all shards that were moved from this server")
	return cmd
}

// underway finds the moves of a list of shards. Its error is of a command that has only looked so far.
func (o *shardsMove) underway(ctx context.Context, cmd *cobra.Command, list string) (servers []topology.Server, shards []int64, jobs []move.Job, err error) {
	if servers, shards, err = o.find(ctx, cmd, list); err != nil {
		return nil, nil, nil, notBegun(ctx, cmd, err)
	}
	if jobs, err = move.Underway(ctx, servers, shards); err != nil {
		return nil, nil, nil, notBegun(ctx, cmd, moveFailure(err))
	}
	return servers, shards, jobs, nil
}

func (o *shardsMove) revert(ctx context.Context, cmd *cobra.Command, list string) error {
	servers, shards, jobs, err := o.underway(ctx, cmd, list)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		return ui.Failed("no move of shard %s is there to be taken back", list).Hint("firn shard status; where a move was finished, move it back: firn shard move %s --to SERVER", list)
	}
	under := inJobs(jobs)
	if rest := slices.DeleteFunc(slices.Clone(shards), func(n int64) bool { return slices.Contains(under, n) }); len(rest) > 0 {
		ui.PrintWarning(cmd.ErrOrStderr(), "no move of shard %s is there to be taken back: nothing is done about it", phrase.Numbers(rest))
	}
	list = phrase.Numbers(under)
	moved, err := o.each(ctx, cmd, jobs, (*move.Mover).Revert)
	return o.report(ctx, cmd, carried{servers, under, list, "firn shard revert " + list, moved, err})
}
