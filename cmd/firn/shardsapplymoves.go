package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/migrate"
	"github.com/firn-id/firn/shard/move"
)

// warnOfMoves says which shards get a file although they are in a move. The other copy does not get
// the file: if it changes a table, nothing can go to that copy any more.
func warnOfMoves(ctx context.Context, cmd *cobra.Command, servers []shard.Server, plan *migrate.Plan) error {
	var shards []int64
	for _, w := range plan.Work {
		shards = append(shards, w.Shard)
	}
	moves, err := move.Moves(ctx, servers)
	if err != nil {
		return moveFailure(err)
	}
	for _, f := range moves {
		if f = f.Of(shards); len(f.Shards) == 0 {
			continue
		}
		ui.PrintWarning(cmd.ErrOrStderr(), "the move of shard %s from %s to %s is not finished: after a file that changes tables the shard cannot change over to the other copy any more (ID008); first, %s",
			move.List(f.Shards), f.Source, f.Target, hinter{cmd}.compose(nextText(f)))
	}
	return nil
}
