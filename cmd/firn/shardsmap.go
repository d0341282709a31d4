package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/check"
)

func newShardsMap() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "map",
		Short: "Show which shards each server has, or write it for routers",
		Long: `Show which shards each server has. With --json it is the map for routers in other
languages, in the format of docs/shards-map.md: how a key and an id lead to a shard,
and which server each shard is on. Servers are in it by name; their addresses, and
the passwords, are the program's.

A map gets old when a shard moves. A router that comes to the wrong server is refused
there, with where the shard went. A server that does not answer has its shards missing
in the map: then nothing is written, but with --partial.`,
		Example: `  firn shards map
  firn shards map --json > map.json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			m, err := askMap(ctx, cmd)
			if err != nil {
				return err
			}
			if partial, _ := cmd.Flags().GetBool("partial"); len(m.Missing) > 0 && !partial {
				return ui.Failed("%s not in the map: %s", phrase.Plural(len(m.Missing), "server"), strings.Join(m.Missing, ", ")).
					Hint("name all servers, and have them answer; or --partial writes what is known")
			}
			if wantsJSON(cmd) {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(m)
			}
			return printMap(cmd.OutOrStdout(), m)
		},
	}
	addServers(cmd)
	cmd.Flags().Bool("partial", false, "write it though servers do not answer")
	return cmd
}

// askMap makes the map of what the servers say. Of those that do not answer it warns.
func askMap(ctx context.Context, cmd *cobra.Command) (*shard.Map, error) {
	servers, err := shardServers(cmd)
	if err != nil {
		return nil, err
	}
	views := make(map[string]*shard.View)
	asked := make(map[string]bool)
	var stray error // of an address that leads to another database
	for _, a := range check.Look(ctx, servers) {
		asked[a.Name] = true
		if a.Err != nil {
			text := phrase.WithoutPackage(a.Err.Error())
			var of *shard.ServerError
			if errors.As(a.Err, &of) && !errors.Is(a.Err, shard.ErrNoShards) { // what follows says what to do about that
				if do := serverCure(of); do != "" {
					text += "; " + hinter{cmd}.compose(do)
				}
			}
			if check.AddressDo(a.Err) != "" {
				stray = cmp.Or(stray, a.Err)
			}
			ui.PrintWarning(cmd.ErrOrStderr(), "%s", text)
			continue
		}
		views[a.Name] = a.View
	}
	switch {
	case len(views) == 0 && stray != nil:
		return nil, stray
	case len(views) == 0:
		return nil, ui.Failed("no server answers as one of a cluster").Hint("to see each server: firn shards status; if there never was a cluster: firn shards init --count N")
	}
	m, err := shard.MapOf(views)
	if err != nil {
		return nil, ui.Failed("%w", err).Hint("to compare the servers: firn shards doctor")
	}
	for _, name := range m.Missing {
		if !asked[name] {
			ui.PrintWarning(cmd.ErrOrStderr(), "the cluster has a server %s too, which was not named", name)
		}
	}
	return m, nil
}

func printMap(out io.Writer, m *shard.Map) error {
	by := make(map[string][]shard.Row)
	for _, r := range m.Routes {
		by[r.Server] = append(by[r.Server], shard.Row{Shard: r.Shard})
	}
	fmt.Fprintf(out, "cluster %s, layout %s, %s, keys by %s\n", m.Cluster, layoutName(m.Layout), phrase.Plural(len(m.Routes), "shard"), m.Keys.Scheme())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tSHARDS\tNUMBERS")
	for _, name := range append(m.Servers[:len(m.Servers):len(m.Servers)], "") {
		if rows := by[name]; name != "" || len(rows) > 0 {
			fmt.Fprintf(w, "%s\t%d\t%s\n", cmp.Or(name, "-"), len(rows), cmp.Or(shortNumbers(rows), "-"))
		}
	}
	return w.Flush()
}
