package move

import (
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/check"
)

// An Advice is one thing that you can do next about a move.
type Advice struct {
	For  string   // what it brings about, such as "to drop the old copies"
	Type []string // the commands, in the order in which they are typed; none where For says what to do
}

// String writes what the advice is for, and its commands.
func (a Advice) String() string {
	if len(a.Type) == 0 {
		return a.For
	}
	return a.For + ": " + strings.Join(a.Type, "; then: ")
}

// Stays returns the shards of the move that the target does not serve.
func (f Move) Stays() []int64 { return without(f.Shards, f.Moved) }

// Next returns what you can do next, the most likely first. It is empty where one of the servers does not
// say how far the move is: bring that server back first.
func (f Move) Next() []Advice {
	left := f.Stays()
	switch {
	case len(f.Twice) > 0:
		return f.nextOfTwice()
	case len(f.Lost) > 0:
		return []Advice{{"no command but this opens it", f.Openings()}}
	case f.Copy != "":
		return []Advice{{For: check.ReopenCopy(f.Copy)}}
	case f.Phase == Between:
		return []Advice{{"programs wait until it is opened", f.Openings()}}
	case f.Phase == HalfLeft:
		return f.nextOfHalf(left)
	case f.Phase == Unknown:
		return nil
	case len(f.Surplus) > 0:
		return f.nextOfSurplus()
	case len(f.Parted) > 0:
		return f.nextOfParted(left)
	}
	if f.Paused {
		return []Advice{{"to continue", []string{resume(left), moveTo(f.Shards, f.Target)}}, {"to abort what has not moved", []string{abort(left)}}}
	}
	begun := without(f.Back, left) // a revert of these was begun
	back := len(left) > 0 && len(without(left, f.Back)) == 0
	goOn := Advice{"to continue the revert", []string{revert(begun)}}
	switch {
	case len(begun) > 0 && len(left) == 0:
		return []Advice{goOn, {f.toStay("copies"), []string{finish(f.Shards)}}}
	case len(begun) > 0:
		return []Advice{goOn, {"to move all to " + f.Target, []string{moveTo(f.Shards, f.Target)}}}
	case len(left) == 0:
		return []Advice{{"to drop the old copies", []string{finish(f.Shards)}}, {"to go back", []string{revert(f.Shards)}}}
	case back:
		return []Advice{{"to drop the other copies, after the revert", []string{abort(left)}}, {"to move there again", []string{moveTo(left, f.Target)}}}
	case len(left) < len(f.Shards):
		return []Advice{{"to continue", []string{moveTo(f.Shards, f.Target)}}, {"to abort what has not moved", []string{abort(left)}}}
	}
	return []Advice{{"to continue", []string{moveTo(f.Shards, f.Target)}}, {"to abort", []string{abort(f.Shards)}}}
}

// nextOfHalf is of a move that only one server knows: it has just begun, or somebody has begun to
// end it.
func (f Move) nextOfHalf(left []int64) []Advice {
	switch {
	case f.justBegun() && len(f.Old) > 0: // to go on is refused
		return []Advice{{"to end it", []string{abort(f.Shards), finish(f.Old)}}}
	case f.justBegun():
		return []Advice{{"to continue", []string{moveTo(f.Shards, f.Target)}}, {"to abort", []string{abort(f.Shards)}}}
	case f.Forgot == f.Target || len(left) == 0:
		return []Advice{{"to end it", []string{finish(f.Shards)}}}
	case len(f.Moved) == 0:
		return []Advice{{"to end it", []string{abort(f.Shards)}}}
	}
	return []Advice{{"to end it", []string{abort(left), finish(f.Moved)}}}
}

// nextOfTwice is of a move with shards that more than one server serves.
func (f Move) nextOfTwice() (all []Advice) {
	for _, found := range f.Twice {
		all = append(all, Advice{For: found.Do})
	}
	return all
}

