package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/topology"
)

// A TwinError says that the address of a server leads to a copy of it, such as a second standby that was promoted,
// and that another copy was reopened since. Both have the shards, and rows that were written to the other one are
// not here.
type TwinError struct {
	Server string
	By     string  // the server that knows the other copy
	Shards []int64 // that this copy has
}

func (e *TwinError) Error() string {
	return fmt.Sprintf("shard: server %s: its address leads to a second copy of %[1]s. %[2]s knows another copy, which was reopened", e.Server, e.By)
}

// has are the shards that did not move away from a server.
func has(v *topology.View) (all []int64) {
	for _, row := range v.Shards {
		if row.State != topology.StateMoved {
			all = append(all, row.Shard)
		}
	}
	return all
}

// do says what to do about it.
func (e *TwinError) do() string {
	do := fmt.Sprintf("give the address of the reopened copy: --server %s=postgres://USER@HOST/DATABASE, or in firn.yaml", e.Server)
	if len(e.Shards) == 0 {
		return do
	}
	return do + fmt.Sprintf(". If the reopened copy is permanently gone, what was written there since is lost; to open the shards with the rows that are here: firn shard reopen %s --shards %s --incomplete", e.Server, phrase.Numbers(e.Shards))
}

// RefuseTwins returns a [*TwinError] where a server is not the one that others know by its name, and else nil.
func RefuseTwins(views map[string]*topology.View) error {
	for _, by := range slices.Sorted(maps.Keys(views)) {
		for _, name := range slices.Sorted(maps.Keys(views[by].Peers)) {
			v, known := views[name], views[by].Peers[name]
			if v != nil && known != v.Incarnation && !slices.Contains(v.Formerly, known) {
				return &TwinError{name, by, has(v)}
			}
		}
	}
	return nil
}
