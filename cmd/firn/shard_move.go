package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsMove() *cobra.Command {
	var o shardsMove
	cmd := &cobra.Command{
		Use:   "move [LIST] --to SERVER",
		Short: "Move shards to another server while they are in use",
		Long: `Move shards to another server while they are in use. At any instant one server serves a
shard, or, while it changes over, none: firn shard status says which, how far the copy is,
and what to type.

Rows are copied by logical replication, the copy is compared with the original, and then each shard changes over:
for a moment, less than a tenth of a second as a rule, nobody can write to it. Programs
that use the library follow; what they were doing is done again on the new server.

A shard changes over only in a moment in which nobody has had a lock on its tables for
longer than 30 ms. If no such moment comes within --lock-wait, it says which session is in the way.

Broken off at any moment, it continues where it stopped when it is run again, from any host
that reaches both servers. Until a shard has changed over, firn shard abort gives the
move up. After that the old copy is kept up to date: firn shard revert goes back to it,
and firn shard finish drops it.

While it is copied, the server that has the shards keeps the WAL that it writes. With
--max-wal the move stops where that is too much; PostgreSQL continues the copy, until
firn shard pause stops it or firn shard abort drops it.

The exit code is 3 if something speaks against the move or rows differ, and 1 if it came to
no end. With --json there is an object for each shard that is where it was to go.

Needed: wal_level = logical on both servers, a superuser (or, from PostgreSQL 16 on, a
member of pg_create_subscription), pg_dump of the source's version or newer here, and
that the servers reach each other as this host reaches them, or as --address says.`,
		Example: `  firn shard move 17 --to b --dry-run
  firn shard move 17-40,99 --to b
  firn shard move --from a --to b
  firn shard move 17 --to b --address a=postgres://firn@10.0.0.1/app --address b=postgres://firn@10.0.0.2/app`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			list, err := o.listOf(ctx, cmd, args)
			if err != nil {
				return err
			}
			return o.run(ctx, cmd, list)
		},
	}
	addServers(cmd)
	o.addFlags(cmd)
	o.addFrom(cmd, "move all shards that this server serves")
	cmd.Flags().StringVar(&o.to, "to", "", "the server that they move to")
	o.addMaxWAL(cmd)
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "say what would be done, and do nothing")
	return cmd
}

type shardsMove struct {
	lost    []string // the values of --gone
	from    string   // in place of a list: all shards of that server
	to      string
	gone    string
	dry     bool
	yes     bool
	options move.Options
	members []string // of the cluster, as the servers say
}

func (o *shardsMove) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&o.options.LockWait, "lock-wait", time.Minute, "how long a shard may be in use by long transactions before the move stops")
	flags.DurationVar(&o.options.Stall, "stall", 2*time.Minute, "how long a copy may make no progress before the move stops")
	flags.StringSliceVar(&o.options.Consumers, "consumers-know", nil, "a `PUBLICATION` with tables of the shards whose consumers know of the move, and read from the other server too")
	o.addReach(cmd)
}

func (o *shardsMove) addMaxWAL(cmd *cobra.Command) {
	cmd.Flags().Var((*byteSize)(&o.options.MaxWAL), "max-wal", "stop where the server that has the shards keeps more WAL than this for the copy, such as 10GB (no limit)")
}

func (o *shardsMove) addReach(cmd *cobra.Command) {
	cmd.Flags().StringToStringVar(&o.options.Addresses, "address", nil, "how the other server reaches this one, as `SERVER=URL` (as this host does)")
	cmd.Flags().Lookup("address").DefValue = "" // none is shown
}

func (o *shardsMove) run(ctx context.Context, cmd *cobra.Command, list string) error {
	servers, shards, err := o.find(ctx, cmd, list)
	if err != nil {
		return notBegun(ctx, cmd, err)
	}
	if o.to == "" {
		return ui.Bad("--to is missing").Hint("firn shard move %s --to SERVER", list)
	}
	if !slices.ContainsFunc(servers, func(s topology.Server) bool { return s.Name == o.to }) {
		return o.unnamed(o.to, servers)
	}
	jobs, err := move.Jobs(ctx, servers, shards, o.to)
	if err != nil {
		return notBegun(ctx, cmd, o.jobsFailure(ctx, servers, err))
	}
	if err := o.plan(ctx, cmd, jobs, list); err != nil || o.dry {
		if err == nil && len(jobs) == 0 && !wantsJSON(cmd) {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "there is nothing to do: they are there")
		}
		return notBegun(ctx, cmd, err)
	}
	moved, err := o.each(ctx, cmd, move.Split(jobs), (*move.Mover).Move)
	return o.report(ctx, cmd, carried{servers, shards, phrase.Numbers(inJobs(jobs)), "firn shard move " + list + " --to " + o.to, moved, err})
}

// inJobs are the shards of jobs, in order.
func inJobs(jobs []move.Job) (all []int64) {
	for _, l := range jobs {
		all = append(all, l.Shards...)
	}
	slices.Sort(all)
	return all
}

