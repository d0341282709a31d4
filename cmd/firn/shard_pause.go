package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

func newShardsPause() *cobra.Command {
	var o shardsMove
	cmd := &cobra.Command{
		Use:   "pause [LIST]",
		Short: "Stop moves that have not switched servers, until resume",
		Long: `Pause moves: the copies do not follow any more, and no shard changes over, until firn shard
resume. A firn shard move or rebalance that is at work on such a move stops with an error, and
one that is started later refuses to continue it. Shards that were moved together are
paused together; those of them that have changed over stay where they are.

A table that is being copied when its move is paused is copied anew after resume. Meanwhile the
server that has the shards keeps all WAL that it writes, until its disk is full, or until
max_slot_wal_keep_size, after which the move can only be aborted. firn shard status says how
much that is. firn shard abort ends a paused move.`,
		Example: `  firn shard pause 17
  firn shard pause --from a`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.pause(cmd.Context(), cmd, args, (*move.Mover).Pause)
		},
	}
	addServers(cmd)
	o.addFrom(cmd, "all moves from this server")
	return cmd
}

func newShardsResume() *cobra.Command {
	var o shardsMove
	cmd := &cobra.Command{
		Use:   "resume [LIST]",
		Short: "End the pause of moves; shard move then continues them",
		Long: `End what firn shard pause has begun: the copies follow again. Shards change over when
somebody runs firn shard move, whose command is printed.`,
		Example: `  firn shard resume 17
  firn shard resume --from a`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.pause(cmd.Context(), cmd, args, (*move.Mover).Resume)
		},
	}
	addServers(cmd)
	o.addFrom(cmd, "all moves from this server")
	return cmd
}

// pause pauses or resumes moves.
func (o *shardsMove) pause(ctx context.Context, cmd *cobra.Command, args []string, do func(*move.Mover, context.Context, []int64) ([]int64, error)) error {
	list, err := o.listOf(ctx, cmd, args)
	if err != nil {
		return err
	}
	servers, _, jobs, err := o.underway(ctx, cmd, list)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		return ui.Failed("shard %s is in no move", list).Hint("firn shard status")
	}
	for _, l := range jobs {
		m := move.New(l.Source, l.Target, &o.options)
		done, err := do(m, ctx, l.Shards)
		m.Close()
		var stuck *move.StuckError
		switch {
		case errors.As(err, &stuck):
			if one := oneWay(ctx, servers, stuck.Shard); one != nil { // a mover may be unable to continue it
				return ui.Failed("%w", err).Hint("%s", nextOf(ctx, servers, *one))
			}
			return moveFailure(err)
		case err != nil:
			return moveFailure(err).Hint("to do the rest: firn shard %s %s", cmd.Name(), list)
		}
		if err := printPaused(ctx, cmd, servers, l, done); err != nil {
			return err
		}
	}
	return nil
}

// A pausedLine is a move that was paused or resumed, as --json prints it.
type pausedLine struct {
	From   string           `json:"from"`
	To     string           `json:"to"`
	Shards []int64          `json:"shards"`
	Paused bool             `json:"paused"`
	WAL    map[string]int64 `json:"wal_bytes,omitempty"` // that servers keep for the move
	Limit  string           `json:"max_slot_wal_keep_size,omitempty"`
	Do     string           `json:"do"`
}

// printPaused prints what was paused or resumed, what servers keep for it, and what to type next.
func printPaused(ctx context.Context, cmd *cobra.Command, servers []topology.Server, l move.Job, shards []int64) error {
	line := pausedLine{From: l.Source.Name, To: l.Target.Name, Shards: shards, Paused: cmd.Name() == "pause"}
	line.Do = hinter{cmd: cmd}.compose(fmt.Sprintf("to continue: firn shard move %s --to %s", phrase.Numbers(shards), line.To))
	moves, err := move.Moves(ctx, servers)
	if err != nil {
		return moveFailure(err)
	}
	for _, f := range moves {
		if slices.Contains(f.Shards, shards[0]) {
			line.WAL = f.WAL
			if f.Paused {
				line.Do = hinter{cmd: cmd}.compose(nextOf(ctx, servers, f))
			}
		}
	}
	if line.Paused {
		line.Limit = slotLimit(ctx, l.Source)
	}
	out := cmd.OutOrStdout()
	if wantsJSON(cmd) {
		return ui.EmitJSON(out, line)
	}
	if !line.Paused {
		_, err = fmt.Fprintf(out, "the move of shard %s from %s to %s is resumed\n%s\n", phrase.Numbers(shards), line.From, line.To, line.Do)
		return err
	}
	limit := "until its disk is full"
	if line.Limit != "-1" && line.Limit != "" {
		limit = "up to max_slot_wal_keep_size = " + line.Limit + ", and then the move can only be aborted"
	}
	_, err = fmt.Fprintf(out, "the move of shard %s from %s to %s is paused\nserver %s keeps %s of WAL for it now, and all that it writes from now on, %s\n%s\n",
		phrase.Numbers(shards), line.From, line.To, line.From, phrase.Bytes(line.WAL[line.From]), limit, line.Do)
	return err
}

// slotLimit is how much WAL a server keeps for slots at most, "" where it does not say.
func slotLimit(ctx context.Context, s topology.Server) (limit string) {
	// What fails here was paused all the same.
	_ = s.Ask(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT current_setting('max_slot_wal_keep_size')").Scan(&limit)
	})
	return limit
}

// ofPause reports whether a move stopped because it is paused, or because a server keeps too much WAL for it.
func ofPause(err error) bool {
	return errors.As(err, new(*move.PausedError)) || errors.As(err, new(*move.WALError))
}

// pauseHints adds what to do about such an error.
func pauseHints(f *ui.Failure, err error) *ui.Failure {
	var paused *move.PausedError
	var much *move.WALError
	if errors.As(err, &paused) {
		goOn, give := paused.Do()
		return f.Hint("to continue: %s", goOn).Hint("to abort what has not changed over: %s", give)
	}
	if !errors.As(err, &much) {
		return f
	}
	return f.Hint("to let the server drop it: firn shard abort %s", phrase.Numbers(much.Shards)).
		Hint("to continue all the same: firn shard move %s --to %s, with a larger --max-wal or without it", phrase.Numbers(much.Shards), much.Target)
}
