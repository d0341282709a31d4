package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/setup"
)

func newShardsRemoveServer() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove-server NAME",
		Short: "Take a server that has no shards out of a cluster",
		Long: `Take a PostgreSQL server that has no shards any more out of a cluster: the others no
longer know it, and need no answer from it. Its database stays as it is.

firn shards rebalance --drain NAME moves its shards to the others. All servers have to be
there, this one too. One that is lost is not removed: it is replaced by its standby or its
backup, on which firn shards reopen opens what it had.`,
		Example: `  firn shards rebalance --drain a
  firn shards remove-server a`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return removeShardServer(cmd, args[0]) },
	}
	addServers(cmd)
	return cmd
}

// A removalLine is a server that was removed as --json prints it.
type removalLine struct {
	Server  string `json:"server"`
	Removed bool   `json:"removed"` // else it was none of the cluster's before
}

func removeShardServer(cmd *cobra.Command, name string) error {
	servers, err := shardServers(cmd)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(servers, func(s shard.Server) bool { return s.Name == name }) {
		return unknownServer(name, servers)
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	flights, err := move.Flights(ctx, servers)
	if err != nil {
		return signalled(ctx, setupFailure(err).hint("all servers have to be there: firn shards status"))
	}
	for _, f := range flights {
		if f.Source == name || f.Target == name {
			return failed("the move of shard %s from %s to %s is not finished", ranges(f.Shards), f.Source, f.Target).hint("firn shards finish %s, or firn shards abort %[1]s", ranges(f.Shards))
		}
	}
	opened, err := setup.Open(ctx, servers, true)
	if err != nil {
		return signalled(ctx, setupFailure(err))
	}
	defer opened.Close()
	r, err := opened.Remove(name)
	if err != nil {
		return signalled(ctx, setupFailure(err).hint("firn shards rebalance --drain %s moves what it has to the others; firn shards finish drops old copies", name))
	}
	if err := r.Run(ctx); err != nil {
		return signalled(ctx, setupFailure(err).hint("firn shards status; then run it again: it goes on where it was"))
	}
	out := cmd.OutOrStdout()
	switch {
	case wantsJSON(cmd):
		return json.NewEncoder(out).Encode(removalLine{name, r.Member})
	case r.Member:
		_, err = fmt.Fprintf(out, "server %s is no longer in the cluster: take it out of firn.yaml and of your programs, then stop it\n", name)
	default:
		_, err = fmt.Fprintf(out, "server %s is not in the cluster\n", name)
	}
	return err
}
