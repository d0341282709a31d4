package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/shortfile"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
	"github.com/firn-id/firn/store/open"
)

func newShardsInit() *cobra.Command {
	o := shardsInit{usual: firn.Sharded()}
	cmd := &cobra.Command{
		Use:   "init --count N --server NAME=URL...",
		Short: "Create a cluster of shards, or update its functions",
		Long: `Make a cluster of logical shards on PostgreSQL servers (14 or newer), or bring one up
to date after an upgrade of firn. Shard i of n is made on server i*k/n of the k servers,
in their order: a schema, with a function next_id that makes its ids.

It checks all servers before it changes anything. It may be broken
off at any moment and run again, and continues where it stopped. On a cluster that is there,
--count may be left out: then no shards are made, and functions are brought up to date.

How many shards there are, the layout, the key scheme and how schemas are called is
decided here, and never changes, but that ranges of keys can be added at the end:

  hash     any text; a program in another language finds the same shard
  mod      numbers: the key modulo the number of shards
  range    numbers: the lower bound of each shard, range:1,1001,2001 or --bounds FILE
  none     the program knows the shard by itself

To add a range, run it again with one more bound: the new shard is made on the last server.
No key of it may be in use, nor come into use before a minute after the command.

The role on each server owns the schema firn; it needs CREATE on the database, and is
no superuser. Applications log in as roles that were granted --role, which is made
where it is missing and the role may make one.`,
		Example: `  firn shard init --count 2000 --server a=postgres://firn@db1/app --server b=postgres://firn@db2/app
  firn shard init --count 16 --keys-by range --bounds bounds.txt --dry-run
  firn shard init --keys-by range:1,1001,2001
  firn shard init`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	addServers(cmd)
	o.addWish(cmd)
	cmd.Flags().Int64Var(&o.wish.Count, "count", 0, "how many shards")
	return cmd
}

// A shardsInit is what firn shard init and adopt are told about the cluster.
type shardsInit struct {
	usual  firn.Layout // where none is named
	wish   setup.Wish
	layout layoutFlag
	epoch  string
	bounds string
	dryRun bool
	yes    bool
}

func (o *shardsInit) addWish(cmd *cobra.Command) {
	flags := cmd.Flags()
	addLayout(cmd, &o.layout, "a layout with time, shard and seq ("+o.usual.Name()+")")
	flags.StringVar(&o.epoch, "epoch", "", "another epoch for the layout: "+epochForms)
	flags.StringVar(&o.wish.Keys, "keys-by", "", "which shard a key is in: hash, mod, range:1,1001,... or none (hash)")
	flags.StringVar(&o.bounds, "bounds", "", "with --keys-by range: a file with the lower bound of each shard, one a line")
	flags.StringVar(&o.wish.Schemas, "schema", "", "how a shard's schema is called, %d being its number (insta%d)")
	flags.StringSliceVar(&o.wish.Roles, "role", []string{setup.DefaultRole}, "roles that may work on all shards")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only show what would be done")
	addYes(cmd, &o.yes)
}

// complete finds the layout and the bounds that were asked for.
func (o *shardsInit) complete(cmd *cobra.Command) error {
	if o.epoch != "" && !o.layout.IsValid() {
		o.layout.Layout = o.usual
	}
	if o.layout.IsValid() {
		l, err := withEpoch(o.layout.Layout, o.epoch)
		if err != nil {
			return err
		}
		if err := install.CheckLayout(l); err != nil {
			return &ui.Failure{Code: ui.ExitUsage, Err: err}
		}
		o.wish.Layout = l
	}
	if cmd.Flags().Changed("count") && o.wish.Count < 1 {
		return ui.Bad("--count %d: there is at least one shard", o.wish.Count).Hint("firn shard init --count 2000")
	}
	if o.bounds == "" {
		return nil
	}
	if o.wish.Keys != topology.Range {
		return ui.Bad("--bounds is for --keys-by range").Hint("--keys-by range --bounds %s", phrase.ShellWord(o.bounds))
	}
	data, err := ui.Within(cmd.Context(), func() ([]byte, error) { return shortfile.Read(o.bounds) })
	if err != nil {
		return ui.Bad("--bounds: %w", err)
	}
	o.wish.Keys += ":" + strings.Join(strings.Fields(string(data)), ",")
	return nil
}

func (o *shardsInit) run(cmd *cobra.Command) error {
	if err := o.complete(cmd); err != nil {
		return err
	}
	servers, err := shardServers(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	return o.init(ctx, cmd, servers)
}

func (o *shardsInit) init(ctx context.Context, cmd *cobra.Command, servers []topology.Server) error {
	opened, err := setup.Open(ctx, servers, !o.dryRun)
	if err != nil {
		return setupFailure(err)
	}
	defer opened.Close()
	p, err := opened.Init(o.wish)
	if err != nil {
		return setupFailure(err)
	}
	if p.Missing > 0 {
		ui.PrintWarning(cmd.ErrOrStderr(), "%s of %s shards are on no server. If a server had them, put its data or a backup in its place, then: firn shard reopen SERVER. Only if they were never made: firn shard init --count %d",
			phrase.Count(p.Missing), phrase.Count(p.Keys.Shards()), p.Keys.Shards())
	}
	if p.Cluster == "" && !wantsJSON(cmd) {
		if err := printCluster(cmd.OutOrStdout(), p); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout())
	}
	if err := o.agree(ctx, cmd, p); err != nil {
		return err
	}
	if !o.dryRun {
		if err := runShardsPlan(ctx, cmd, p); err != nil {
			return err
		}
	}
	return printShardsPlan(cmd.OutOrStdout(), p, o.dryRun, wantsJSON(cmd))
}

// runShardsPlan does what is planned, and shows how far it is.
func runShardsPlan(ctx context.Context, cmd *cobra.Command, p *setup.Plan) error {
	var done atomic.Int64
	show := ui.ShowProgressOf("shards", true, cmd.ErrOrStderr(), p.Steps(), &done)
	err := p.Run(ctx, &done)
	show.Stop()
	if err == nil {
		return nil
	}
	return brokenOff(ctx, cmd, setupFailure(err), done.Load(), p.Steps())
}

// brokenOff says how far it was, of a failure or a signal, which prints nothing else.
func brokenOff(ctx context.Context, cmd *cobra.Command, f *ui.Failure, done, steps int64) error {
	if ctx.Err() != nil {
		ui.Tell(ctx, nil)
		ui.PrintWarning(cmd.ErrOrStderr(), "%s of %s shards were done; run again, it continues where it stopped", phrase.Count(done), phrase.Count(steps))
		return f
	}
	f.Err = fmt.Errorf("%w\n%s of %s shards were done", f.Err, phrase.Count(done), phrase.Count(steps))
	return f.Hint("run it again: it continues where it stopped")
}

// setupFailure is an error of package setup with what to do about it.
func setupFailure(err error) *ui.Failure {
	f := ui.Failed("%w", err)
	var wish *setup.WishError
	var many *setup.TooManyError
	var different *setup.DifferenceError
	var stranger *setup.StrangerError
	var unnamed *setup.UnnamedError
	var schema *setup.SchemaError
	var copied *setup.CopyError
	var forgot *setup.ForgotError
	var owner *setup.OwnerError
	var owners *setup.OwnersError
	var joiner *setup.JoinerError
	var rights *setup.RightsError
	var pg *pgconn.PgError
	switch {
	case check.AddressDo(err) != "":
		return f.Hint("%s", check.AddressDo(err))
	case errors.As(err, &pg) && (pg.Code == "ID004" || pg.Code == "ID009"): // the clock of a server
		return f.Hint("there: %s", pg.Hint)
	case againDo(err) != "":
		return f.Hint("%s", againDo(err))
	case errors.As(err, &owner):
		return f.Hint("in the same command give these addresses instead, with the name of that role: %s", asRole(owner.Owner))
	case errors.As(err, &rights):
		return f.Hint("%s", rights.Do)
	case errors.As(err, &owners):
		return ownersHints(f, owners.Owners)
	case errors.As(err, &joiner):
		return joinerHint(f, joiner)
	case errors.As(err, &forgot) && forgot.HadNone:
		return f.Hint("is its address right? If %s", check.AddedElsewhere(forgot.Server)).Hint("if the database of %s is lost: %s", forgot.Server, lostPage)
	case errors.As(err, &forgot):
		return f.Hint("is its address right? If what it had is lost: %s", lostPage)
	case errors.As(err, &copied):
		return f.Hint("is its address that of the primary? If it was promoted or restored, and is the only one now: firn shard reopen %s", copied.Server)
	case errors.Is(err, setup.ErrNoCount):
		f.Code = ui.ExitUsage
		return f.Hint("--count 2000, say: as many as you will ever want servers, times a hundred")
	case errors.As(err, &many):
		f.Code = ui.ExitUsage
		if wider := many.Wider(); wider.IsValid() {
			return f.Hint("--layout '%s'", wider)
		}
	case errors.As(err, new(*firn.EndError)), errors.As(err, new(*firn.EpochError)):
		f.Code = ui.ExitUsage
		return f.Hint("is the epoch right? To see when a layout begins and ends: firn layout show LAYOUT")
	case errors.As(err, &wish):
		f.Code = ui.ExitUsage
		return f.Hint("firn shard init --help")
	case errors.As(err, &different):
		f.Code = ui.ExitUsage
		if different.What == "keys" && strings.HasPrefix(different.Is, topology.Range) && strings.HasPrefix(different.Asked, topology.Range) {
			return f.Hint("ranges can only be added, above the last: --keys-by %s,N", different.Is)
		}
		return f.Hint("leave the flag out; to see what the cluster is: firn shard status")
	case errors.As(err, &unnamed):
		return f.Hint("name it in the same command: --server %s=postgres://USER@HOST/DATABASE beside the others, or all of them in firn.yaml", unnamed.Server).
			Hint("if it is permanently lost: %s", lostPage)
	case errors.As(err, &stranger):
		return f.Hint("firn shard add-server %s=postgres://USER@HOST/DATABASE", stranger.Server)
	case errors.As(err, new(*setup.NowhereError)):
		return f.Hint("to see what opens it: firn shard doctor")
	case errors.As(err, &schema):
		return f.Hint("to take over its ids: firn shard adopt --dry-run; else, on server %s: %s", schema.Server, renameSchema(schema.Schema))
	case errors.Is(err, install.ErrLocked):
		return f.Hint("wait for it; or end it: SELECT pg_terminate_backend(PID)")
	}
	return f
}

// renameSchema is the SQL that puts a schema out of the way, with its rows.
func renameSchema(schema string) string {
	return "ALTER SCHEMA " + sqlWord(schema) + " RENAME TO " + sqlWord("was_"+schema)
}

// A serverPlanLine is what happens on a server, as --json prints it.
type serverPlanLine struct {
	Server  string `json:"server"`
	Made    int    `json:"made"`
	Renewed int    `json:"renewed"`
	There   int    `json:"there"`
}

// A shardsPlanLine is a plan as --json prints it.
type shardsPlanLine struct {
	Cluster string           `json:"cluster,omitempty"`
	DryRun  bool             `json:"dry_run,omitempty"`
	Shards  int64            `json:"shards"`
	Layout  string           `json:"layout"`
	Keys    string           `json:"keys"`
	Schemas string           `json:"schemas"`
	Missing int64            `json:"missing,omitempty"`
	Servers []serverPlanLine `json:"servers"`
}

func printShardsPlan(out io.Writer, p *setup.Plan, dryRun, asJSON bool) error {
	line := shardsPlanLine{Cluster: p.Cluster, DryRun: dryRun, Shards: p.Keys.Shards(), Layout: p.Layout.String(), Keys: p.Keys.String(), Schemas: p.Schemas, Missing: p.Missing}
	for _, s := range p.Servers {
		line.Servers = append(line.Servers, serverPlanLine{s.Server.Name, len(s.Make), len(s.Renew), s.There})
	}
	if asJSON {
		return json.NewEncoder(out).Encode(line)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	made, renewed := "MADE", "RENEWED"
	if dryRun {
		made, renewed = "TO MAKE", "TO RENEW"
	}
	fmt.Fprintf(w, "SERVER\tSHARDS\t%s\t%s\n", made, renewed)
	for _, s := range line.Servers {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", s.Server, s.There+s.Made, s.Made, s.Renewed)
	}
	if err := w.Flush(); err != nil || dryRun {
		return err
	}
	return printNext(out, p)
}

// printNext says how the cluster is used from now on.
func printNext(out io.Writer, p *setup.Plan) error {
	fmt.Fprintf(out, "\nIn firn.yaml, without passwords that others may not see:\n\nshards:\n  servers:\n")
	for _, s := range p.Servers {
		fmt.Fprintf(out, "    %s: %s\n", s.Server.Name, serverURL(s.Server))
	}
	roles := slices.Clone(p.Roles)
	for i, r := range roles {
		roles[i] = sqlWord(r)
	}
	_, err := fmt.Fprintf(out, "\nThen: firn shard status; on each server GRANT %s TO your application's role; firn shard apply DIR\n", strings.Join(roles, ", "))
	return err
}

// sqlWord quotes a name for SQL, if it has to be.
func sqlWord(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" && !strings.ContainsAny(name[:1], "0123456789") {
		return name
	}
	return pgx.Identifier{name}.Sanitize()
}

// serverURL is how a server is reached, without secrets.
func serverURL(s topology.Server) string { return open.Redact(s.Config.ConnString()) }
