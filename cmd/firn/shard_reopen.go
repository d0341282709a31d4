package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsReopen() *cobra.Command {
	var o shardsReopen
	cmd := &cobra.Command{
		Use:   "reopen SERVER",
		Short: "Let a promoted, restored or copied server serve its shards",
		Long: `Let a server's shards be served again after its standby was promoted, a backup was
put back, or a shard was closed. Such a server gives no ids by itself, since what it
is a copy of may live.

All servers are asked first. A shard is opened only if no other server serves it or
has had it since; and where a server does not answer, only if you say with --gone
that it is permanently gone. A server that answers with an error is not gone: correct its
address. That the old primary is gone nobody can ask: you say so. The server is told who
serves the shards that are open elsewhere.

A copy of which nobody knows that it has all rows of a shard is not opened: a standby or a
backup of the server that had it last has more. If a move of a shard is not finished, both
servers have a copy of it: all rows of the two are compared, and a copy that lacks rows
of the other one is not opened. --incomplete opens the shards of --shards with the rows
that are there. The others are lost, or stay in the other copy; no id is given again.
The application's own sequences may be behind, and numbers drawn from them may repeat:
advance them (setval) before. No sequence is set back.

Ids start above the latest clock of this host and all servers, plus --margin. Give a longer
margin if the ids of the server that was lost were further ahead of its clock (firn shard
doctor). If no other clock is within an hour of the latest, no shard is opened: set the
clock that is wrong first.`,
		Example: `  firn shard reopen a
  firn shard reopen a --shards 0-99 --dry-run
  firn shard reopen a --gone b --margin 1m --yes
  firn shard reopen a --shards 17 --gone b --incomplete`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return ofRole(o.run(ctx, cmd, args[0]))
		},
	}
	addServers(cmd)
	cmd.Flags().Var(&o.shards, "shards", "only these shards, such as 0-9,12, though they may serve (all that do not serve)")
	addGone(cmd, &o.gone)
	cmd.Flags().DurationVar(&o.margin, "margin", time.Second, "by how much to begin above the latest clock")
	cmd.Flags().BoolVar(&o.incomplete, "incomplete", false, "open the shards of --shards though rows of them may be missing here")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "say what would be done, and do nothing")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask: what the server is a copy of is permanently gone")
	return cmd
}

// mostMargin is the longest margin. All later ids of the shards have it in their times.
const mostMargin = 24 * time.Hour

type shardsReopen struct {
	shards   shardNumbers
	gone     []string
	margin   time.Duration
	dry, yes bool

	incomplete bool
}

// ofRole adds to an error of a right that is missing whose role it takes.
func ofRole(err error) error {
	if !lacksRight(err) || errors.As(err, new(*ui.Failure)) {
		return err
	}
	return ui.Failed("%w", err).Hint("%s", sameCommand)
}

func (o *shardsReopen) run(ctx context.Context, cmd *cobra.Command, name string) error {
	servers, err := shardServers(cmd)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(servers, func(s topology.Server) bool { return s.Name == name }) {
		return unknownServer(name, servers)
	}
	if o.margin < time.Second || o.margin > mostMargin {
		return ui.Bad("--margin %s: it is from 1s to %s", o.margin, mostMargin)
	}
	if o.incomplete && len(o.shards.ranges) == 0 {
		return ui.Bad("--incomplete is said of single shards").Hint("firn shard reopen %s --incomplete --shards 17", name)
	}
	plan, err := setup.LookReopen(ctx, servers, name, o.options())
	if err != nil {
		return o.lookFailure(name, err)
	}
	if m, err := topology.NewMap(plan.Views); err == nil {
		if err := o.shards.beyond(m); err != nil {
			return err
		}
	}
	r := &reopening{plan}
	if !wantsJSON(cmd) {
		r.print(cmd.ErrOrStderr())
		r.printNowhere(cmd)
	}
	// A dry run says what the command would say, and nobody is asked about what would be refused.
	if err := o.check(ctx, servers, plan); err != nil {
		return err
	}
	r.printEnded(ctx, cmd, servers)
	r.warnSequences(cmd)
	if (plan.Copy || len(plan.Shards)+len(plan.Told) > 0) && !o.dry {
		if err := o.ask(ctx, cmd, plan); err != nil {
			return err
		}
		if err := o.reopen(ctx, cmd, servers, plan); err != nil {
			return err
		}
	}
	return cmp.Or(r.say(cmd, o.dry), r.twice())
}

