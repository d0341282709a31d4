package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsAbort() *cobra.Command {
	var o shardsMove
	return o.ending(&cobra.Command{
		Use:   "abort [LIST]",
		Short: "Cancel moves that have not switched servers",
		Long: `Abort moves of shards that have not changed over: what was copied is dropped, nothing is
left of the move on both servers, and the shards stay where they are, and serve
meanwhile. Shards that were moved together are aborted together; those of them that have
changed over stay where they are now: firn shard revert takes them back.

Where the server that they were to come to is permanently gone, --gone says so: the one that
has them does without it, and should it come back after all, it opens nothing. Nothing is
done while it answers.`,
		Example: `  firn shard abort 17
  firn shard abort 17 --gone b`,
	}, "aborted", "the server that --gone names is permanently gone", (*move.Mover).Abort)
}

func newShardsFinish() *cobra.Command {
	var o shardsMove
	return o.ending(&cobra.Command{
		Use:   "finish [LIST]",
		Short: "Drop the old copies of moved shards; revert is then impossible",
		Long: `Drop the copies that shards have left on the server that they moved from, which are kept
up to date until then. It says how large they are and asks, or wants --yes: afterwards the
shards cannot be taken back. A program that still reads the old copy gets an error.

A copy that firn shard reopen has left, when another server opened the shard, is dropped
too. Its rows are compared first with those of the server that serves the shard: if that
server lacks any, or has another content of it, nothing is dropped without --drop-rows-of.

Where that server is permanently gone, --gone says so: nothing is kept for it any more.`,
		Example: `  firn shard finish 17
  firn shard finish 17-40 --yes
  firn shard finish --from a
  firn shard finish 17 --gone a`,
	}, "finished", "drop the old copies", (*move.Mover).Finish)
}

// ending makes a command of one that ends moves.
func (o *shardsMove) ending(cmd *cobra.Command, what, yes string, end func(*move.Mover, context.Context, []int64) ([]int64, error)) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		list, err := o.listOf(ctx, cmd, args)
		if err != nil {
			return err
		}
		switch {
		case len(o.lost) > 1:
			return ui.Bad("--gone names one server here: the other server of the moves")
		case len(o.lost) == 1:
			o.gone = o.lost[0]
			return o.abandon(ctx, cmd, list, what)
		}
		return o.end(ctx, cmd, list, what, end)
	}
	o.addFrom(cmd, "all moves from this server")
	addServers(cmd)
	cmd.Flags().StringVar(&o.options.DropRowsOf, "drop-rows-of", "", "the server whose copy is dropped although a comparison found rows there that the server that serves lacks")
	addGone(cmd, &o.lost)
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask: "+yes)
	return cmd
}

// end ends moves.
func (o *shardsMove) end(ctx context.Context, cmd *cobra.Command, list, what string, end func(*move.Mover, context.Context, []int64) ([]int64, error)) error {
	servers, shards, jobs, err := o.underway(ctx, cmd, list)
	if err != nil {
		return err
	}
	var old []move.OldCopy
	if cmd.Name() == "finish" {
		if old, err = o.askToDrop(ctx, cmd, servers, shards, jobs); err != nil {
			return err
		}
	}
	if unasked := o.unasked(servers); len(jobs)+len(old) == 0 && len(unasked) > 0 {
		return unaskedFailure(unasked, "nobody can say whether a move of shard %s is unfinished", list)
	}
	if len(jobs) == 0 {
		if err := move.DropLeftovers(ctx, servers); err != nil {
			return moveFailure(err)
		}
	}
	var all []int64
	for _, l := range jobs {
		m := move.New(l.Source, l.Target, &o.options)
		ended, err := end(m, ctx, l.Shards)
		m.Close()
		all = append(all, ended...)
		if ctx.Err() != nil {
			ui.Tell(ctx, nil)
			ui.PrintWarning(cmd.ErrOrStderr(), "it was broken off, and the shards serve where they are; to continue: %s", hinter{cmd: cmd}.compose(fmt.Sprintf("firn shard %s %s", cmd.Name(), list)))
		}
		if errors.As(err, new(*move.StuckError)) || errors.As(err, new(*move.SurplusError)) || ofCopy(err) || lacksRight(err) { // it says what to do instead
			return moveFailure(err)
		} else if err != nil {
			return moveFailure(err).Hint("to continue: firn shard %s %s", cmd.Name(), list)
		}
	}
	if cmd.Name() == "abort" {
		if err := o.arrived(ctx, cmd, servers, shards, all); err != nil {
			return err
		}
	}
	for _, c := range old {
		if err := c.Drop(ctx, servers, o.options.DropRowsOf); err != nil {
			return moveFailure(err)
		}
	}
	return printEnded(cmd, all, old, what)
}

