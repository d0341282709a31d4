package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/topology"
)

// This file finds shards that a server serves which should not: its disk, or the other
// server's, was put back to an earlier state.

// A claim is what one server says of a shard.
type claim struct {
	server string
	topology.Row
}

// claimsOf are what servers say of a shard that they serve or gave away, the highest term
// first, and at one term by name.
func claimsOf(views map[string]*topology.View, n int64) []claim {
	return slices.DeleteFunc(saying(views, n), func(c claim) bool { return !c.Serves() && c.State != topology.StateMoved })
}

// serving are the claims of servers that serve the shard.
func serving(claims []claim) []claim {
	return slices.DeleteFunc(slices.Clone(claims), func(c claim) bool { return !c.Serves() })
}

// twice says whether a server serves the shard although another one serves it too, or gave
// it away at a higher term.
func twice(claims []claim) bool {
	open := serving(claims)
	return len(open) > 1 || len(open) == 1 && open[0].Term < claims[0].Term
}

// Twice returns a finding for shards that more than one server serves, and for shards that a server serves
// although another one gave them away later, of those that asked selects. Each finding says what to
// type.
func Twice(views map[string]*topology.View, asked func(shard int64) bool) []Finding {
	found := make(groups)
	for _, n := range numbers(views) {
		if claims := claimsOf(views, n); asked(n) && twice(claims) {
			text, do := twiceText(claims)
			found.add(n, text, do)
		}
	}
	return found.findings()
}

// numbers are those of the shards that servers know, in order.
func numbers(views map[string]*topology.View) []int64 {
	all := make(map[int64]bool)
	for _, v := range views {
		for _, row := range v.Shards {
			all[row.Shard] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// groups are the shards of which the same is to be said, by text and what to do, with LIST for
// their numbers.
type groups map[[2]string][]string

func (g groups) add(n int64, text, do string) {
	key := [2]string{text, do}
	g[key] = append(g[key], strconv.FormatInt(n, 10))
}

func (g groups) findings() []Finding {
	var f findings
	for _, key := range g.sorted() {
		f.say(Bad, "", withList(key[1], strings.Join(g[key], ",")), "%s: %s: %s", shards(g[key]), key[0], phrase.Few(g[key]))
	}
	return f.all
}

// of are the findings about one server.
func (g groups) of(server string) []Finding {
	var f findings
	for _, key := range g.sorted() {
		which := "shard "
		if len(g[key]) > 1 {
			which = "shards "
		}
		f.say(Bad, server, withList(key[1], strings.Join(g[key], ",")), "%s: %s", which+phrase.Few(g[key]), key[0])
	}
	return f.all
}

func (g groups) sorted() [][2]string {
	return slices.SortedFunc(maps.Keys(g), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
}

// twiceText says what is wrong with such a shard, and what to type, with LIST for its number.
func twiceText(claims []claim) (text, do string) {
	open := serving(claims)
	last := claims[0]
	if to := last.MovedTo; last.Told && last.Term > open[0].Term && slices.ContainsFunc(open, func(c claim) bool { return c.server == to }) {
		return fmt.Sprintf("%s serves it, and %s", to, toldText(last)),
			fmt.Sprintf("keep programs away from %s, which may give ids again that %s, or %[1]s after a reopen, has given, then: firn shard reopen %[1]s --shards LIST", to, last.server)
	}
	if len(open) == 1 {
		return fmt.Sprintf("%s serves it, although %s gave it to %s later, at term %d: %[1]s was put back to an earlier state", open[0].server, last.server, last.MovedTo, last.Term),
			fmt.Sprintf("keep programs away from %s, then: firn shard reopen %[1]s --shards LIST; where that loses something it refuses, and says what to type", open[0].server)
	}
	names := make([]string, len(open))
	for i, c := range open {
		names[i] = c.server
	}
	slices.Sort(names)
	text = strings.Join(names, " and ") + " serve it at once, and one of them was put back to an earlier state"
	const keep = "to keep the copy on %[1]s: firn shard reopen %[1]s --shards LIST"
	if open[0].Term > open[1].Term {
		return text, open[0].server + " has opened it last, and the rows of the other copy stay in its schema; " + fmt.Sprintf(keep, open[0].server)
	}
	var cures []string
	for _, c := range open {
		if c.Term == open[0].Term {
			cures = append(cures, fmt.Sprintf(keep, c.server))
		}
	}
	return text, "nobody can say which copy is newer, so compare their rows. Then type one of these: " + strings.Join(cures, "; ")
}
