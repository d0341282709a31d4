package setup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn/shard/topology"
)

// Forgotten are shards of a plan that the server of the plan had at a later term than it knows, as is written on
// other servers. The server was put back to an earlier state since, or a reopen was broken off.
type Forgotten struct {
	By     []string // servers on which that is written
	Shards []int64  // in order
}

// Text names the shards.
func (f Forgotten) Text() string {
	list := make([]string, len(f.Shards))
	for i, n := range f.Shards {
		list[i] = fmt.Sprint(n)
	}
	if len(list) == 1 {
		return "shard " + list[0]
	}
	return "shards " + strings.Join(list, ",")
}

// Forgotten returns shards that the plan opens, and that the server may have had since, which it does not know.
func (r *Reopening) Forgotten() (f Forgotten) {
	for _, name := range slices.Sorted(maps.Keys(r.Views)) {
		for _, other := range r.Views[name].Shards {
			if other.State != topology.StateMoved || other.MovedTo != r.Server || !slices.ContainsFunc(r.Shards, func(row topology.Row) bool { return forgets(row, other) }) {
				continue
			}
			if !slices.Contains(f.By, name) {
				f.By = append(f.By, name)
			}
			if !slices.Contains(f.Shards, other.Shard) {
				f.Shards = append(f.Shards, other.Shard)
			}
		}
	}
	slices.Sort(f.Shards)
	return f
}

// forgets reports whether a server whose row is this had the shard since, by the row of another server, which was told
// that it opens the shard, or let the shard go to it. A shard that is on its way to it has not been there yet, unless
// the other server has dropped its copy since.
func forgets(row, other topology.Row) bool {
	return row.Shard == other.Shard && row.Term < other.Term && (other.Told || other.Dropped || row.State != topology.StateMoved)
}
