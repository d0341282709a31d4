package setup

import (
	"fmt"

	"github.com/firn-id/firn/shard/install"
)

// A NewerError says that a newer firn has written the functions of a server. This firn would put older
// functions in their place, and those may not know what the newer ones have written.
type NewerError struct {
	Server      string
	Has, Writes int // versions of the SQL: of the server's functions, and of this firn's
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("shard: server %s: a newer firn wrote its functions: they have version %d, and this firn would write version %d. Nothing was changed", e.Server, e.Has, e.Writes)
}

// checkVersions returns a [*NewerError] where a server has functions of a newer firn. It is asked before
// the first server is changed, of all of them: one that fails late would leave two versions in a cluster.
func checkVersions(sites []*site) error {
	for _, t := range sites {
		if t.view != nil && t.view.SQL > install.SQLVersion {
			return &NewerError{t.server.Name, t.view.SQL, install.SQLVersion}
		}
	}
	return nil
}