// After returns the move as it is when firn shard reopen has told one of its servers who serves the shards: that
// server forgets of the move, and keeps its copies of some shards. It is false where no server knows of the move then.
func (f Move) After(reopened string, copies []int64) (Move, bool) {
	if f.Phase == HalfLeft && f.Forgot != reopened || f.Phase == Unknown && !f.Refused() {
		return f, false
	}
	if f.Copy == reopened {
		f.Copy = ""
	}
	if f.Phase != Unknown {
		f.Phase, f.Forgot = HalfLeft, reopened
	}
	if reopened == f.Target {
		f.Old = copies
	}
	return f, true
}

// justBegun says whether only the source knows of the move because the target has not been told yet: whoever
// ends a move has the server that serves the shards forget first.
func (f Move) justBegun() bool {
	return f.Phase == HalfLeft && f.Forgot == f.Target && len(f.Kept) > 0
}

// Stage returns how far the move is, for people: a move is begun also while only the source knows of it.
func (f Move) Stage() Stage {
	if f.justBegun() {
		return Begun
	}
	return f.Phase
}

// nextOfParted is of a move of which copies are not what the shards are any more. A new copy is
// the only way to the other server.
func (f Move) nextOfParted(left []int64) (all []Advice) {
	if len(f.Moved) > 0 {
		var commands []string
		if able := without(f.Moved, f.Parted); len(able) > 0 {
			commands = append(commands, revert(able))
		}
		if gone := without(f.Moved, without(f.Moved, f.Parted)); len(gone) > 0 {
			commands = append(commands, finish(gone), moveTo(gone, f.Source))
		}
		all = append(all, Advice{f.toStay("old copies"), []string{finish(f.Moved)}}, Advice{"to go back to " + f.Source, commands})
	}
	if len(left) > 0 {
		all = append(all, Advice{"to stay on " + f.Source, []string{abort(left)}}, Advice{"to move to " + f.Target + " all the same", []string{abort(left), moveTo(left, f.Target)}})
	}
	return all
}

// nextOfSurplus is of a move with copies that have rows of their own. No command drops these, unless
// somebody says whose they are.
func (f Move) nextOfSurplus() (all []Advice) {
	stayed := without(f.Surplus, f.Moved)
	for _, n := range f.Surplus {
		e := SurplusError{Shard: n, Server: f.Source, Owner: f.Target, Old: true}
		if slices.Contains(stayed, n) {
			e.Server, e.Owner, e.Old = f.Target, f.Source, false
		}
		all = append(all, Advice{For: fmt.Sprintf("shard %d: %s", n, e.Do())})
	}
	return all
}

func (f Move) toStay(copies string) string {
	return fmt.Sprintf("to stay on %s, and drop the %s on %s", f.Target, copies, f.Source)
}

// Of returns the move as far as it is about some of its shards.
func (f Move) Of(shards []int64) Move {
	some := func(all []int64) []int64 { return without(all, without(all, shards)) }
	f.Shards, f.Moved, f.Kept, f.Waiting, f.Back, f.Surplus, f.Parted, f.Old = some(f.Shards), some(f.Moved), some(f.Kept), some(f.Waiting), some(f.Back), some(f.Surplus), some(f.Parted), some(f.Old)
	f.Lost = slices.DeleteFunc(slices.Clone(f.Lost), func(o check.Opening) bool { return !slices.Contains(shards, o.Shard) })
	return f
}

func without(all, some []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(all), func(n int64) bool { return slices.Contains(some, n) })
}

// The commands that this package's advice has typed.
func revert(shards []int64) string { return "firn shard revert " + phrase.Numbers(shards) }
func abort(shards []int64) string  { return "firn shard abort " + phrase.Numbers(shards) }
func resume(shards []int64) string { return "firn shard resume " + phrase.Numbers(shards) }
func finish(shards []int64) string { return "firn shard finish " + phrase.Numbers(shards) }
func moveTo(shards []int64, server string) string {
	return "firn shard move " + phrase.Numbers(shards) + " --to " + server
}
