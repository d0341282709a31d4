package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// This file says how moves stand that a signal has broken off.

// lastLook is how long is waited for what servers say of that. A second signal ends the
// process before.
const lastLook = 5 * time.Second

// answerTime is how long is waited for it after a move that has failed.
const answerTime = 20 * time.Second

// sayBrokenOff says how the moves of shards stand, or all moves, what is safe, and what to
// type next.
func sayBrokenOff(ctx context.Context, cmd *cobra.Command, servers []topology.Server, shards []int64, again string) {
	ui.Tell(cmd.Context(), nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	moves, err := move.Moves(ctx, servers)
	var away *topology.ServerError
	if errors.As(err, &away) {
		ui.PrintWarning(cmd.ErrOrStderr(), "server %s does not say how far it is", away.Server)
	}
	moves = slices.DeleteFunc(moves, func(f move.Move) bool {
		return shards != nil && !slices.ContainsFunc(f.Shards, func(n int64) bool { return slices.Contains(shards, n) })
	})
	ui.PrintNote(cmd.ErrOrStderr(), "%s", strings.TrimSuffix(hinter{cmd: cmd}.compose(brokenText(moves, shards, again)), "\n"))
}

// notBegun is the error of a command that has only looked so far. Where a signal ended it, it says
// so, and how things stand.
func notBegun(ctx context.Context, cmd *cobra.Command, err error) error {
	if err != nil && ctx.Err() != nil {
		ui.Tell(ctx, nil)
		ui.PrintNote(cmd.ErrOrStderr(), "Broken off before anything was begun: nothing has changed.\n%s",
			hinter{cmd: cmd}.compose("To see the moves that are under way: firn shard status"))
	}
	return err
}

// warnNowhere says which shards no server serves after a move that has failed, and returns the
// moves that let them go. The error says that a server could not be asked.
func warnNowhere(ctx context.Context, cmd *cobra.Command, servers []topology.Server, shards []int64) (waiting []move.Move, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	moves, err := move.Moves(ctx, servers)
	for _, f := range moves {
		ours := slices.ContainsFunc(f.Shards, func(n int64) bool { return slices.Contains(shards, n) })
		if nowhere := f.Nowhere(); ours && !f.Refused() && len(nowhere) > 0 && (f.Phase == move.Between || f.Phase == move.Unknown) {
			ui.PrintWarning(cmd.ErrOrStderr(), "no server that answers serves shard %s: programs wait for it", phrase.Numbers(nowhere))
			waiting = append(waiting, f)
		}
	}
	return waiting, err
}

// brokenText is what sayBrokenOff prints.
func brokenText(moves []move.Move, shards []int64, again string) string {
	var b strings.Builder
	if words := strings.Fields(again); len(words) > 2 && words[2] == "revert" {
		if done := arrivedText(moves, shards, true); done != "" {
			return "Broken off when the revert was done.\n" + done
		}
	}
	if len(moves) == 0 {
		fmt.Fprintln(&b, "Broken off: no move is under way, the shards serve where they are.")
	}
	var nowhere, abort, finish []int64
	unknown, first := false, ""
	for _, f := range moves {
		left := f.Stays()
		fmt.Fprintf(&b, "Broken off: %s\n", standing(f, left))
		switch f.Phase {
		case move.Between:
			nowhere = append(nowhere, left...)
		case move.HalfLeft: // it has just begun, or is being ended: to go on is right
		case move.Unknown:
			unknown, first = true, cmp.Or(first, refusedDo(f)) // to go on is right once the server answers
		case move.Arrived:
			if len(f.Back) == 0 {
				finish = append(finish, f.Shards...)
			}
		default:
			if len(f.Back) > 0 {
				continue // it is on its way back: to go on is right
			}
			abort = append(abort, left...)
			finish = append(finish, f.Moved...)
		}
	}
	switch {
	case first != "":
		fmt.Fprintf(&b, "First, %s\n", first)
	case unknown:
		fmt.Fprintln(&b, "Start the server that does not answer, or check its address.")
	}
	fmt.Fprintf(&b, "To continue, from any host: %s\n", again)
	if unknown {
		return b.String()
	}
	if len(abort) > 0 {
		slices.Sort(abort)
		fmt.Fprintf(&b, "To abort it:                firn shard abort %s\n", phrase.Numbers(abort))
	}
	if len(finish) > 0 && len(nowhere)+len(abort) == 0 {
		slices.Sort(finish)
		fmt.Fprintf(&b, "To drop the old copies:     firn shard finish %s\n", phrase.Numbers(finish))
	}
	return b.String()
}

// arrivedText says, a line for each move, what moves have left whose shards are where they were to be:
// on the target, or back on the source. It is empty where nothing is left, or one of the shards is not there.
func arrivedText(moves []move.Move, shards []int64, back bool) string {
	var b strings.Builder
	for _, f := range moves {
		there := f.Moved
		if back {
			there = f.Kept
		}
		for _, n := range f.Shards {
			if slices.Contains(shards, n) && !slices.Contains(there, n) {
				return ""
			}
		}
		if f.Phase == move.Between || f.Phase == move.Unknown {
			return ""
		}
		on, other := f.Target, f.Source
		if back {
			on, other = other, on
		}
		fmt.Fprintf(&b, "%s on %s. Server %s still has a copy, and both servers keep what copies to it; %s\n", capital(serves(there)), on, other, nextText(f))
	}
	return b.String()
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// standing is how one move stands, and what of it serves.
func standing(f move.Move, left []int64) string {
	moved := ""
	if len(f.Moved) > 0 && len(left) > 0 {
		moved = fmt.Sprintf("%s on %s already; ", serves(f.Moved), f.Target)
	}
	const next = "\n            "
	switch f.Phase {
	case move.Between:
		return standsText(f) + "," + next + "and programs wait for it. Continue at once."
	case move.Arrived:
		return fmt.Sprintf("%s on %s."+next+"The old copies on %s are kept up to date.", serves(f.Shards), f.Target, f.Source)
	case move.HalfLeft:
		return fmt.Sprintf("of the move of shard %s %s: it has just begun, or is being ended."+next+"The shards serve.", phrase.Numbers(f.Shards), f.Problem)
	case move.Unknown:
		return fmt.Sprintf("how far shard %s is from %s to %s nobody can say: %s.", phrase.Numbers(f.Shards), f.Source, f.Target, f.Problem)
	case move.Begun:
		return fmt.Sprintf("%s%s on %s."+next+"Nothing is copied to %s yet.", moved, serves(left), f.Source, f.Target)
	}
	return fmt.Sprintf("%s%s on %s."+next+"%s has about %s of %s rows, and PostgreSQL continues the copy.", moved, serves(left), f.Source, f.Target, phrase.Count(f.Rows), phrase.Count(f.RowsTotal))
}

// standsText says which servers serve the shards of a move.
func standsText(f move.Move) string {
	left := f.Stays()
	var parts, lost []string
	if len(f.Twice) > 0 {
		return twiceStands(f)
	}
	for _, o := range f.Lost {
		lost = append(lost, strconv.FormatInt(o.Shard, 10))
	}
	if len(lost) > 0 && f.Phase != move.Between {
		return "no server serves shard " + strings.Join(lost, ",")
	}
	if len(f.Moved) > 0 {
		parts = append(parts, serves(f.Moved)+" on "+f.Target)
	}
	switch {
	case len(left) == 0:
	case f.Phase == move.Between:
		if len(f.Kept) > 0 {
			parts = append(parts, serves(f.Kept)+" on "+f.Source)
		}
		parts = append(parts, "no server serves shard "+phrase.Numbers(f.Waiting))
	case f.Phase == move.Unknown:
		if len(f.Kept) > 0 {
			parts = append(parts, serves(f.Kept)+" on "+f.Source)
		}
		if left = f.Nowhere(); len(left) > 0 {
			who := "no server that answers serves shard "
			switch {
			case lacksRight(f.Err):
				who = "this role cannot see which server serves shard "
			case f.Refused():
				who = "no server that could be asked serves shard "
			case f.Unasked != "":
				who = "no server that was asked serves shard "
			}
			parts = append(parts, who+phrase.Numbers(left))
		}
	case f.Phase == move.HalfLeft && len(f.Kept) > 0:
		parts = append(parts, serves(f.Kept)+" on "+f.Source)
	case f.Phase == move.HalfLeft:
		parts = append(parts, fmt.Sprintf("%s has forgotten the move of shard %s", f.Forgot, phrase.Numbers(left)))
	default:
		parts = append(parts, serves(left)+" on "+f.Source)
	}
	return strings.Join(parts, ", ")
}

// twiceStands says of which shards of a move more than one server says that it serves them.
func twiceStands(f move.Move) string {
	texts := make([]string, len(f.Twice))
	for i, found := range f.Twice {
		texts[i] = found.Text
	}
	return strings.Join(texts, ", ")
}

// nextText says what to type next of a move.
func nextText(f move.Move) string {
	all := f.Next()
	if len(all) == 0 {
		if do := refusedDo(f); do != "" {
			return do
		}
		return "start the server that does not answer, or check its address; what to type then says: firn shard status; if it is permanently lost: " + lostPage
	}
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = a.String()
	}
	return strings.Join(texts, "; ")
}

// refusedDo says what to do about a move of which a server that runs does not say how far it is: the
// address is of another database, or the server refuses; else it is empty.
func refusedDo(f move.Move) string {
	switch {
	case f.Unasked != "":
		return check.UnaskedDo([]string{f.Unasked}) + ". If it is permanently lost: " + lostPage
	case f.Standby != "":
		return check.ToPrimary(f.Standby)
	case lacksRight(f.Err):
		return whoseMove + ": " + lookAgain
	case f.Refused():
		return cmp.Or(refusalHint(f.Err), "correct the address of the server that refuses; then run the same command again")
	}
	return ""
}

func serves(shards []int64) string {
	if len(shards) == 1 {
		return fmt.Sprintf("shard %d serves", shards[0])
	}
	return fmt.Sprintf("shards %s serve", phrase.Numbers(shards))
}
