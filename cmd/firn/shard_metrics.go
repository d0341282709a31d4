package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/metrics"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsMetrics() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "Print or serve metrics of servers and moves for Prometheus",
		Long: `Look at each server, and print what it has in the text format of Prometheus: whether it
answers, its shards, the size of its database and its clock; and of each move that is
not finished its age, how far it is, whether a mover is at work on it, how far the copy
is behind, and how much WAL each server keeps for it.

Printed once, it is for the textfile collector of node_exporter. With --listen it serves
/metrics at an address until Ctrl-C, and looks at the servers at each request. It asks for
no password, so give it an address that only Prometheus reaches.

It changes nothing. To see all of a move it takes the role that began the move, or a
superuser. A server that does not answer is a metric, and no error.`,
		Example: `  firn shard metrics > /var/lib/node_exporter/firn.prom.new && mv /var/lib/node_exporter/firn.prom.new /var/lib/node_exporter/firn.prom
  firn shard metrics --listen 127.0.0.1:9188`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wantsJSON(cmd) {
				return ui.Bad("--json: metrics are in the text format of Prometheus").Hint("firn shard status --json")
			}
			servers, err := shardServers(cmd)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if listen == "" {
				return metrics.Write(ctx, cmd.OutOrStdout(), servers)
			}
			return serveMetrics(ctx, cmd, listen, servers)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "serve /metrics at this `ADDRESS`, such as 127.0.0.1:9188, until Ctrl-C")
	addServers(cmd)
	return cmd
}

// serveMetrics serves until ctx ends, which is no failure.
func serveMetrics(ctx context.Context, cmd *cobra.Command, address string, servers []topology.Server) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return ui.Failed("--listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(servers))
	s := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 3 * metrics.Patience, MaxHeaderBytes: 16 << 10}
	ui.PrintNote(cmd.ErrOrStderr(), "metrics are at http://%s/metrics", l.Addr())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		s.Close()
		err = <-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return ui.Failed("--listen: %w", err)
}
