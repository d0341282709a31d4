package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/migrate"
	"github.com/firn-id/firn/shard/move"
)

// warnOfMoves says which shards get a file although they are in a move. The other copy does not get
// the file: if it changes a table, nothing can go to that copy any more.
func warnOfMoves(ctx context.Context, cmd *cobra.Command, servers []shard.Server, m *shard.Map, plan *migrate.Plan) error {
	var shards []int64
	for _, w := range plan.Work {
		shards = append(shards, w.Shard)
	}
	legs, err := move.Under(ctx, servers, shards)
	if err != nil {
		return moveFailure(err)
	}
	for _, l := range legs {
		var arrived, left []int64
		for _, n := range l.Shards {
			if r, _ := m.Route(n); r.Server == l.Target.Name {
				arrived = append(arrived, n)
			} else {
				left = append(left, n)
			}
		}
		from, to := l.Source.Name, l.Target.Name
		if len(arrived) > 0 {
			warnOfMove(cmd, arrived, from, to, fmt.Sprintf("to go back to %s first: firn shards revert %s; to stay on %s: firn shards finish %[2]s", from, move.List(arrived), to))
		}
		if len(left) > 0 {
			warnOfMove(cmd, left, from, to, fmt.Sprintf("to move first: firn shards move %s --to %s; to stay on %s: firn shards abort %[1]s", move.List(left), to, from))
		}
	}
	return nil
}

func warnOfMove(cmd *cobra.Command, shards []int64, from, to, do string) {
	ui.PrintWarning(cmd.ErrOrStderr(), "the move of shard %s from %s to %s is not finished: after a file that changes tables the shard cannot change over to the other copy any more (ID008); %s",
		move.List(shards), from, to, hinter{cmd}.compose(do))
}
