package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsAdopt() *cobra.Command {
	o := shardsAdopt{shardsInit: shardsInit{usual: firn.MustLayout("instagram")}}
	cmd := &cobra.Command{
		Use:   "adopt --keys-by SCHEME --server NAME=URL...",
		Short: "Take over schemas that already make Instagram-style ids",
		Long: `Take over schemas whose ids are made by functions as Instagram published them: their
tables, defaults and rows stay, and each function is replaced in place, also where each
table has one of its own.

Epoch, shifts and shard number are read out of the text of each function, in its usual
spellings. Unless all of them fit the layout, and each shard is there once, nothing is
changed. The layout stays what it is, and ends when it would have ended. --count and
--keys-by are those of your program, and never change. --dry-run shows what would be done, and what ids the new generators start above:
those in all columns whose default calls the function, and in all of type bigint that are
called id.

Each function is a transaction that waits until nobody writes there, for a fraction of a
second at a time, and up to --lock-wait in all. Inserts wait meanwhile, and none fails. The
sequence of the old function is ended, so that it can give no id any more, and left there.
Who calls the function outside of an insert at that moment may get one error.

Roles that could draw before can afterwards. The role firn_app gets no right on the tables
that are there. It may be broken off at any moment and run
again, and continues where it stopped.`,
		Example: `  firn shard adopt --keys-by mod --count 2000 --server a=postgres://firn@db1/app --dry-run
  firn shard adopt --keys-by none --count 100 --schema 'user_%d' --epoch 1293843600000 --server a=postgres://firn@db1/app`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	addServers(cmd)
	o.addWish(cmd)
	cmd.Flags().Int64Var(&o.wish.Count, "count", 0, "how many shards there are, also those that have no schema yet")
	cmd.Flags().StringSliceVar(&o.functions, "function", nil, "only functions of this `NAME` (all that make ids)")
	cmd.Flags().DurationVar(&o.wait, "lock-wait", time.Minute, "how long a schema may be in use before it is left as it is")
	return cmd
}

type shardsAdopt struct {
	shardsInit
	functions []string
	wait      time.Duration
}

func (o *shardsAdopt) run(cmd *cobra.Command) error {
	if err := o.complete(cmd); err != nil {
		return err
	}
	servers, err := shardServers(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	return o.adopt(ctx, cmd, servers)
}

func (o *shardsAdopt) adopt(ctx context.Context, cmd *cobra.Command, servers []topology.Server) error {
	opened, err := setup.Open(ctx, servers, !o.dryRun)
	if err != nil {
		return setupFailure(err)
	}
	defer opened.Close()
	a, err := opened.Adopt(ctx, o.wish, o.functions...)
	if err != nil {
		return adoptFailure(err)
	}
	asJSON := wantsJSON(cmd)
	if !asJSON || o.dryRun {
		if err := printAdoption(cmd.OutOrStdout(), a, o.dryRun, asJSON); err != nil {
			return err
		}
	}
	warnOfOthers(cmd, a)
	if o.dryRun {
		return nil
	}
	if err := o.agree(ctx, cmd, a.Plan); err != nil {
		return err
	}
	var done atomic.Int64
	show := ui.ShowProgressOf("functions", true, cmd.ErrOrStderr(), a.Steps(), &done)
	err = a.Run(ctx, o.wait, &done)
	show.Stop()
	if err != nil {
		return brokenOff(ctx, cmd, adoptFailure(err), done.Load(), a.Steps())
	}
	if asJSON {
		return printAdoption(cmd.OutOrStdout(), a, false, true)
	}
	return printNext(cmd.OutOrStdout(), a.Plan)
}

// adoptFailure is an error of an adoption with what to do about it.
func adoptFailure(err error) *ui.Failure {
	if errors.Is(err, setup.ErrNoKeys) {
		return (&ui.Failure{Code: ui.ExitUsage, Err: err}).
			Hint("--keys-by mod if it is the key modulo the number of shards; hash, range:..., or none if only the program knows")
	}
	if errors.As(err, new(*setup.WishError)) {
		return (&ui.Failure{Code: ui.ExitUsage, Err: err}).Hint("firn shard adopt --help")
	}
	f := setupFailure(err)
	var layout *setup.LayoutError
	var uncounted *setup.CountError
	var nameless *setup.NoFunctionError
	var busy *setup.BusyError
	switch {
	case errors.As(err, &nameless) && len(nameless.Others) > 0:
		return f.Hint("--function %s, which makes ids in %s", nameless.Others[0].Name, nameless.Others[0].Schema)
	case nameless != nil:
		return f.Hint("if your schemas have other names: --schema 'user_%%d'; if nothing makes ids there yet: firn shard init --count N")
	case errors.As(err, &uncounted):
		f.Code = ui.ExitUsage
		return f.Hint("--count %d, if no shard is missing here; else what your program counts by", uncounted.Highest+1)
	case errors.As(err, &layout):
		return f.Hint("--layout '%s', if that is the layout of all", layout.Is)
	case errors.As(err, &busy):
		return f.Hint("end what holds it, or give it more time: --lock-wait 10m")
	}
	return f
}

// warnOfOthers says which functions make ids too, and stay as they are, and how they are taken over. Of many the first of each name is said.
func warnOfOthers(cmd *cobra.Command, a *setup.Adoption) {
	count, first := make(map[string]int), make(map[string]string)
	var names []string
	for _, s := range a.Servers {
		for _, f := range s.Others {
			if count[f.Name]++; count[f.Name] > 1 {
				continue
			}
			names = append(names, f.Name)
			first[f.Name] = fmt.Sprintf("server %s: %s.%s() makes ids too, stays as it is, and may repeat them", s.Server, f.Schema, f.Name)
			first[f.Name] += "; to take it over too, once this is done: " + hinter{cmd: cmd}.compose("firn shard adopt --function "+f.Name)
		}
	}
	for _, name := range names {
		more := ""
		if n := count[name] - 1; n > 0 {
			more = fmt.Sprintf(" (and %s more)", phrase.Plural(n, "schema"))
		}
		ui.PrintWarning(cmd.ErrOrStderr(), "%s%s", first[name], more)
	}
}

// An adoptedLine is a schema that is taken over, as --json prints it.
type adoptedLine struct {
	Server   string   `json:"server"`
	Shard    int64    `json:"shard"`
	Schema   string   `json:"schema"`
	Function string   `json:"function"`
	Sequence string   `json:"old_sequence"`
	Columns  []string `json:"columns"`
	Roles    []string `json:"roles"`
	DryRun   bool     `json:"dry_run,omitempty"`
}

func printAdoption(out io.Writer, a *setup.Adoption, dryRun, asJSON bool) error {
	var lines []adoptedLine
	for _, s := range a.Servers {
		for _, one := range s.Schemas {
			l := adoptedLine{s.Server, one.Shard, one.Schema, one.Function, one.Sequence, []string{}, append([]string{}, one.Grantees...), dryRun}
			for _, c := range one.Columns {
				l.Columns = append(l.Columns, c.String())
			}
			lines = append(lines, l)
		}
	}
	if asJSON {
		return ui.EmitJSON(out, lines...)
	}
	if a.Steps() == 0 {
		_, err := fmt.Fprintln(out, "nothing is left to take over")
		return err
	}
	header := []string{"SERVER", "SHARD", "SCHEMA", "FUNCTION", "ENDS", "ABOVE IDS IN", "ROLES"}
	if err := ui.Emit(out, false, header, lines, func(l adoptedLine) []any {
		return []any{l.Server, l.Shard, l.Schema, l.Function, l.Sequence, phrase.Listed(l.Columns), phrase.Listed(l.Roles)}
	}); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return printCluster(out, a.Plan)
}
