package move

import (
	"context"

	"github.com/firn-id/firn/shard/topology"
)

// Rights are the rights that a move takes on a server, from whichever side, and that the role of the
// server's address does not have. They are obstacles of every plan.
func Rights(ctx context.Context, server topology.Server) ([]Obstacle, error) {
	c, err := server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close(context.WithoutCancel(ctx))
	p, err := stand(ctx, server.Name, c)
	if err != nil {
		return nil, &topology.ServerError{Server: server.Name, Err: err}
	}
	return obstaclesOf(server.Name, p.rights()), nil
}
