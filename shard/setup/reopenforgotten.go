package setup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn/shard/topology"
)

// Forgotten are shards of a plan of which another server was told that the server of the plan opens them, at a
// later term than the server knows. A reopen was broken off, or the server was put back to an earlier state since.
type Forgotten struct {
	By     []string // servers that were told
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

// Forgotten returns shards that the plan opens, and that the server may have opened before, which it does not know.
func (r *Reopening) Forgotten() (f Forgotten) {
	for _, name := range slices.Sorted(maps.Keys(r.Views)) {
		for _, other := range r.Views[name].Shards {
			if !other.Told || other.MovedTo != r.Server || !slices.ContainsFunc(r.Shards, func(row topology.Row) bool { return row.Shard == other.Shard && row.Term < other.Term }) {
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
