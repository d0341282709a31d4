package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/move"
)

// This file says how moves stand that a signal has broken off.

// lastLook is how long is waited for what servers say of that. A second signal ends the
// process before.
const lastLook = 5 * time.Second

// sayBrokenOff says how the moves of shards stand, or all moves, what is safe, and what to
// type next.
func sayBrokenOff(ctx context.Context, cmd *cobra.Command, servers []shard.Server, shards []int64, again string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	flights, err := move.Flights(ctx, servers)
	var away *shard.ServerError
	if errors.As(err, &away) {
		printWarning(cmd.ErrOrStderr(), "server %s does not say how far it is", away.Server)
	}
	flights = slices.DeleteFunc(flights, func(f move.Flight) bool {
		return shards != nil && !slices.ContainsFunc(f.Shards, func(n int64) bool { return slices.Contains(shards, n) })
	})
	fmt.Fprint(cmd.ErrOrStderr(), brokenText(flights, again))
}

// warnNowhere says which shards no server serves after a move that has failed.
func warnNowhere(ctx context.Context, cmd *cobra.Command, servers []shard.Server, shards []int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	flights, _ := move.Flights(ctx, servers) // who does not answer is in the error
	for _, f := range flights {
		ours := slices.ContainsFunc(f.Shards, func(n int64) bool { return slices.Contains(shards, n) })
		if waiting := f.Nowhere(); ours && len(waiting) > 0 && (f.Phase == move.Between || f.Phase == move.Unknown) {
			printWarning(cmd.ErrOrStderr(), "no server that answers serves shard %s: programs wait for it", ranges(waiting))
		}
	}
}

// brokenText is what sayBrokenOff prints.
func brokenText(flights []move.Flight, again string) string {
	var b strings.Builder
	if len(flights) == 0 {
		fmt.Fprintln(&b, "Broken off: no move is under way, the shards serve where they are.")
	}
	var nowhere, abort, finish []int64
	unknown := false
	for _, f := range flights {
		left := stays(f)
		fmt.Fprintf(&b, "Broken off: %s\n", standing(f, left))
		switch f.Phase {
		case move.Between:
			nowhere = append(nowhere, left...)
		case move.HalfLeft: // it has just begun, or is being ended: to go on is right
		case move.Unknown:
			unknown = true // to go on is right once the server answers
		case move.Arrived:
			finish = append(finish, f.Shards...)
		default:
			abort = append(abort, left...)
			finish = append(finish, f.Moved...)
		}
	}
	if unknown {
		fmt.Fprintln(&b, "Start the server that does not answer, or check its address.")
	}
	fmt.Fprintf(&b, "To go on, from any host:  %s\n", again)
	if unknown {
		return b.String()
	}
	if len(abort) > 0 {
		slices.Sort(abort)
		fmt.Fprintf(&b, "To give it up:            firn shards abort %s\n", ranges(abort))
	}
	if len(finish) > 0 && len(nowhere)+len(abort) == 0 {
		slices.Sort(finish)
		fmt.Fprintf(&b, "To drop the old copies:   firn shards finish %s\n", ranges(finish))
	}
	return b.String()
}

// stays are the shards of a move that have not moved.
func stays(f move.Flight) []int64 {
	return slices.DeleteFunc(slices.Clone(f.Shards), func(n int64) bool { return slices.Contains(f.Moved, n) })
}

