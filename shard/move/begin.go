package move

import (
	"context"
)

// ends are the server that a shard is to leave, and that it is to come to.
func (m *Mover) ends(g goal) (from, to *end) {
	if g.back {
		return m.target, m.source
	}
	return m.source, m.target
}

// begin makes this mover the one that is at work on some shards.
func (m *Mover) begin(ctx context.Context, g goal, some []pairOf) error {
	from, _ := m.ends(g)
	if err := m.checkOthers(ctx, g, some); err != nil {
		return err
	}
	for _, p := range some {
		a, b := p.sides(g)
		term := max(a.term, b.term) + 1
		err := from.call(ctx, "SELECT firn.begin_move($1, $2, $3, $4, $5, $6)", p.shard, term, g.attempt, m.batch, m.target.Name, a.batch == "" && !g.back)
		if code := sqlstate(err); (code == "ID002" || code == "ID007") && !m.begun[p.shard] {
			return &staleError{err}
		}
		if err != nil {
			return err
		}
		m.begun[p.shard] = true
	}
	return nil
}

// claim has the other server know where the shards are, and that they may come. A copy
// that is there is kept, unless it is to be given up.
func (m *Mover) claim(ctx context.Context, g goal, some []pairOf, keep bool) error {
	_, to := m.ends(g)
	for _, p := range some {
		from, _ := p.sides(g)
		if err := to.call(ctx, "SELECT firn.claim($1, $2, $3, $4, $5, $6, $7, $8)", p.shard, from.schema, from.term, from.attempt, m.batch, m.source.Name, m.target.Name, keep); err != nil {
			return m.noWayBack(g, p.shard, err)
		}
	}
	return nil
}