// find are the servers, and the shards of a list.
func (o *shardsMove) find(ctx context.Context, cmd *cobra.Command, list string) ([]topology.Server, []int64, error) {
	var asked shardNumbers
	if err := asked.Set(list); err != nil {
		return nil, nil, ui.Bad("%w", err).Hint("firn shard %s 17, or 17-40,99", cmd.Name())
	}
	servers, err := shardServers(cmd)
	if err != nil {
		return nil, nil, err
	}
	for name := range o.options.Addresses {
		if !slices.ContainsFunc(servers, func(s topology.Server) bool { return s.Name == name }) {
			return nil, nil, unknownServer(name, servers)
		}
	}
	m, err := mapOf(ctx, servers)
	if err != nil {
		return nil, nil, err
	}
	o.members = m.Servers
	if err := asked.beyond(m); err != nil {
		return nil, nil, err
	}
	switch unknown := asked.unknown(m); {
	case len(unknown) > 0 && len(m.Missing) > 0:
		return nil, nil, unaskedFailure(m.Missing, "no server that was asked knows shard %s", phrase.Numbers(unknown))
	case len(unknown) > 0:
		return nil, nil, ui.Bad("no server has shard %s", phrase.Numbers(unknown)).Hint("firn shard ls")
	}
	var shards []int64
	for _, r := range m.Routes {
		if asked.has(r.Shard) {
			shards = append(shards, r.Shard)
		}
	}
	return servers, shards, nil
}

// unnamed is the error of a server that the command does not know. It may be in the cluster.
func (o *shardsMove) unnamed(name string, servers []topology.Server) error {
	if !slices.Contains(o.members, name) {
		return unknownServer(name, servers)
	}
	return ui.Bad("server %s is in the cluster, and its address is not known here", name).Hint("%s", check.UnaskedDo([]string{name}))
}

// jobsFailure is an error of [move.Jobs]. Where the shard is in another move, it names the commands
// that end that one, by where the shard is now.
func (o *shardsMove) jobsFailure(ctx context.Context, servers []topology.Server, err error) *ui.Failure {
	var under *move.UnderwayError
	switch {
	case errors.Is(err, move.ErrNoMember):
		return noMember(ctx, servers, o.to, err)
	case !errors.As(err, &under):
		return moveFailure(err)
	}
	f := ui.Failed("%w", err)
	then := ""
	if o.to != under.Source {
		then = fmt.Sprintf("; then: firn shard move %d --to %s", under.Shard, o.to)
	}
	if one := oneWay(ctx, servers, under.Shard); one != nil {
		for _, a := range one.Next() {
			f = f.Hint("%s", a)
		}
		return f
	}
	switch under.Serves {
	case under.Target:
		return f.Hint("it has arrived on %s; to take it back to %s: firn shard revert %d", under.Target, under.Source, under.Shard).
			Hint("to stay on %s, and drop the copy on %s: firn shard finish %d%s", under.Target, under.Source, under.Shard, then)
	case under.Source:
		return f.Hint("it is still on %s; to stay there: firn shard abort %d%s", under.Source, under.Shard, then).
			Hint("to continue to %s: firn shard move %d --to %s", under.Target, under.Shard, under.Target)
	}
	return f.Hint("no server serves it now; what opens it says: firn shard status")
}

// oneWay is the move of the first of some shards that is not free to go to either server: its two copies are not
// alike any more, or one of the servers knows nothing of the move. Where no shard is such, it is nil.
func oneWay(ctx context.Context, servers []topology.Server, shards ...int64) *move.Move {
	moves, _ := move.Moves(ctx, servers)
	for _, n := range shards {
		for _, f := range moves {
			if slices.Contains(f.Parted, n) || f.Phase == move.HalfLeft && slices.Contains(f.Shards, n) {
				f = f.Of([]int64{n})
				return &f
			}
		}
	}
	return nil
}

// mapOf is what all servers say of their shards.
func mapOf(ctx context.Context, servers []topology.Server) (*topology.Map, error) {
	m, _, err := check.ReadMap(ctx, servers)
	return m, addressFailure(err)
}

// each moves the shards of all jobs, one after the other.
func (o *shardsMove) each(ctx context.Context, cmd *cobra.Command, jobs []move.Job, way func(*move.Mover, context.Context, []int64) ([]move.Moved, error)) ([]movedLine, error) {
	var all []movedLine
	shards := 0
	for _, l := range jobs {
		shards += len(l.Shards)
	}
	for _, l := range jobs {
		var far atomic.Pointer[move.Progress]
		far.Store(&move.Progress{Phase: move.Preparing, Shards: shards, Done: len(all)})
		show := ui.ShowLine(true, cmd.ErrOrStderr(), func(time.Duration) string { return moveLine(*far.Load()) })
		options := o.options
		options.Progress = func(p move.Progress) {
			p.Shards, p.Done = shards, p.Done+len(all)
			far.Store(&p)
		}
		m := move.New(l.Source, l.Target, &options)
		moved, err := way(m, ctx, l.Shards)
		m.Close()
		show.Stop()
		from, to := l.Source.Name, l.Target.Name
		if o.to == "" {
			from, to = to, from
		}
		for _, one := range moved {
			all = append(all, newMovedLine(one, from, to))
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
