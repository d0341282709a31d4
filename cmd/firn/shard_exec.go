package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsExec() *cobra.Command {
	var o shardsExec
	cmd := &cobra.Command{
		Use:   "exec SQL",
		Short: "Run one statement on every shard; read-only without --write",
		Long: `Run one SQL statement on every shard, and print the rows of all, each with its shard,
in the order of the shards. Names mean the shard's own, and then public's.

Each shard has a transaction of its own, which reads only, unless --write is given. A
function that is called may still do what is no change of a table: write a file, end a
session. Use a role that may not.
No transaction covers all shards: each shard answers as of a moment of its own, and if one
fails, the others continue.

Of each shard the first 1000 rows are printed, or as many as --limit says (0: all). Where a
shard has more, and no --limit was given, the exit code is 1: the rows are incomplete. With
--write all is written, and the rest is not printed.`,
		Example: `  firn shard exec "SELECT count(*) FROM photos"
  firn shard exec "SELECT id, name FROM users WHERE name LIKE 'a%'" --shards 0-9,12 --limit 20
  firn shard exec "UPDATE users SET name = trim(name)" --write --json`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return o.run(ctx, cmd, args[0])
		},
	}
	addServers(cmd)
	cmd.Flags().Var(&o.shards, "shards", "only these shards, such as 0-9,12 (all)")
	cmd.Flags().BoolVar(&o.write, "write", false, "let it write")
	cmd.Flags().IntVar(&o.limit, "limit", 1000, "how many rows of each shard to take; 0 takes all")
	cmd.Flags().IntVar(&o.perServer, "per-server", 4, "how many shards of a server at once")
	cmd.Flags().BoolVar(&o.csv, "csv", false, "print CSV")
	return cmd
}

type shardsExec struct {
	shards           shardNumbers
	write, csv       bool
	limit, perServer int
}

func (o *shardsExec) run(ctx context.Context, cmd *cobra.Command, sql string) error {
	switch words := firstWords(sql); {
	case words == "":
		return ui.Bad("there is no statement").Hint(`firn shard exec "SELECT count(*) FROM users"`)
	case isCopy.MatchString(words):
		return ui.Bad("COPY has nothing to read from or to write to here").Hint("SELECT, with --csv; or INSERT")
	case !o.write && !isRead.MatchString(words):
		return ui.Bad("without --write a statement begins with SELECT, WITH, VALUES, TABLE, SHOW or EXPLAIN").
			Hint("if it may change something: the same command with --write")
	case o.limit < 0:
		return ui.Bad("--limit %d: it is 0 for all rows, or how many of each shard to take", o.limit)
	case o.perServer < 1:
		return ui.Bad("--per-server %d: it is 1 at least", o.perServer)
	case o.csv && wantsJSON(cmd):
		return ui.Bad("--csv and --json: it is one of them")
	}
	servers, err := shardServers(cmd)
	if err != nil {
		return err
	}
	pools, err := openPools(ctx, servers, o.perServer)
	if err != nil {
		return err
	}
	defer closePools(pools) // waits until statements that were broken off have ended
	cluster, err := shard.Open(ctx, pools, nil)
	if err != nil {
		return err
	}
	if err := o.shards.beyond(cluster.Map()); err != nil {
		return err
	}
	return o.gather(ctx, cmd, slices.Collect(o.asked(cluster.All())), sql)
}

// openPools makes a pool for each server.
func openPools(ctx context.Context, servers []topology.Server, connections int) (map[string]*pgxpool.Pool, error) {
	pools := make(map[string]*pgxpool.Pool, len(servers))
	for _, s := range servers {
		config, err := pgxpool.ParseConfig("")
		if err == nil {
			config.ConnConfig, config.MaxConns = s.Config.Copy(), int32(connections)
			pools[s.Name], err = pgxpool.NewWithConfig(ctx, config)
		}
		if err != nil {
			delete(pools, s.Name)
			closePools(pools)
			return nil, err
		}
	}
	return pools, nil
}

func closePools(pools map[string]*pgxpool.Pool) {
	for _, p := range pools {
		p.Close()
	}
}