// arrived says which shards abort has left in their moves, because they have changed over. Where
// there is no other, nothing was aborted, which is an error.
func (o *shardsMove) arrived(ctx context.Context, cmd *cobra.Command, servers []topology.Server, shards, ended []int64) error {
	moves, err := move.Moves(ctx, servers)
	if err != nil {
		return moveFailure(err)
	}
	var notes []*ui.Failure
	for _, f := range moves {
		there := slices.DeleteFunc(slices.Clone(f.Moved), func(n int64) bool { return !slices.Contains(shards, n) || slices.Contains(ended, n) })
		if len(there) == 0 {
			continue
		}
		note := ui.Failed("shard %s has moved to %s: there is nothing to abort", phrase.Numbers(there), f.Target)
		for _, a := range f.Of(there).Next() {
			note = note.Hint("%s", a)
		}
		notes = append(notes, note)
	}
	if len(ended) == 0 && len(notes) == 1 {
		return notes[0]
	}
	for _, f := range notes {
		ui.PrintWarning(cmd.ErrOrStderr(), "%s; %s", f, hinter{cmd: cmd}.line(f))
	}
	if len(ended) == 0 && len(notes) > 0 {
		return ui.Failed("no move was aborted")
	}
	return nil
}

// askToDrop says which copies are dropped, and asks. It refuses before anything is done where one of the shards
// has no old copy that may be dropped. It returns the copies that are in no move any more.
func (o *shardsMove) askToDrop(ctx context.Context, cmd *cobra.Command, servers []topology.Server, shards []int64, jobs []move.Job) ([]move.OldCopy, error) {
	var drops []string
	say := func(on topology.Server, all []int64) error {
		bytes, err := check.CopyBytes(ctx, on, all)
		copies := "copy of shard "
		if len(all) > 1 {
			copies = "copies of shards "
		}
		drops = append(drops, fmt.Sprintf("the old %s%s on %s (%s)", copies, phrase.Numbers(all), on.Name, phrase.Bytes(bytes)))
		return err
	}
	for _, l := range jobs {
		m := move.New(l.Source, l.Target, &o.options)
		all, err := m.CheckFinish(ctx, l.Shards)
		m.Close()
		if err != nil {
			return nil, moveFailure(err)
		}
		if len(all) == 0 {
			continue
		}
		if err := say(l.Source, all); err != nil {
			return nil, err
		}
	}
	old, err := move.OldCopies(ctx, servers, func(n int64) bool { return slices.Contains(shards, n) })
	if err != nil {
		return nil, moveFailure(err)
	}
	for _, c := range old {
		if err := c.Check(ctx, servers, o.options.DropRowsOf); err != nil {
			return nil, moveFailure(err)
		}
		on := slices.IndexFunc(servers, func(s topology.Server) bool { return s.Name == c.Server })
		if err := say(servers[on], []int64{c.Shard}); err != nil {
			return nil, err
		}
	}
	if len(drops) == 0 || o.yes {
		return old, nil
	}
	question := "This drops " + strings.Join(drops, " and ") + ". Afterwards firn shard revert cannot take them back. Drop them?"
	return old, ui.MustAsk(ctx, cmd, question, "the same command with --yes")
}

// An endedLine is a shard whose move has ended, as --json prints it.
type endedLine struct {
	Shard int64 `json:"shard"`
}

// printEnded prints the shards whose moves have ended, and the copies that were dropped besides.
func printEnded(cmd *cobra.Command, all []int64, old []move.OldCopy, what string) error {
	out := cmd.OutOrStdout()
	if wantsJSON(cmd) {
		for _, c := range old {
			all = append(all, c.Shard)
		}
		var lines []endedLine
		for _, n := range all {
			lines = append(lines, endedLine{n})
		}
		return ui.EmitJSON(out, lines...)
	}
	if len(all)+len(old) == 0 {
		_, err := fmt.Fprintf(out, "nothing to %s: these shards are in no move\n", cmd.Name())
		return err
	}
	if len(all) > 0 {
		if _, err := fmt.Fprintf(out, "%s %s\n", phrase.Plural(len(all), "move"), what); err != nil {
			return err
		}
	}
	for _, c := range old {
		if _, err := fmt.Fprintf(out, "the old copy of shard %d on %s dropped\n", c.Shard, c.Server); err != nil {
			return err
		}
	}
	return nil
}
