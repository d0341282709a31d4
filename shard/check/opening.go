package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn/shard/topology"
)

// This file finds out which server opens a shard that no server serves and that no move or
// revert can open: one of the servers was put back to an earlier state, or firn shard reopen
// was broken off.

// An Opening says which server opens a shard that no server serves and no move opens, and why that server.
type Opening struct {
	Shard  int64
	Server string // that opens it; empty: none does, because no server has its rows
	Back   string // the server that was put back to an earlier state; empty: none was
	Served int    // how many shards Back serves
	Why    string
}

// do says what to type, with LIST for the number of the shard.
func (o Opening) do() string {
	do := fmt.Sprintf("firn shard reopen %s --shards LIST", o.Server)
	switch {
	case o.Back == "":
		return "to continue it: " + do
	case o.Served > 0:
		return o.beside(do)
	case o.Server == "":
		return fmt.Sprintf("only a newer backup or a standby of %s has its rows: put it in the place of %[1]s, then: firn shard reopen %[1]s. If there is neither, its rows are lost: docs/guides/shards-operating.md, \"A server that is lost\"", o.Back)
	}
	return fmt.Sprintf("if there is a newer backup or a standby of %s, put it in its place first. If there is neither, %s: %s", o.Back, o.rows(), do)
}

// rows says which rows the server has that opens the shard.
func (o Opening) rows() string {
	if o.Server == o.Back {
		return o.Server + " opens it with the rows of its backup, and rows that were written since are lost"
	}
	return o.Server + " has the newest rows"
}

// beside says what to do where Back serves shards: programs have written to these what no backup has.
func (o Opening) beside(do string) string {
	n := "1 shard"
	if o.Served > 1 {
		n = fmt.Sprintf("%d shards", o.Served)
	}
	text := fmt.Sprintf("%s has served %s since, and a newer backup or a standby in its place would lose what was written there since. If there is a newer backup or a standby of %[1]s, leave %[1]s as it is, and copy the rows of shard LIST from it: docs/reference/shards-recovery.md, \"A server that was put back\"", o.Back, n)
	if o.Server == "" {
		return text + ". If there is neither, the rows are lost"
	}
	return text + fmt.Sprintf(". If there is neither, %s: %s", o.rows(), do)
}

// Do returns what to type.
func (o Opening) Do() string { return withList(o.do(), fmt.Sprint(o.Shard)) }

// Text returns why, and what to type.
func (o Opening) Text() string { return o.Why + "; " + o.Do() }

// withList puts the numbers of shards into what to type. A list that is cut short is none to type.
func withList(do, list string) string { return strings.ReplaceAll(do, "LIST", list) }

// OpeningOf returns the opening of a shard, by what all servers of the cluster say, and false where a server
// serves the shard or a move opens it. The highest term knows most of a shard: who lets it go has its
// word from who is to take it, so a lower term there has been forgotten.
func OpeningOf(views map[string]*topology.View, n int64) (Opening, bool) {
	all := saying(views, n)
	if RefuseStandbys(views) != nil || RefuseTwins(views) != nil {
		return Opening{}, false // the primary, or the copy that was reopened, may know more
	}
	if len(all) == 0 || len(serving(all)) > 0 || all[0].State != topology.StateMoved {
		return Opening{}, false
	}
	last := all[0]
	to := slices.IndexFunc(all, func(c claim) bool { return c.server == last.MovedTo })
	switch {
	case views[last.MovedTo] == nil:
		return Opening{}, false
	case last.Told && to >= 0 && all[to].Dropped:
		return nothingBack(views, last, all), true
	case last.Told && to >= 0:
		o := Opening{Shard: n, Server: last.MovedTo, Why: toldText(last)}
		if wasPutBack(views, last.MovedTo) {
			o.Back, o.Served = last.MovedTo, serves(views[last.MovedTo])
		}
		return o, true
	case to >= 0 && all[to].Term == last.Term:
		return Opening{}, false
	}
	served := serves(views[last.MovedTo])
	if last.Dropped {
		o := Opening{n, "", last.MovedTo, served, fmt.Sprintf("%s gave it to %s and dropped its own copy, and %[2]s was put back to an earlier state", last.server, last.MovedTo)}
		if to >= 0 && opensOlder(all, all[to]) {
			o.Server = o.Back
		}
		return o, true
	}
	return Opening{n, last.server, last.MovedTo, served, fmt.Sprintf("%s knows more of it than %s, which was put back to an earlier state", last.server, last.MovedTo)}, true
}

