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
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// showMap prints which shards each server has, or with --json the map for routers. Servers that do
// not answer have their shards missing in it: then nothing is printed, but with partial.
func showMap(cmd *cobra.Command, m *topology.Map, partial bool) error {
	if len(m.Missing) > 0 && !partial {
		return ui.Failed("%s not in the map: %s", phrase.Plural(len(m.Missing), "server"), strings.Join(m.Missing, ", ")).
			Hint("name all servers, and have them answer; or --partial writes what is known")
	}
	if wantsJSON(cmd) {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(m)
	}
	return printMap(cmd.OutOrStdout(), m)
}

// askMap makes the map of what the servers say. Of those that do not answer it warns.
func askMap(ctx context.Context, cmd *cobra.Command) (*topology.Map, error) {
	servers, err := shardServers(cmd)
	if err != nil {
		return nil, err
	}
	views := make(map[string]*topology.View)
	asked := make(map[string]bool)
	var stray error // of an address that leads to another database
	for _, a := range check.Look(ctx, servers) {
		asked[a.Name] = true
		if a.Err != nil {
			text := phrase.WithoutPackage(a.Err.Error())
			var of *topology.ServerError
			if errors.As(a.Err, &of) && (check.AddressDo(a.Err) != "" || !errors.Is(a.Err, topology.ErrNoCluster)) { // what follows says what to do about that
				if do := serverCure(of); do != "" {
					text += "; " + hinter{cmd: cmd}.compose(do)
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
		return nil, ui.Failed("no server answers as one of a cluster").Hint("to see each server: firn shard status; if there never was a cluster: firn shard init --count N")
	}
	m, err := topology.NewMap(views)
	if err != nil {
		return nil, ui.Failed("%w", err).Hint("to compare the servers: firn shard doctor")
	}
	for _, name := range m.Missing {
		if !asked[name] {
			ui.PrintWarning(cmd.ErrOrStderr(), "the cluster has a server %s too, which was not named", name)
		}
	}
	return m, nil
}

func printMap(out io.Writer, m *topology.Map) error {
	by := make(map[string][]topology.Row)
	for _, r := range m.Routes {
		by[r.Server] = append(by[r.Server], topology.Row{Shard: r.Shard})
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
