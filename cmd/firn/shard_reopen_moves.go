package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// This file says which moves a reopen ends, and what comes next of the moves that it does not end.

// printEnded says which moves end when the shards of the plan are opened, what removes what is left of them, and what
// comes next of moves of which the server is told who serves their shards. A server that does not say which moves it
// knows is passed over.
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
		for _, text := range []string{r.endedText(f.Of(opened)), r.toldText(f.Of(told))} {
			if text != "" {
				ui.PrintNote(cmd.ErrOrStderr(), "%s", hinter{cmd: cmd}.compose(text))
			}
		}
	}
}

// endedText is about a move of shards that are opened: nothing continues it.
func (r *reopening) endedText(f move.Move) string {
	if len(f.Shards) == 0 {
		return ""
	}
	text := fmt.Sprintf("the move of shard %s from %s to %s ends, and cannot be continued or reverted; afterwards, ", phrase.Numbers(f.Shards), f.Source, f.Target)
	left := "what is left"
	for _, name := range []string{f.Source, f.Target} {
		if copies := r.copiesOn(name, f.Shards); len(copies) > 0 && name != r.Server {
			text += fmt.Sprintf("to drop the copy on %s: firn shard finish %s; ", name, phrase.Numbers(copies))
			left = "what else is left"
		}
	}
	return text + "to remove " + left + " of the move: firn shard doctor --clean"
}

// toldText is about a move of shards that other servers serve: the server of the plan forgets of it.
func (r *reopening) toldText(f move.Move) string {
	if len(f.Shards) == 0 {
		return ""
	}
	copies := r.copiesOn(r.Server, f.Shards)
	text := fmt.Sprintf("the move of shard %s from %s to %s ", phrase.Numbers(f.Shards), f.Source, f.Target)
	after, known := f.After(r.Server, copies)
	switch {
	case known:
		return text + "is forgotten on " + r.Server + "; afterwards, " + nextText(after)
	case len(copies) > 0:
		return text + "ends; afterwards, to drop the copy on " + r.Server + ": firn shard finish " + phrase.Numbers(copies) + "; to remove what else is left of the move: firn shard doctor --clean"
	}
	return text + "ends; afterwards, to remove what is left of the move: firn shard doctor --clean"
}

// copiesOn are those of some shards of which a server has a schema.
func (r *reopening) copiesOn(server string, shards []int64) (copies []int64) {
	v := r.Views[server]
	if v == nil {
		return nil
	}
	for _, row := range v.Shards {
		if slices.Contains(shards, row.Shard) && !row.Dropped {
			copies = append(copies, row.Shard)
		}
	}
	return copies
}

// shardsOf are the shards of a move that some selects.
func shardsOf(f move.Move, some func(shard int64) bool) []int64 {
	return slices.DeleteFunc(slices.Clone(f.Shards), func(n int64) bool { return !some(n) })
}
