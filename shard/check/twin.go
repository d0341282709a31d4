package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/firn-id/firn/shard/topology"
)

// A TwinError says that the address of a server leads to a copy of it, such as a second standby that was promoted,
// and that another copy was reopened since. Both have the shards, and rows that were written to the other one are
// not here.
type TwinError struct {
	Server string
	By     string // the server that knows the other copy
}

func (e *TwinError) Error() string {
	return fmt.Sprintf("shard: server %s: its address leads to another server than the one that was reopened as %[1]s, as %s knows", e.Server, e.By)
}

// RefuseTwins returns a [*TwinError] where a server is not the one that others know by its name, and else nil.
func RefuseTwins(views map[string]*topology.View) error {
	for _, by := range slices.Sorted(maps.Keys(views)) {
		for _, name := range slices.Sorted(maps.Keys(views[by].Peers)) {
			v, known := views[name], views[by].Peers[name]
			if v != nil && known != v.Incarnation && !slices.Contains(v.Formerly, known) {
				return &TwinError{name, by}
			}
		}
	}
	return nil
}
