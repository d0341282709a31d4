package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsAddServer() *cobra.Command {
	roles := []string{setup.DefaultRole}
	cmd := &cobra.Command{
		Use:   "add-server NAME[=URL]...",
		Short: "Add a server without shards",
		Long: `Add a PostgreSQL server to a cluster. It has no shards until some are moved there.
A server of --server or of firn.yaml is named without its URL.

The command first asks the cluster's other servers, those of --server or of firn.yaml. All
must answer: each server knows the names of all.

The role on the server owns the schema firn, as that of firn shard init.`,
		Example: `  firn shard add-server c=postgres://firn@db3/app
  firn shard add-server c=postgres://firn@db3/app --server a=postgres://firn@db1/app --server b=postgres://firn@db2/app`,
		Args: arguments(1, 100),
		RunE: func(cmd *cobra.Command, args []string) error { return addShardServers(cmd, args, roles) },
	}
	addServers(cmd)
	cmd.Flags().StringSliceVar(&roles, "role", roles, "roles that may work on all shards")
	return cmd
}

// An additionLine is an added server as --json prints it.
type additionLine struct {
	Server string `json:"server"`
	Added  bool   `json:"added"` // else it was one before
}

func addShardServers(cmd *cobra.Command, args, roles []string) error {
	servers, err := shardServers(cmd)
	if err != nil {
		return err
	}
	var added serverFlag
	for _, arg := range args {
		named := func(s topology.Server) bool { return s.Name == arg }
		if at := slices.IndexFunc(servers, named); at >= 0 && !slices.ContainsFunc(added.servers, named) {
			added.servers = append(added.servers, servers[at])
		} else if err := added.Set(arg); err != nil {
			return ui.Bad("%s", err).Hint("%s c=postgres://USER@HOST/DATABASE", cmd.CommandPath())
		}
	}
	servers, names := withServers(servers, added.servers)
	ctx := cmd.Context()
	opened, err := setup.Open(ctx, servers, true)
	if err != nil {
		return setupFailure(err)
	}
	defer opened.Close()
	a, err := opened.Add(names, roles)
	if err != nil {
		return setupFailure(err)
	}
	if err := a.Run(ctx); err != nil {
		return setupFailure(err).Hint("run it again: it continues where it stopped")
	}
	return printAddition(cmd, a, added.servers)
}

// withServers are servers and those that are added, and the names of these. One that
// firn.yaml has already is meant as it is given.
func withServers(servers, added []topology.Server) (all []topology.Server, names []string) {
	isAdded := map[string]bool{}
	for _, s := range added {
		isAdded[s.Name] = true
		names = append(names, s.Name)
	}
	for _, s := range servers {
		if !isAdded[s.Name] {
			all = append(all, s)
		}
	}
	return append(all, added...), names
}

func printAddition(cmd *cobra.Command, a *setup.Addition, added []topology.Server) error {
	isNew := map[string]bool{}
	for _, s := range a.Plan.Servers {
		isNew[s.Server.Name] = true
	}
	out := cmd.OutOrStdout()
	for _, s := range added {
		var err error
		switch {
		case wantsJSON(cmd):
			err = json.NewEncoder(out).Encode(additionLine{s.Name, isNew[s.Name] || slices.Contains(a.Again, s.Name)})
		case isNew[s.Name]:
			_, err = fmt.Fprintf(out, "server %s is in the cluster; in firn.yaml below shards: servers: %s: %s\nthen, on it too: GRANT firn_app TO your application's role\n", s.Name, s.Name, serverURL(s))
		case slices.Contains(a.Again, s.Name):
			_, err = fmt.Fprintf(out, "server %s is in the cluster again; in firn.yaml below shards: servers: %s: %s\n", s.Name, s.Name, serverURL(s))
		default:
			_, err = fmt.Fprintf(out, "server %s is in the cluster already\n", s.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
