package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
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
	if !slices.Contains(m.Servers, o.from) {
		return "", unknownServer(o.from, servers)
	}
	var all, listed []int64
	for _, r := range m.Routes {
		all = append(all, r.Shard)
		if cmd.Name() == "move" && r.Server == o.from {
			listed = append(listed, r.Shard)
		}
	}
	jobs, err := move.Underway(ctx, servers, all)
	if err != nil {
		return "", notBegun(ctx, cmd, moveFailure(err))
	}
	for _, j := range jobs { // of a move that was broken off, no server may serve the shard
		if j.Source.Name == o.from && (cmd.Name() != "move" || j.Target.Name == o.to) {
			listed = append(listed, j.Shards...)
		}
	}
	slices.Sort(listed)
	switch listed = slices.Compact(listed); {
	case len(listed) > 0:
		return phrase.Numbers(listed), nil
	case cmd.Name() == "move":
		return "", ui.Bad("server %s serves no shard", o.from).Hint("firn shard ls")
	}
	return "", ui.Bad("no move from server %s is under way or unfinished", o.from).Hint("firn shard status")
}

// addGone adds --gone.
func addGone(cmd *cobra.Command, gone *[]string) {
	cmd.Flags().StringSliceVar(gone, "gone", nil, "a server that does not answer and is permanently gone")
}
