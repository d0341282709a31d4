package setup

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// Others returns functions that make ids by a formula of their own, in the schemas of a server's shards or called by
// column defaults there. They may repeat ids of the shard's generator. It changes nothing.
func Others(ctx context.Context, s topology.Server) ([]OtherFunction, error) {
	var v *topology.View
	var all []found
	err := s.Ask(ctx, func(c *pgx.Conn) (err error) {
		if v, err = topology.Look(ctx, c); err == nil {
			all, err = catalog{ctx, c}.functions()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var others []OtherFunction
	for _, f := range all {
		if _, err := f.function.formula(); err != nil {
			continue
		}
		for _, schema := range append([]string{f.schema}, f.usedIn...) {
			i := slices.IndexFunc(v.Shards, func(r topology.Row) bool { return r.Schema == schema && r.State != topology.StateMoved })
			if i >= 0 {
				others = append(others, OtherFunction{v.Shards[i].Shard, f.schema, f.name, schema != f.schema})
				break
			}
		}
	}
	return others, nil
}