// options are the flags.
func (o *shardsReopen) options() setup.ReopenOptions {
	options := setup.ReopenOptions{Gone: o.gone, Margin: o.margin, Incomplete: o.incomplete, Compare: move.Compare}
	if len(o.shards.ranges) > 0 {
		options.Asked = o.shards.has
	}
	return options
}

// check returns the error with which what is planned would be refused, or nil.
func (o *shardsReopen) check(ctx context.Context, servers []topology.Server, plan *setup.Reopening) error {
	if len(o.shards.ranges) > 0 && len(plan.Shards)+len(plan.Left) == 0 {
		f := ui.Failed("server %s has no copy of shard %s", plan.Server, &o.shards)
		if len(o.gone) != 1 {
			return f.Hint("to see which server serves each shard: firn shard status")
		}
		return f.Hint("%s", backHint(o.gone[0])).Hint("if it has neither, the rows are lost")
	}
	return o.failure(plan.CheckOn(ctx, servers), plan)
}

// reopen does what is planned, if the servers still say what they said then: the
// answer may have taken long.
func (o *shardsReopen) reopen(ctx context.Context, cmd *cobra.Command, servers []topology.Server, plan *setup.Reopening) error {
	var done atomic.Int64
	p := ui.ShowProgressOf("shards", true, cmd.ErrOrStderr(), int64(len(plan.Shards)), &done)
	defer p.Stop()
	err := plan.Run(ctx, servers, &done)
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, install.ErrLocked):
		return setupFailure(err)
	case errors.Is(err, setup.ErrOvertaken):
		return ui.Failed("meanwhile somebody else has worked on the shards: nothing was done").Hint("run it again")
	}
	if err = o.failure(err, plan); errors.As(err, new(*ui.Failure)) {
		return err
	}
	return ui.Failed("%d of %d shards were opened; then: %w", done.Load(), len(plan.Shards), err).Hint("run it again: it continues with the shards that are left")
}

// unknownServer is the error of a name that no server has.
func unknownServer(name string, servers []topology.Server) error {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	return ui.Bad("there is no server %q", name).Hint("the servers are %s", strings.Join(names, ", "))
}

// lookFailure is an error of [setup.LookReopen] with what to do about it.
func (o *shardsReopen) lookFailure(name string, err error) error {
	var stray *topology.StrayError
	var of *topology.ServerError
	var answers *check.AnswersError
	var refuses *setup.RefusesError
	var missing *setup.AwayError
	switch {
	case errors.As(err, &stray) && stray.Original != "" && errors.As(err, &of) && of.Server == name:
		return ui.Failed("%s", phrase.WithoutPackage(err.Error())).Hint("%s", check.AddressDo(err)). // not wrapped: there is more to do than for others
														Hint("to serve from the copy instead, on that server first: ALTER DATABASE %s RENAME TO another_name. Then no program gets ids from the original, and the same command opens the copy", sqlWord(stray.Original))
	case errors.As(err, &answers) && answers.Err == nil:
		return ui.Failed("%w", err).Hint("the same command without --gone %s", answers.Server)
	case errors.As(err, &answers):
		return goneFailure(err)
	case errors.As(err, &refuses):
		return ui.Failed("%w", err).Hint("%s", addressHint(refuses.Server, refuses.Err))
	case errors.As(err, &missing) && missing.Unlisted:
		return ui.Failed("%s", phrase.WithoutPackage(err.Error())).
			Hint("only %s has %s in its list of servers. If %[2]s was removed from the cluster after the state that %[1]s was put back to: firn shard reopen %[1]s --gone %[2]s. Then take it out of the list again: firn shard remove-server %[2]s --gone %[2]s", missing.Server, missing.Away).
			Hint("if not: %s", startHint(missing.Away))
	case errors.As(err, &missing):
		return ui.Failed("%s", phrase.WithoutPackage(err.Error())).Hint("%s", startHint(missing.Away)).Hint("if it runs, and was not named here: %s", check.UnaskedDo([]string{missing.Away}))
	case errors.As(err, new(*setup.ClockError)):
		return setupFailure(err)
	}
	return addressFailure(err)
}