// standing is how one move stands, and what of it serves.
func standing(f move.Flight, left []int64) string {
	moved := ""
	if len(f.Moved) > 0 && len(left) > 0 {
		moved = fmt.Sprintf("%s on %s already; ", serves(f.Moved), f.Target)
	}
	const next = "\n            "
	switch f.Phase {
	case move.Between:
		return moved + nowhereText(left) + "," + next + "and programs wait for it. Go on at once."
	case move.Arrived:
		return fmt.Sprintf("%s on %s."+next+"The old copies on %s are kept up to date.", serves(f.Shards), f.Target, f.Source)
	case move.HalfLeft:
		return fmt.Sprintf("of the move of shard %s %s: it has just begun, or is being ended."+next+"The shards serve.", ranges(f.Shards), f.Problem)
	case move.Unknown:
		return fmt.Sprintf("how far shard %s is from %s to %s nobody can say: %s.", ranges(f.Shards), f.Source, f.Target, f.Problem)
	case move.Begun:
		return fmt.Sprintf("%s%s on %s."+next+"Nothing is copied to %s yet.", moved, serves(left), f.Source, f.Target)
	}
	return fmt.Sprintf("%s%s on %s."+next+"%s has about %s of %s rows, and goes on copying by itself.", moved, serves(left), f.Source, f.Target, count(f.Rows), count(f.RowsTotal))
}

// standsText says which servers serve the shards of a move.
func standsText(f move.Flight) string {
	left := stays(f)
	var parts []string
	if len(f.Moved) > 0 {
		parts = append(parts, serves(f.Moved)+" on "+f.Target)
	}
	switch {
	case len(left) == 0:
	case f.Phase == move.Between:
		parts = append(parts, nowhereText(left))
	case f.Phase == move.Unknown:
		if len(f.Kept) > 0 {
			parts = append(parts, serves(f.Kept)+" on "+f.Source)
		}
		if left = f.Nowhere(); len(left) > 0 {
			parts = append(parts, "no server that answers serves shard "+ranges(left))
		}
	case f.Phase == move.HalfLeft:
		parts = append(parts, "shard "+ranges(left))
	default:
		parts = append(parts, serves(left)+" on "+f.Source)
	}
	return strings.Join(parts, ", ")
}

// nowhereText says of shards that have not moved that one was let go and not opened yet.
func nowhereText(left []int64) string {
	if len(left) == 1 {
		return fmt.Sprintf("shard %d is on no server", left[0])
	}
	return "one of the shards " + ranges(left) + " is on no server"
}

// nextText says what to type next of a move.
func nextText(f move.Flight) string {
	list := ranges(f.Shards)
	switch f.Phase {
	case move.Between:
		if f.Back {
			return fmt.Sprintf("programs wait until it is opened: firn shards revert %s", list)
		}
		return fmt.Sprintf("programs wait until it is opened: firn shards move %s --to %s", list, f.Target)
	case move.Arrived:
		if f.Back {
			return fmt.Sprintf("to go on with the revert that was begun: firn shards revert %s; to stay on %s, and drop the copies on %s: firn shards finish %[1]s", list, f.Target, f.Source)
		}
		return fmt.Sprintf("to drop the old copies: firn shards finish %s; to go back: firn shards revert %[1]s", list)
	case move.HalfLeft:
		switch {
		case f.Forgot == f.Target && len(f.Kept) > 0: // it has just begun
			return fmt.Sprintf("to go on: firn shards move %s --to %s; to give up: firn shards abort %[1]s", list, f.Target)
		case f.Forgot == f.Target:
			return fmt.Sprintf("to end it: firn shards finish %s", list)
		case f.Forgot == f.Source && len(f.Moved) == 0:
			return fmt.Sprintf("to end it: firn shards abort %s", list)
		}
		return "to end it, where nobody is at work on it: firn shards doctor --clean"
	case move.Unknown:
		return "start the server that does not answer, or check its address; what to type then says: firn shards status; if it is lost for good: " + lostPage
	}
	if left := stays(f); len(left) < len(f.Shards) {
		return fmt.Sprintf("to go on: firn shards move %s --to %s; to give up what has not moved: firn shards abort %s", list, f.Target, ranges(left))
	}
	return fmt.Sprintf("to go on: firn shards move %s --to %s; to give up: firn shards abort %[1]s", list, f.Target)
}

func serves(shards []int64) string {
	if len(shards) == 1 {
		return fmt.Sprintf("shard %d serves", shards[0])
	}
	return fmt.Sprintf("shards %s serve", ranges(shards))
}
