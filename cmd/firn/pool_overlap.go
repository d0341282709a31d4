package main

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/beside"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/remedy"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/pool"
)

// This file says how a pool gets workers that no other pool has.

// overlapping says how two pools are kept from making equal ids. The room is what the other pools
// leave to the new one; nil: that is not known.
func overlapping(e *pool.OverlapError, verb string, room *beside.CrowdedError) error {
	if f := notGivenUp(e, verb); f != nil {
		return f
	}
	if verb == "set" {
		return crowdedSet(e)
	}
	text := fmt.Sprintf("pool %q could repeat ids of pool %q: the layouts overlap and both use workers %s", e.Pool, e.Other.Name, e.Same)
	if e.Same == "" {
		text = phrase.WithoutPackage(e.Error())
	}
	return ui.Failed("%w", ui.Rename(text, e)).
		Hint("to never repeat an id of %s: use --pool %[1]s%s. Only if their ids never meet in one table, queue or cache: %s",
			phrase.ShellWord(e.Other.Name), ownWorkers(e, verb, room), mayRepeat(e, room))
}

// mayRepeat is the claim for every pool that has one of the workers.
func mayRepeat(e *pool.OverlapError, room *beside.CrowdedError) string {
	all := []string{e.Other.Name}
	if room != nil {
		all = room.All
	}
	return "--may-repeat " + claimed(all)
}

// claimed are pools as what follows a --may-repeat.
func claimed(pools []string) string {
	var words []string
	for _, name := range pools {
		words = append(words, phrase.ShellWord(name))
	}
	return strings.Join(words, " --may-repeat ")
}

// hasRoom reports whether a pool can have workers of its own beside the others.
func hasRoom(e *beside.CrowdedError) bool { return e.Free != "" || e.Leaving != "" || e.Big.Name != "" }

// ownWorkers says how the new pool gets workers that no other pool has.
func ownWorkers(e *pool.OverlapError, verb string, room *beside.CrowdedError) string {
	if room == nil {
		return ", or give each its own workers. To see which are taken: firn pool ls"
	}
	layout := ""
	if room.Layout != e.Layout {
		layout = " --layout " + phrase.ShellWord(layoutName(room.Layout))
	}
	create := func(workers string) string {
		return fmt.Sprintf("firn pool %s %s --workers %s%s", verb, phrase.ShellWord(e.Pool), workers, layout)
	}
	narrow := func(p pool.Info, to string) string {
		return fmt.Sprintf("firn pool set %s --workers %s", phrase.ShellWord(p.Name), to)
	}
	why := ""
	if layout != "" {
		// By another layout the same bits are of another time, so the workers that a pool gives
		// up stay its own.
		why = ", because the pools of that layout had every worker, and a pool of another layout cannot have one of them"
	}
	switch {
	case room.Free != "":
		return fmt.Sprintf(", or give each its own workers (%s%s)", create(room.Free), why)
	case room.Leaving != "":
		return fmt.Sprintf(", or take the workers that %s is giving up (%s, again until it succeeds; %s%s)", room.Other.Name, narrow(room.Other, remedy.Range(room.Other)), create(room.Leaving), why)
	case room.Big.Name != "":
		lower, upper := beside.Halves(room.Big)
		if room.Big.Layout != room.Layout {
			layout = " --layout " + phrase.ShellWord(layoutName(room.Big.Layout))
		}
		return fmt.Sprintf(", or give each its own workers (%s; %s%s)", narrow(room.Big, lower.String()), create(upper.String()), why)
	}
	return ": no pool has a worker to spare"
}

// crowdedSet says where a pool finds more workers when those that it asks for are another's.
func crowdedSet(e *pool.OverlapError) error {
	f := ui.Failed("%w", e).Hint("take workers that no other pool has; to see which those have: firn pool ls")
	if e.Layout != e.Other.Layout {
		f = f.Hint("%s has another layout, so its workers stay its own, also those that it gives up", phrase.ShellWord(e.Other.Name))
	}
	return f
}

// notGivenUp says how a pool gets workers that another one does not lease any more, and has
// not given up; nil if the other one leases them. To take them now is refused, so no hint
// says that.
func notGivenUp(e *pool.OverlapError, verb string) error {
	if e.Leased() {
		return nil
	}
	other := phrase.ShellWord(e.Other.Name)
	if e.Other.GivingUp != "" && e.Layout == e.Other.Layout {
		return ui.Failed("%w", ui.Rename(fmt.Sprintf("pool %q could repeat ids of pool %q, which has not given up workers %s yet", e.Pool, e.Other.Name, e.Same), e)).
			Hint("run this command again when %s has given them up; this ends that, or says what it waits for: firn pool set %s --workers %d-%d", other, other, e.Other.First, e.Other.Last)
	}
	f := ui.Failed("%w", ui.Rename(fmt.Sprintf("pool %q could repeat ids of pool %q, which had workers %s with another layout", e.Pool, e.Other.Name, e.Same), e))
	if verb == "set" {
		return f.Hint("take workers that no pool ever had: %s does not get these", phrase.ShellWord(e.Pool))
	}
	return f.Hint("take workers that no pool ever had, or the layout of %s, which is: --layout %s", other, phrase.ShellWord(layoutName(e.Other.Layout)))
}
