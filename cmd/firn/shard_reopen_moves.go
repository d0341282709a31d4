package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// This file says which moves a reopen ends.

// printEnded says which moves end when the shards of the plan are opened, and what removes what is left of
// them. A server that does not say which moves it knows is passed over.
func (r *reopening) printEnded(ctx context.Context, cmd *cobra.Command, servers []topology.Server) {
	if len(r.Shards)+len(r.Told) == 0 {
		return
	}
	moves, _ := move.Moves(ctx, servers)
	for _, f := range moves {
		opened := shardsOf(f, func(n int64) bool {
			return slices.ContainsFunc(r.Shards, func(row topology.Row) bool { return row.Shard == n })
		})
		told := shardsOf(f, func(n int64) bool {
			return slices.ContainsFunc(r.Told, func(t setup.Told) bool { return t.Shard == n })
		})
		if list := move.List(opened); list != "" {
			copies := slices.DeleteFunc([]string{f.Source, f.Target}, func(name string) bool { return name == r.Server })
			ui.PrintNote(cmd.ErrOrStderr(), "the move of shard %s from %s to %s ends, and cannot be continued or reverted; %s", list, f.Source, f.Target,
				hinter{cmd: cmd}.compose("afterwards, to drop the copy on "+strings.Join(copies, " and ")+": firn shard finish "+list+"; to remove what else is left of the move: firn shard doctor --clean"))
		}
		if list := move.List(told); list != "" {
			ui.PrintNote(cmd.ErrOrStderr(), "the move of shard %s from %s to %s cannot be continued; %s", list, f.Source, f.Target,
				hinter{cmd: cmd}.compose("afterwards, to end it: firn shard abort "+list+"; then, to drop the copy on "+r.Server+": firn shard finish "+list))
		}
	}
}

// shardsOf are the shards of a move that some selects.
func shardsOf(f move.Move, some func(shard int64) bool) []int64 {
	return slices.DeleteFunc(slices.Clone(f.Shards), func(n int64) bool { return !some(n) })
}
