package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/migrate"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsApply() *cobra.Command {
	o := shardsApply{canary: -1}
	cmd := &cobra.Command{
		Use:   "apply DIR",
		Short: "Run numbered SQL files on every shard, each file once",
		Long: `Run the SQL files of a directory on every shard, in the order of their numbers:
001_users.sql, 002_photos.sql. Names mean the shard's own, and then public's. Each file
is one transaction on each shard, together with the record that it was applied, in the
shard's table firn_applied. Broken off by an error or by anything else, it continues where
it stopped when it is run again.

A shard whose move is not finished gets no file, because the other copy of the shard would
not get it: finish the move, or abort it, and run it again; or say --moving.

One shard goes first, alone: the lowest, or --canary, after which it asks on a terminal.
If that fails nothing else is begun. After --max-failures nothing more is begun either;
shards that have a file keep it.

Refused, before anything is changed: a file that was changed after it was applied, or
is no longer there; and a new file whose number is below that of an applied file.

What cannot be in a transaction, as CREATE INDEX CONCURRENTLY, goes into a file whose
first line is

  -- firn: no transaction

Its statements run one by one. Where such a file is broken off it begins anew the next
time, so write it for that: DROP INDEX CONCURRENTLY IF EXISTS, then CREATE.`,
		Example: `  firn shard apply migrations/ --dry-run
  firn shard apply migrations/ --canary 5
  firn shard apply migrations/ --status`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return o.run(ctx, cmd, args[0])
		},
	}
	addServers(cmd)
	flags := cmd.Flags()
	flags.Var(&o.shards, "shards", "only these shards, such as 0-9,12 (all)")
	flags.Int64Var(&o.canary, "canary", -1, "the shard that goes first, alone; then it asks")
	flags.IntVar(&o.options.PerServer, "per-server", 4, "how many shards of a server at once")
	flags.IntVar(&o.options.MaxFailures, "max-failures", 10, "how many shards may fail before no other is begun")
	flags.DurationVar(&o.options.LockTimeout, "lock-timeout", 2*time.Second, "how long a statement waits for a lock, and others behind it")
	flags.DurationVar(&o.options.StatementTimeout, "statement-timeout", 0, "how long a statement may take (no limit)")
	flags.BoolVar(&o.late, "out-of-order", false, "allow files with numbers below those that were applied")
	flags.BoolVar(&o.moving, "moving", false, "also on shards whose move is not finished: after a file that changes tables the move can only be aborted, or finished")
	flags.BoolVar(&o.dry, "dry-run", false, "say what would be done, and do nothing")
	flags.BoolVar(&o.status, "status", false, "say which files the shards have, and do nothing")
	flags.BoolVar(&o.yes, "yes", false, "do not ask after the canary")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "status")
	return cmd
}

type shardsApply struct {
	shards                 shardNumbers
	canary                 int64
	options                migrate.Options
	late, dry, status, yes bool
	moving, inMoves        bool // shards in moves get files; some of them do not
}

func (o *shardsApply) run(ctx context.Context, cmd *cobra.Command, dir string) error {
	if err := o.check(); err != nil {
		return err
	}
	files, err := migrate.ReadDir(os.DirFS(dir))
	if errors.As(err, new(*fs.PathError)) { // it has no more of the name than "."
		if _, of := os.ReadDir(dir); of != nil {
			err = of
		}
	}
	if err != nil {
		return &ui.Failure{Code: ui.ExitUsage, Err: err}
	}
	if len(files) == 0 {
		return ui.Bad("there is no .sql file in %s", dir).Hint("they are called 001_users.sql, 002_photos.sql, ...")
	}
	servers, err := shardServers(cmd)
	if err != nil {
		return err
	}
	if !o.dry && !o.status {
		release, err := install.LockAll(ctx, servers)
		if err != nil {
			return setupFailure(err)
		}
		defer release()
	}
	var asked func(int64) bool // nil: all
	if len(o.shards.ranges) > 0 {
		asked = o.shards.has
	}
	state, err := migrate.LookFor(ctx, servers, asked)
	var owner *migrate.OwnerError
	switch {
	case errors.As(err, &owner):
		owners := setup.Owners(ctx, servers)
		if odd, _ := setup.Odd(owners); len(odd) > 0 {
			return ownersHints(ui.Failed("%w", &setup.OwnersError{Owners: owners}), owners)
		}
		return ui.Failed("%w", err).Hint("in the same command give these addresses instead, with the name of that role: %s", asRole(owner.Owner))
	case check.AddressDo(err) != "":
		return addressFailure(err)
	case err != nil:
		return ui.Failed("%w", err).Hint("files are applied everywhere or nowhere: all servers have to be there (firn shard status)")
	}
	if len(state.Unseen) > 0 {
		ui.PrintWarning(cmd.ErrOrStderr(), "servers of the cluster are not named (%s): nobody looked at shard %s, which gets no file now", strings.Join(state.Map.Missing, ", "), phrase.Numbers(state.Unseen))
	}
	if err := o.shards.beyond(state.Map); err != nil {
		return err
	}
	if o.status {
		return printApplied(cmd, state, files, o.shards.has)
	}
	plan, err := migrate.NewPlan(state, files, o.shards.has, o.late)
	if err != nil {
		return conflictFailure(err)
	}
	if err := o.checkShards(state); err != nil {
		return err
	}
	if o.inMoves, err = leaveMoves(ctx, cmd, servers, plan, o.moving); err != nil {
		return err
	}
	if o.dry {
		return printApplyPlan(cmd, plan, files)
	}
	return o.apply(ctx, cmd, plan, servers)
}

