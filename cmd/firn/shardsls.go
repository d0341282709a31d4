package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/shard"
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
routers in other languages, in the format of docs/shards-map.md: how a key and an id lead to a
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
			if wantsJSON(cmd) {
				enc := json.NewEncoder(cmd.OutOrStdout())
				for _, r := range m.Routes {
					if err := enc.Encode(newShardLine(m, r)); err != nil {
						return err
					}
				}
				return nil
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SHARD\tSCHEMA\tSERVER\tSTATE\tTERM\tWHY")
			for _, route := range m.Routes {
				r := newShardLine(m, route)
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\n", r.Shard, r.Schema, cmp.Or(r.Server, "-"), r.State, r.Term, cmp.Or(r.Why, "-"))
			}
			return w.Flush()
		},
	}
	addServers(cmd)
	cmd.Flags().BoolVar(&asMap, "map", false, "show which shards each server has; with --json the map for routers")
	cmd.Flags().BoolVar(&partial, "partial", false, "with --map: print it though servers do not answer")
	return cmd
}

// A shardLine is a shard as --json prints it.
type shardLine struct {
	Shard  int64       `json:"shard"`
	Schema string      `json:"schema"`
	Server string      `json:"server,omitempty"`
	State  shard.State `json:"state"`
	Term   int64       `json:"term"`
	Why    string      `json:"why,omitempty"`
}

// newShardLine says of a shard that is on a server which has not answered that nobody knows.
func newShardLine(m *shard.Map, r shard.Route) shardLine {
	if r.State != shard.StateOpen && slices.Contains(m.Missing, r.Server) {
		r.State, r.Why = unknownState, "server "+r.Server+" does not say"
	}
	return shardLine(r)
}

// unknownState is the state of a shard that only a server knows which has not been asked, does not
// answer, or refuses to.
const unknownState shard.State = "unknown"