// nothingBack is the opening of a shard that a server opened, by what all say, the highest term first, and of which that
// server has no copy now. A reopen that was broken off tells nobody of such a shard, so the server was put back.
func nothingBack(views map[string]*topology.View, last claim, all []claim) Opening {
	o := Opening{Shard: last.Shard, Back: last.MovedTo, Served: serves(views[last.MovedTo])}
	o.Why = fmt.Sprintf("%s was told that %s opened it, and %[2]s has no copy of it: %[2]s was put back to an earlier state", last.server, last.MovedTo)
	if i := slices.IndexFunc(all, func(c claim) bool { return c.State == topology.StateMoved && !c.Dropped }); i >= 0 {
		o.Server = all[i].server
	}
	return o
}

// opensOlder says whether firn shard reopen opens a shard on a server that has an older copy of it than another server
// had since, by what all say, the highest term first: the server has rows, and the last word is that the shard is there.
func opensOlder(all []claim, older claim) bool {
	return !older.Dropped && !slices.ContainsFunc(all, func(c claim) bool {
		gone := c.State != topology.StateMoved || c.MovedTo != older.server && c.Term == all[0].Term
		return c.Term > older.Term && gone
	})
}

// serves is how many shards a server serves.
func serves(v *topology.View) (n int) {
	for _, row := range v.Shards {
		if row.Serves() {
			n++
		}
	}
	return n
}

// wasPutBack says whether a server was put back to an earlier state for sure: another server has let a shard
// go to it, and it knows less of that shard; or another server was told that it opened a shard of which it has no copy.
func wasPutBack(views map[string]*topology.View, server string) bool {
	last, known := make(map[int64]topology.Row), make(map[int64]topology.Row)
	for name, v := range views {
		for _, row := range v.Shards {
			if name == server {
				known[row.Shard] = row
			}
			if row.Term > last[row.Shard].Term {
				last[row.Shard] = row
			}
		}
	}
	for n, row := range last {
		if row.State != topology.StateMoved || row.MovedTo != server {
			continue
		}
		if here, ok := known[n]; !ok || !row.Told && here.Term < row.Term || row.Told && here.Dropped {
			return true
		}
	}
	return false
}

// CopyOf returns a server that was promoted, restored or copied, and so may know less of a shard than the
// original did; or "". Until you reopen that server, no move of the shard continues or ends. Where two
// servers are such, it returns the one that opens the shard.
func CopyOf(views map[string]*topology.View, n int64) string {
	copies := slices.DeleteFunc(saying(views, n), func(c claim) bool { return c.Here })
	if len(copies) == 0 || RefuseStandbys(views) != nil || RefuseTwins(views) != nil {
		return ""
	}
	opens := slices.IndexFunc(copies, func(c claim) bool { return c.State == topology.StateOpen })
	return copies[max(opens, 0)].server
}

// ReopenCopy says what to do about a server that [CopyOf] returns.
func ReopenCopy(server string) string {
	return fmt.Sprintf("%s is a copy, or was promoted or restored. If what it is a copy of is permanently gone: firn shard reopen %[1]s", server)
}

// toldText says what a server was told of a shard by firn shard reopen, which may have come to
// its end all the same, if what it did on the other server is gone.
func toldText(c claim) string {
	return fmt.Sprintf("%s was told that %s opens it: a reopen was broken off, or %[2]s was put back to an earlier state since", c.server, c.MovedTo)
}

// saying are what servers say of a shard, the highest term first, and at one term by name.
func saying(views map[string]*topology.View, n int64) []claim {
	var all []claim
	for _, name := range slices.Sorted(maps.Keys(views)) {
		for _, row := range views[name].Shards {
			if row.Shard == n {
				all = append(all, claim{name, row})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b claim) int { return cmp.Compare(b.Term, a.Term) })
	return all
}

// Nowhere returns a finding for shards that no server serves and that no move opens, of those that asked
// selects. Each finding says what to type.
func Nowhere(views map[string]*topology.View, asked func(shard int64) bool) []Finding {
	found := make(groups)
	for _, n := range numbers(views) {
		if o, ok := OpeningOf(views, n); ok && asked(n) {
			found.add(n, "no server serves it: "+o.Why, o.do())
		}
	}
	return found.findings()
}
