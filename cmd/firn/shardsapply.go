package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/migrate"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/setup"
)

func newShardsApply() *cobra.Command {
	o := shardsApply{canary: -1}
	cmd := &cobra.Command{
		Use:   "apply DIR",
		Short: "Run numbered SQL files on every shard, each once",
		Long: `Run the SQL files of a directory on every shard, in the order of their numbers:
001_users.sql, 002_photos.sql. Names mean the shard's own, and then public's. Each file
is one transaction on each shard, together with the record that it was applied, in the
shard's table firn_applied. Broken off by an error or by anything else, it goes on where
it was when it is run again.

One shard goes first, alone: the lowest, or --canary, after which it asks on a terminal.
If that fails nothing else is begun. After --max-failures nothing more is begun either;
shards that have a file keep it.

Refused, before anything is changed: a file that was changed after it was applied, or
is no longer there; and one that comes with a number below one that was applied.

What cannot be in a transaction, as CREATE INDEX CONCURRENTLY, goes into a file whose
first line is

  -- firn: no transaction

Its statements run one by one. Where such a file is broken off it begins anew the next
time, so write it for that: DROP INDEX CONCURRENTLY IF EXISTS, then CREATE.`,
		Example: `  firn shards apply migrations/ --dry-run
  firn shards apply migrations/ --canary 5
  firn shards apply migrations/ --status`,
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
		release, err := shard.LockAll(ctx, servers)
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
	case err != nil:
		return ui.Failed("%w", err).Hint("files are applied everywhere or nowhere: all servers have to be there (firn shards status)")
	}
	if len(state.Unseen) > 0 {
		ui.PrintWarning(cmd.ErrOrStderr(), "servers of the cluster are not named (%s): nobody looked at shard %s, which gets no file now", strings.Join(state.Map.Missing, ", "), move.List(state.Unseen))
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
	if err := warnOfMoves(ctx, cmd, servers, plan); err != nil {
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
			return ui.Bad("--canary %d: there is no such shard among them", o.canary).Hint("firn shards ls")
		}
	}
	for _, r := range state.Map.Routes {
		if o.shards.has(r.Shard) {
			return nil
		}
	}
	return ui.Bad("--shards %s: there are no such shards", &o.shards).Hint("firn shards ls")
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
func (o *shardsApply) apply(ctx context.Context, cmd *cobra.Command, plan *migrate.Plan, servers []shard.Server) error {
	var done atomic.Int64
	show := ui.ShowProgressOf("shards", true, cmd.ErrOrStderr(), int64(len(plan.Work)), &done)
	o.options.Done = func(migrate.Result) { done.Add(1) }
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
	a := applied{results: results, left: plan.Left, begun: len(plan.Work)}
	return a.print(ctx, cmd)
}

// askAfterCanary asks whether to go on with the other shards.
func askAfterCanary(ctx context.Context, p *ui.Person, canary int64, others int) error {
	question := fmt.Sprintf("Shard %d has all. Go on with %s?", canary, phrase.Plural(others, "other shard"))
	err := p.Ask(ctx, question)
	if err != nil && ctx.Err() == nil {
		return ui.Failed("only shard %d was changed", canary).Hint("run it again to go on")
	}
	return err
}

// applied is what a run did.
type applied struct {
	results []migrate.Result
	left    []migrate.Left
	begun   int // how many shards had something to get
}

// An appliedLine is what became of a shard, as --json prints it.
type appliedLine struct {
	Shard   int64      `json:"shard"`
	Server  string     `json:"server,omitempty"`
	Applied []string   `json:"applied"`
	Error   *fileFault `json:"error,omitempty"`
}

// A fileFault is an error, and where it is as far as that is known.
type fileFault struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	SQLState string `json:"sqlstate,omitempty"`
	Message  string `json:"message"`
}

func faultOf(err error) *fileFault {
	f := fileFault{Message: err.Error()}
	var at *migrate.FileError
	if errors.As(err, &at) {
		f.File, f.Line, f.Message = at.File, at.Line, at.Err.Error()
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		f.SQLState, f.Message = pg.Code, pg.Message
	}
	return &f
}

// print prints what was done, and returns an error if that was not all.
func (a *applied) print(ctx context.Context, cmd *cobra.Command) error {
	complete, last := 0, error(nil)
	enc := json.NewEncoder(cmd.OutOrStdout())
	for _, r := range a.results {
		line := appliedLine{Shard: r.Shard, Server: r.Server, Applied: []string{}}
		for _, f := range r.Applied {
			line.Applied = append(line.Applied, f.Name)
		}
		if r.Err == nil {
			complete++
		} else if ctx.Err() == nil {
			last, line.Error = r.Err, faultOf(r.Err)
			ui.PrintError(cmd.ErrOrStderr(), fmt.Errorf("shard %d on %s: %w", r.Shard, r.Server, r.Err))
		}
		if wantsJSON(cmd) {
			if err := enc.Encode(line); err != nil {
				return err
			}
		}
	}
	for _, text := range leftTexts(a.left) {
		ui.PrintError(cmd.ErrOrStderr(), errors.New(text))
	}
	for _, l := range a.left {
		if wantsJSON(cmd) {
			if err := enc.Encode(appliedLine{Shard: l.Shard, Applied: []string{}, Error: &fileFault{Message: l.Why}}); err != nil {
				return err
			}
		}
	}
	missing := a.begun - complete + len(a.left)
	if missing == 0 {
		return a.say(cmd.OutOrStdout(), wantsJSON(cmd))
	}
	f := ui.Failed("%s complete; %d left, of which %d failed and %d are not served", shardsAre(complete), missing, len(a.results)-complete, len(a.left))
	if ctx.Err() != nil {
		ui.PrintWarning(cmd.ErrOrStderr(), "broken off: %s; run again, it goes on where it was", f)
		return ctx.Err()
	}
	return applyHint(f, last)
}

