package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/shard/check"
)

func newShardsDoctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the servers of the shards",
		Long: `Check each server: its version, what its settings risk, what is missing for moves,
its clock, its schemas and generators, who may set them, and remains of moves; and
that the servers agree about who serves which shard. Nothing is changed.

A line for each finding, bad or warn, and what to do. The exit code is 3 if something
is bad.`,
		Example: `  firn shards doctor
  firn shards doctor --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			servers, err := shardServers(cmd)
			if err != nil {
				return err
			}
			seen := check.Examine(ctx, servers)
			if err := signalled(ctx, ctx.Err()); err != nil {
				return err
			}
			return printFindings(cmd.OutOrStdout(), check.Findings(seen, time.Now()), len(servers), wantsJSON(cmd))
		},
	}
	addServers(cmd)
	return cmd
}

func printFindings(out io.Writer, found []check.Finding, servers int, asJSON bool) error {
	d := &doctor{out: out, json: asJSON}
	states := map[check.Level]string{check.Bad: wrong, check.Warn: warning}
	for _, f := range found {
		where := "cluster"
		if f.Server != "" {
			where = "server " + f.Server
		}
		d.say(states[f.Level], where, f.Do, "%s", f.Text)
	}
	if len(found) == 0 {
		d.say(fine, "cluster", "", "%s examined, and nothing was found wrong", plural(servers, "server"))
	}
	if d.err != nil {
		return d.err
	}
	if d.bads > 0 {
		return &failure{code: exitFound, err: fmt.Errorf("%s bad", plural(d.bads, "finding"))}
	}
	return nil
}
