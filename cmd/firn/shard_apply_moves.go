package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/migrate"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// leaveMoves leaves out shards whose move is not finished, and says which. The other copy would not get
// the file: if a file changes a table, nothing can go to that copy any more. With moving, the shards get
// their files all the same. It reports whether any shard is left out.
func leaveMoves(ctx context.Context, cmd *cobra.Command, servers []topology.Server, plan *migrate.Plan, moving bool) (bool, error) {
	var shards []int64
	for _, w := range plan.Work {
		shards = append(shards, w.Shard)
	}
	moves, err := move.Moves(ctx, servers)
	if err != nil && !(lacksRight(err) && len(moves) > 0) { // else each says what this role cannot see of it
		return false, moveFailure(err)
	}
	left := false
	for _, f := range moves {
		if f = f.Of(shards); len(f.Shards) == 0 {
			continue
		}
		if moving {
			ui.PrintWarning(cmd.ErrOrStderr(), "the move of shard %s from %s to %s is not finished: after a file that changes tables the shard cannot change over to the other copy any more (ID008)",
				phrase.Numbers(f.Shards), f.Source, f.Target)
			continue
		}
		left = true
		ui.PrintWarning(cmd.ErrOrStderr(), "the move of shard %s from %s to %s is not finished, so no file is applied there now; run this again after the move. If no command is at work on it, %s",
			phrase.Numbers(f.Shards), f.Source, f.Target, hinter{cmd: cmd}.compose(nextOf(ctx, servers, f)))
		for _, n := range f.Shards {
			plan.Left = append(plan.Left, migrate.Left{Shard: n, Why: fmt.Sprintf("its move from %s to %s is not finished", f.Source, f.Target)})
		}
		plan.Work = slices.DeleteFunc(plan.Work, func(w migrate.Work) bool { return slices.Contains(f.Shards, w.Shard) })
	}
	return left, nil
}
