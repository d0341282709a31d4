package check

import (
	"context"
	"errors"

	"github.com/firn-id/firn/shard/topology"
)

// ReadMap looks at all servers and returns the map that they make together, with what each
// one says. It is for changes that need every server: it fails where one does not answer, or
// is a standby ([*StandbyError]), whose word may be old.
func ReadMap(ctx context.Context, servers []topology.Server) (*topology.Map, map[string]*topology.View, error) {
	views := make(map[string]*topology.View, len(servers))
	var failed []error
	for _, s := range Look(ctx, servers) {
		if s.Err != nil {
			failed = append(failed, s.Err)
			continue
		}
		views[s.Name] = s.View
	}
	if len(failed) == 1 {
		return nil, nil, failed[0]
	}
	if err := errors.Join(failed...); err != nil {
		return nil, nil, err
	}
	if err := errors.Join(RefuseStandbys(views), RefuseTwins(views)); err != nil {
		return nil, nil, err
	}
	m, err := topology.NewMap(views)
	return m, views, err
}
