package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/move"
)

// This file finds the shards of a command that is about moves: those of LIST, or all of --from.

// addFrom adds --from, which stands in place of LIST.
func (o *shardsMove) addFrom(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&o.from, "from", "", usage)
	cmd.Args = arguments(0, 1)
}

// listOf is the LIST of a command, or of all shards of --from.
func (o *shardsMove) listOf(ctx context.Context, cmd *cobra.Command, args []string) (string, error) {
	switch {
	case len(args) == 1 && o.from != "":
		return "", ui.Bad("LIST and --from both say which shards: leave one out")
	case len(args) == 1:
		return args[0], nil
	case o.from == "":
		return "", ui.Bad("%s needs LIST or --from SERVER", cmd.CommandPath()).Hint("%s --help", cmd.CommandPath())
	}
	servers, err := shardServers(cmd)
	if err != nil {
		return "", err
	}
	m, err := mapOf(ctx, servers)
	if err != nil {
		return "", notBegun(ctx, cmd, err)
	}
	var served, all, moved []int64
	known := false
	for _, r := range m.Routes {
		all = append(all, r.Shard)
		if r.Server == o.from {
			served = append(served, r.Shard)
		}
	}
	for _, name := range m.Servers {
		known = known || name == o.from
	}
	if !known {
		return "", unknownServer(o.from, servers)
	}
	if cmd.Name() == "move" {
		if len(served) == 0 {
			return "", ui.Bad("server %s serves no shard", o.from).Hint("firn shard ls --map")
		}
		return move.List(served), nil
	}
	jobs, err := move.Underway(ctx, servers, all)
	if err != nil {
		return "", notBegun(ctx, cmd, moveFailure(err))
	}
	for _, j := range jobs {
		if j.Source.Name == o.from {
			moved = append(moved, j.Shards...)
		}
	}
	if len(moved) == 0 {
		return "", ui.Bad("no move from server %s is under way or unfinished", o.from).Hint("firn shard status")
	}
	return move.List(moved), nil
}

// addGone adds --gone.
func addGone(cmd *cobra.Command, gone *[]string) {
	cmd.Flags().StringSliceVar(gone, "gone", nil, "a server that does not answer and is gone for good")
}