// check refuses what cannot be meant.
func (o *shardsApply) check() error {
	switch {
	case o.options.PerServer < 1:
		return ui.Bad("--per-server %d: it is 1 at least", o.options.PerServer)
	case o.options.MaxFailures < 1:
		return ui.Bad("--max-failures %d: it is 1 at least", o.options.MaxFailures)
	case o.options.LockTimeout < time.Millisecond:
		return ui.Bad("--lock-timeout %s: it is 1ms at least", o.options.LockTimeout)
	case o.options.StatementTimeout < 0 || o.options.StatementTimeout%time.Millisecond != 0:
		return ui.Bad("--statement-timeout %s: it is in milliseconds, and 0 is no limit", o.options.StatementTimeout)
	}
	return nil
}

// checkShards refuses shards that are not there.
func (o *shardsApply) checkShards(state *migrate.State) error {
	if o.canary >= 0 {
		if _, ok := state.Map.Route(o.canary); !ok || !o.shards.has(o.canary) {
			return ui.Bad("--canary %d: there is no such shard among them", o.canary).Hint("firn shard ls")
		}
	}
	if unknown := o.shards.unknown(state.Map); len(o.shards.ranges) > 0 && len(unknown) > 0 {
		return ui.Bad("no server has shard %s", phrase.Numbers(unknown)).Hint("firn shard ls")
	}
	return nil
}

// conflictFailure says of each file that does not fit what to do.
func conflictFailure(err error) error {
	f := ui.Failed("%w", err)
	var conflict *migrate.ConflictError
	if !errors.As(err, &conflict) {
		return f
	}
	switch conflict.Why {
	case migrate.Changed:
		return f.Hint("what was applied stays as it was: put the old text back, and the change into a new file")
	case migrate.Missing:
		return f.Hint("is this the right directory, and is it up to date?")
	default:
		return f.Hint("give it the next number; or, if the order does not matter: --out-of-order")
	}
}

// apply applies the plan, the canary first.
func (o *shardsApply) apply(ctx context.Context, cmd *cobra.Command, plan *migrate.Plan, servers []topology.Server) error {
	var done atomic.Int64
	show := ui.ShowProgressOf("shards", true, cmd.ErrOrStderr(), int64(len(plan.Work)), &done)
	o.options.Done = func(migrate.Result) { done.Add(1) }
	o.options.Moving = o.moving
	one, others := plan.Divide(o.canary)
	results := one.Run(ctx, servers, &o.options)
	var err error
	switch {
	case len(results) == 0 || results[0].Err != nil:
		others.Work = nil
	case o.canary >= 0 && len(others.Work) > 0 && !o.yes && ui.PersonAt(cmd) != nil:
		show.Stop()
		err = askAfterCanary(ctx, ui.PersonAt(cmd), one.Work[0].Shard, len(others.Work))
		show = ui.ShowProgressOf("shards", true, cmd.ErrOrStderr(), int64(len(plan.Work)), &done)
	}
	if err == nil {
		results = append(results, others.Run(ctx, servers, &o.options)...)
	}
	show.Stop()
	if err != nil {
		return err
	}
	a := applied{results: results, left: plan.Left, begun: len(plan.Work), full: plan.Full, inMoves: o.inMoves, servers: servers}
	a.leaveMoving()
	return a.print(ctx, cmd)
}

// askAfterCanary asks whether to go on with the other shards.
func askAfterCanary(ctx context.Context, p *ui.Person, canary int64, others int) error {
	question := fmt.Sprintf("Shard %d has all. Continue with %s?", canary, phrase.Plural(others, "other shard"))
	err := p.Ask(ctx, question)
	if err != nil && ctx.Err() == nil {
		return ui.Failed("only shard %d was changed", canary).Hint("to continue, run it again and type yes")
	}
	return err
}
