package move

import (
	"context"
	"fmt"
	"slices"
	"time"
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
	one, to := m.ends(g)
	incarnation, err := one.know(ctx, to)
	if err != nil {
		return err
	}
	for _, p := range some {
		from, _ := p.sides(g)
		if err := to.call(ctx, "SELECT firn.claim($1, $2, $3, $4, $5, $6, $7, $8, $9)", p.shard, from.schema, from.term, from.attempt, m.batch, m.source.Name, m.target.Name, keep, incarnation); err != nil {
			return m.noWayBack(g, p.shard, m.inWay(ctx, to.conn, p, err))
		}
	}
	return nil
}

// know has a server know the incarnation of the one that a shard comes to, which may be a copy of the server that it was.
func (e *end) know(ctx context.Context, to *end) (incarnation string, err error) {
	if err := to.connect(ctx); err != nil {
		return "", err
	}
	var formerly []string
	if err := to.conn.QueryRow(ctx, "SELECT v.incarnation::text, v.formerly::text[] FROM firn.server AS v").Scan(&incarnation, &formerly); err != nil {
		return "", to.fault(err)
	}
	if len(formerly) == 0 {
		return incarnation, nil
	}
	return incarnation, e.call(ctx, "SELECT firn.know($1, $2, $3, false)", to.Name, incarnation, formerly)
}

// guard has the source refuse to receive, on any copy of it, what the way back brings. That waits
// for moments in which nobody writes to some tables of a shard, as a cutover does for all.
func (m *Mover) guard(ctx context.Context, some []pairOf) error {
	for _, p := range some {
		for done := p.source.batch == ""; !done; {
			var err error
			if done, err = m.guardSome(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// guardSome is a step of guard, and says whether it was the last one of the shard.
func (m *Mover) guardSome(ctx context.Context, p pairOf) (done bool, err error) {
	a := p.source
	l, err := loadOf(ctx, m.source.conn, a.schema)
	if err != nil {
		return false, m.source.fault(err)
	}
	sql := holdOff(p.shard) + limits(m.source.try, l.working()) + fmt.Sprintf("SELECT firn.guard(%d, %d, %s)", p.shard, a.term, literal(a.attempt))
	begun := time.Now()
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		last, err := m.source.ask(ctx, sql)
		if code := sqlstate(err); code != "55P03" && code != "57014" && code != "40P01" {
			return last == "t", err
		}
		if waited := time.Since(begun); waited > m.options.LockWait {
			found, err := holders(ctx, m.source.conn, a.schema, lockTime)
			if err != nil || len(found) == 0 {
				return false, gaveUp(&BusyError{Shard: p.shard, Why: "a table was in use at each try"}, waited)
			}
			e := &HoldersError{Shard: p.shard, Waited: waited, Holders: found}
			if slices.ContainsFunc(found, func(h Holder) bool { return h.Autovacuum }) {
				if e.Do, err = m.source.hurryAutovacuum(ctx); err != nil {
					return false, err
				}
			}
			return false, e
		}
		if err := pause(ctx, wait); err != nil {
			return false, err
		}
	}
}
