package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/shard"
)

func newShardsLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the shards, and which server each is on",
		Long: `List the shards, one a line: its schema, the server it is on, whether it is open there,
its term, which counts how often it was opened and closed, and what is wrong with it.
A shard without a server is nowhere now.`,
		Example: `  firn shards ls
  firn shards ls --json | jq -r 'select(.state != "open") | .shard'`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			m, err := askMap(ctx, cmd)
			if err != nil {
				return signalled(ctx, err)
			}
			if wantsJSON(cmd) {
				enc := json.NewEncoder(cmd.OutOrStdout())
				for _, r := range m.Routes {
					if err := enc.Encode(newShardLine(r)); err != nil {
						return err
					}
				}
				return nil
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SHARD\tSCHEMA\tSERVER\tSTATE\tTERM\tWHY")
			for _, r := range m.Routes {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\n", r.Shard, r.Schema, cmp.Or(r.Server, "-"), r.State, r.Term, cmp.Or(r.Why, "-"))
			}
			return w.Flush()
		},
	}
	addServers(cmd)
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

func newShardLine(r shard.Route) shardLine { return shardLine(r) }
