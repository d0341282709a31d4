package move

import (
	"context"
	"time"
)

// take opens shards on the server that they were let go to, whichever way somebody wants
// them to go: they serve nowhere until then.
func (m *Mover) take(ctx context.Context, g goal, some []pairOf) error {
	for _, p := range some {
		way := g
		if to := p.letGoTo(); to != "" {
			way.back = to == m.source.Name
		}
		if err := m.takeOne(ctx, way, p); err != nil {
			return err
		}
		if way.back == g.back {
			m.moved = append(m.moved, Moved{Shard: p.shard})
		}
	}
	return nil
}

// takeOne opens one of them when its last changes have come.
func (m *Mover) takeOne(ctx context.Context, g goal, p pairOf) error {
	_, to := m.ends(g)
	_, b := p.sides(g)
	for begun := time.Now(); ; {
		var done bool
		if err := to.connect(ctx); err != nil {
			return err
		}
		if err := to.conn.QueryRow(ctx, "SELECT firn.take($1, $2, $3)", p.shard, b.term, b.attempt).Scan(&done); err != nil {
			return to.fault(err)
		}
		if done {
			return nil
		}
		if waited := time.Since(begun); waited > m.options.Patience {
			return &BusyError{Shard: p.shard, Waited: waited, Why: "it was let go, and its last changes have not come: is the subscription " + m.incoming(g) + " at work on " + to.Name + "?"}
		}
		if err := pause(ctx, markPause); err != nil {
			return err
		}
	}
}

// recordOwner has a server that was promoted or restored know that it has let shards go.
func (m *Mover) recordOwner(ctx context.Context, g goal, some []pairOf) error {
	from, to := m.ends(g)
	for _, p := range some {
		_, b := p.sides(g)
		if err := from.call(ctx, "SELECT firn.record_owner($1, $2, $3)", p.shard, b.term, to.Name); err != nil {
			return err
		}
	}
	return nil
}
