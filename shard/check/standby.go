package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/firn-id/firn/shard/topology"
)

// A StandbyError says that the address of a server leads to a standby. What a standby says may be old, and
// its primary may serve.
type StandbyError struct{ Server string }

func (e *StandbyError) Error() string {
	return fmt.Sprintf("shard: server %s: its address leads to a standby, which gives no ids and takes no writes", e.Server)
}

// RefuseStandbys returns a [*StandbyError] where one of the servers is a standby, and else nil.
func RefuseStandbys(views map[string]*topology.View) error {
	for _, name := range slices.Sorted(maps.Keys(views)) {
		if views[name].Standby {
			return &StandbyError{name}
		}
	}
	return nil
}