func (o *shardsReopen) ask(ctx context.Context, cmd *cobra.Command, plan *setup.Reopening) error {
	if o.yes {
		return nil
	}
	return ui.MustAsk(ctx, cmd, strings.Join(plan.Questions(), " "), "the same command with --yes")
}

// backHint says how rows come back that only one server has.
func backHint(server string) string {
	return fmt.Sprintf("start server %s, or put its standby or backup in its place, then: firn shard reopen %[1]s", server)
}

// opens is the command that opens shards on a server, with a flag that claims something, or without one.
func (o *shardsReopen) opens(server string, n int64, more []int64, claim string) string {
	do := fmt.Sprintf("firn shard reopen %s --shards %s%s", server, phrase.Numbers(append([]int64{n}, more...)), claim)
	for _, name := range o.gone {
		do += " --gone " + phrase.ShellWord(name)
	}
	return do
}

// lacksFailure is the error of shards of which another server has a copy with more rows.
func (o *shardsReopen) lacksFailure(e *setup.LacksError) *ui.Failure {
	f := ui.Failed("%w", e)
	if !e.Superset {
		f = f.Hint("each of the two servers has rows that the other one lacks. Before you open either, look for a newer backup or a standby of %s", e.Server)
	}
	what, claim := "to open the copy on "+e.Other, ""
	if e.Doubtful && e.Superset {
		what += fmt.Sprintf(", which has all rows that %s has", e.Server)
	}
	if e.Doubtful { // what the person is told here is what the claim is about
		claim = " --incomplete"
	}
	return f.Hint("%s: %s", what, o.opens(e.Other, e.Shard, e.More, claim)).
		Hint("sequences of your own may be behind on %s: compare them with the rows before programs write there", e.Other).
		Hint("if the rows that %s lacks are not needed: %s. The copy on %s stays until you drop it", e.Server, o.opens(e.Server, e.Shard, e.More, " --incomplete"), e.Other)
}

// failure is the error of a shard that is not opened, with what to do about it, or nil.
func (o *shardsReopen) failure(err error, plan *setup.Reopening) error {
	if err == nil {
		return nil
	}
	var lacks *setup.LacksError
	if errors.As(err, &lacks) {
		return o.lacksFailure(lacks)
	}
	var incomplete *setup.IncompleteError
	var nothing *setup.NothingError
	switch {
	case errors.As(err, &incomplete):
		if o, elsewhere := plan.Opens(incomplete.Shard); elsewhere {
			return ui.Failed("%w", err).Hint("%s", o.Text())
		}
	case errors.As(err, &nothing):
		if o, elsewhere := plan.Opens(nothing.Shard); elsewhere {
			return ui.Failed("%w", err).Hint("%s", o.Text())
		}
	}
	if incomplete != nil {
		again := o.opens(plan.Server, incomplete.Shard, incomplete.More, " --incomplete")
		return ui.Failed("%w", err).Hint("%s", backHint(incomplete.MovedTo)).
			Hint("if it has neither, rows that are not on %s are lost; to open the rows that %[1]s has: %s", plan.Server, again)
	}
	if nothing != nil {
		return ui.Failed("%w", err).Hint("%s", backHint(nothing.MovedTo)).Hint("if it has neither, the rows are lost")
	}
	if !errors.As(err, new(*topology.ServerError)) {
		err = &topology.ServerError{Server: plan.Server, Err: err}
	}
	var rights *setup.RightsError
	if errors.As(err, &rights) {
		return ui.Failed("%w", err).Hint("%s", rights.Do)
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch {
	case pg.Code == "ID007" && strings.HasPrefix(pg.Hint, "firn "): // it says which server knows more
		return ui.Failed("%w", err).Hint("%s", pg.Hint)
	case pg.Code == "42883":
		return ui.Failed("%w", err).Hint("the servers have functions of another version: firn shard init, then run it again")
	case pg.Code == "42501": // such as of the table of a move that a superuser began
		return ui.Failed("%w", err).Hint("%s", sameCommand)
	case pg.Code == "ID004" || pg.Code == "ID009": // the clock
		return ui.Failed("server %s: %w", plan.Server, pg).Hint("on server %s: %s", plan.Server, pg.Hint).Hint("then run the same command again")
	}
	return err
}
