package main

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsLs() *cobra.Command {
	var asMap, partial bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the shards and the server of each",
		Long: `List the shards, one a line: its schema, the server it is on, whether it is open there,
its term, which counts how often it was opened and closed, and what is wrong with it.
A shard without a server is nowhere now. The state is unknown where the server of a shard
does not answer.

With --map it shows which shards each server has. With --map --json it prints the map for
routers in other languages, in the format of docs/reference/shards-map.md: how a key and an id lead to a
shard, and which server each shard is on. The map names servers; their addresses and passwords
are the program's. A map gets old when a shard moves: the server that a router wrongly asks
refuses, and says where the shard went. While a server does not answer, no map is printed
without --partial.`,
		Example: `  firn shard ls
  firn shard ls --map --json > map.json
  firn shard ls --json | jq -r 'select(.state != "open") | .shard'`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			m, err := askMap(ctx, cmd)
			if err != nil {
				return err
			}
			if asMap {
				return showMap(cmd, m, partial)
			}
			var lines []shardLine
			for _, r := range m.Routes {
				lines = append(lines, newShardLine(m, r))
			}
			header := []string{"SHARD", "SCHEMA", "SERVER", "STATE", "TERM", "WHY"}
			return ui.Emit(cmd.OutOrStdout(), wantsJSON(cmd), header, lines, func(l shardLine) []any {
				return []any{l.Shard, l.Schema, cmp.Or(l.Server, "-"), l.State, l.Term, cmp.Or(l.Why, "-")}
			})
		},
	}
	addServers(cmd)
	cmd.Flags().BoolVar(&asMap, "map", false, "show which shards each server has; with --json the map for routers")
	cmd.Flags().BoolVar(&partial, "partial", false, "with --map: print it though servers do not answer")
	return cmd
}

// A shardLine is a shard as --json prints it.
type shardLine struct {
	Shard  int64          `json:"shard"`
	Schema string         `json:"schema"`
	Server string         `json:"server,omitempty"`
	State  topology.State `json:"state"`
	Term   int64          `json:"term"`
	Why    string         `json:"why,omitempty"`
}

// newShardLine says of a shard that is on a server which has not answered that nobody knows.
func newShardLine(m *topology.Map, r topology.Route) shardLine {
	if r.State != topology.StateOpen && slices.Contains(m.Missing, r.Server) {
		r.State, r.Why = unknownState, "server "+r.Server+" does not say"
	}
	return shardLine(r)
}

// unknownState is the state of a shard that only a server knows which has not been asked, does not
// answer, or refuses to.
const unknownState topology.State = "unknown"