// leftTexts says which shards are left, those with the same reason together: a server
// that is closed has thousands.
func leftTexts(left []migrate.Left) (texts []string) {
	byWhy := map[string][]int64{}
	var whys []string
	for _, l := range left {
		if byWhy[l.Why] == nil {
			whys = append(whys, l.Why)
		}
		byWhy[l.Why] = append(byWhy[l.Why], l.Shard)
	}
	for _, why := range whys {
		texts = append(texts, migrate.Ranges(byWhy[why])+": "+why)
	}
	return texts
}

// shardsAre begins a sentence about some shards.
func shardsAre(n int) string {
	if n == 1 {
		return "1 shard is"
	}
	return fmt.Sprintf("%d shards are", n)
}

// say says that all was done.
func (a *applied) say(out io.Writer, asJSON bool) error {
	files := map[string]bool{}
	for _, r := range a.results {
		for _, f := range r.Applied {
			files[f.Name] = true
		}
	}
	switch {
	case asJSON:
		return nil
	case a.begun == 0:
		_, err := fmt.Fprintln(out, "there is nothing to apply: all shards have all files")
		return err
	}
	_, err := fmt.Fprintf(out, "%s applied to %s\n", phrase.Plural(len(files), "file"), phrase.Plural(a.begun, "shard"))
	return err
}

// applyHint says what to do after an error of a shard, or where there was none and
// shards are left.
func applyHint(f *ui.Failure, err error) *ui.Failure {
	if err == nil {
		return f.Hint("to see what to do about what is not served: firn shards doctor; then run it again")
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "25001":
			return f.Hint("put it into a file of its own, whose first line is: -- firn: no transaction")
		case "55P03":
			return f.Hint("run it again when less is going on, or with a longer --lock-timeout")
		}
	}
	return f.Hint("put it right and run it again: it goes on where it was; --status shows how far it is")
}

// printApplyPlan prints what a run would do.
func printApplyPlan(cmd *cobra.Command, plan *migrate.Plan, files []migrate.File) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FILE\tSHARDS TO GET IT")
	enc := json.NewEncoder(cmd.OutOrStdout())
	for _, f := range files {
		shards := []int64{}
		for _, todo := range plan.Work {
			for _, g := range todo.Files {
				if g.Number == f.Number {
					shards = append(shards, todo.Shard)
				}
			}
		}
		if wantsJSON(cmd) {
			if err := enc.Encode(struct {
				File   string  `json:"file"`
				Shards []int64 `json:"shards"`
			}{f.Name, shards}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s\t%d\n", f.Name, len(shards))
	}
	for _, text := range leftTexts(plan.Left) {
		ui.PrintWarning(cmd.ErrOrStderr(), "%s", text)
	}
	if wantsJSON(cmd) {
		return nil
	}
	return w.Flush()
}

// A fileLine says which shards have a file, as --json prints it.
type fileLine struct {
	Number  int64   `json:"number"`
	File    string  `json:"file"`
	Applied int     `json:"applied"`
	Begun   []int64 `json:"begun,omitempty"`   // outside of a transaction, and did not end
	Changed []int64 `json:"changed,omitempty"` // had another text
	Left    []int64 `json:"left,omitempty"`
}

// printApplied prints which shards have which files.
func printApplied(cmd *cobra.Command, state *migrate.State, files []migrate.File, asked func(int64) bool) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FILE\tAPPLIED\tLEFT\tBEGUN\tCHANGED")
	enc := json.NewEncoder(cmd.OutOrStdout())
	for _, f := range files {
		l := fileLine{Number: f.Number, File: f.Name}
		for _, r := range state.Map.Routes {
			if !asked(r.Shard) {
				continue
			}
			switch record, ok := state.Record(r.Shard, f.Number); {
			case !ok:
				l.Left = append(l.Left, r.Shard)
			case record.Applied.IsZero():
				l.Begun = append(l.Begun, r.Shard)
			case record.Sum != f.Sum:
				l.Changed = append(l.Changed, r.Shard)
			default:
				l.Applied++
			}
		}
		if wantsJSON(cmd) {
			if err := enc.Encode(l); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", f.Name, l.Applied, len(l.Left), len(l.Begun), len(l.Changed))
	}
	if wantsJSON(cmd) {
		return nil
	}
	return w.Flush()
}