func (o *shardsExec) asked(all iter.Seq[shard.Shard]) iter.Seq[shard.Shard] {
	return func(yield func(shard.Shard) bool) {
		for s := range all {
			if o.shards.has(s.Number()) && !yield(s) {
				return
			}
		}
	}
}

// answered says on how many shards the statement has run, of a command that a signal ended.
func (o *shardsExec) answered(all []shard.Gathered[shardRows]) string {
	n := 0
	for _, g := range all {
		if g.Err == nil {
			n++
		}
	}
	text := fmt.Sprintf("%d of %s answered, and nothing was printed", n, phrase.Plural(len(all), "shard"))
	if o.write {
		text += "; on the others the statement has run or not"
	}
	return text
}

// gather runs the statement on the shards, and prints what it gives.
func (o *shardsExec) gather(ctx context.Context, cmd *cobra.Command, asked []shard.Shard, sql string) error {
	options := shard.GatherOptions{AtOnce: len(asked), PerServer: o.perServer, GoOn: true}
	if !o.write {
		options.Tx.AccessMode = pgx.ReadOnly
	}
	var done atomic.Int64
	show := ui.ShowProgressOf("shards", true, cmd.ErrOrStderr(), int64(len(asked)), &done)
	// Its error joins those of the shards, which are told one by one.
	all, _ := shard.Gather(ctx, slices.Values(asked), &options, func(ctx context.Context, _ shard.Shard, tx pgx.Tx) (shardRows, error) {
		defer done.Add(1)
		return o.query(ctx, tx.Conn().PgConn(), sql)
	})
	show.Stop()
	if ctx.Err() != nil {
		ui.Tell(ctx, func() string { return o.answered(all) })
		return ctx.Err()
	}
	p := newRowPrinter(cmd, o.csv)
	var cut []int64 // shards that have more rows
	failures, refused, several, away := 0, false, false, false
	for _, g := range all {
		if errors.Is(g.Err, errEnough) {
			g.Err = nil
		}
		if g.Value.cut && g.Err == nil {
			cut = append(cut, g.Shard.Number())
		}
		if g.Err == nil {
			g.Err = p.print(g.Shard.Number(), g.Value)
		} else if err := p.fault(g.Shard.Number(), g.Err); err != nil {
			return err
		}
		if g.Err != nil {
			failures++
			away = away || (&topology.ServerError{Err: g.Err}).Away()
			var pg *pgconn.PgError
			if errors.As(g.Err, &pg) {
				refused = refused || !o.write && pg.Code == "25006"
				several = several || strings.Contains(pg.Message, "multiple commands")
			}
			ui.PrintError(cmd.ErrOrStderr(), g.Err)
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	if failures == 0 {
		return o.sayCut(cmd, cut)
	}
	o.warnCut(cmd, cut)
	f := ui.Failed("%d of %s failed", failures, phrase.Plural(len(asked), "shard"))
	switch {
	case several:
		return f.Hint("give one statement at a time; to run files of several: firn shard apply DIR")
	case refused:
		return f.Hint("--write lets it write")
	case away:
		return f.Hint("start the server that does not answer, or check its address; to see which servers answer: firn shard status. Then run the same command again")
	}
	return f
}

// sayCut says of which shards not all rows were printed. It is an error where nobody has asked
// for fewer: who reads the rows would take them for all.
func (o *shardsExec) sayCut(cmd *cobra.Command, cut []int64) error {
	if len(cut) == 0 || o.write || cmd.Flags().Changed("limit") {
		o.warnCut(cmd, cut)
		return nil
	}
	return ui.Failed("the rows are incomplete: only the first %d of each shard were printed, and %s %s more: %s", o.limit, phrase.Plural(len(cut), "shard"), hasOrHave(len(cut)), phrase.Numbers(cut)).
		Hint("for more rows of each shard: the same command with --limit N, or with --limit 0 for all")
}

// warnCut is sayCut where that is no error.
func (o *shardsExec) warnCut(cmd *cobra.Command, cut []int64) {
	if len(cut) > 0 {
		ui.PrintWarning(cmd.ErrOrStderr(), "%s %s more rows than --limit %d, which were not printed: %s", phrase.Plural(len(cut), "shard"), hasOrHave(len(cut)), o.limit, phrase.Numbers(cut))
	}
}

func hasOrHave(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}
