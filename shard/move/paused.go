package move

import (
	"context"
	"fmt"

	"github.com/firn-id/firn/internal/phrase"
)

// This file pauses moves, and resumes them. A paused move has a comment on the subscription of its target, which is
// disabled. A mover looks for the comment before each step, and goes no further.

// pausedComment is the comment on the subscription of a paused move.
const pausedComment = "firn: paused"

// A PausedError says that a move is paused.
type PausedError struct {
	Shards []int64 // that have not moved
	Target string
}

func (e *PausedError) Error() string {
	return fmt.Sprintf("the move of shard %s to %s is paused", phrase.Numbers(e.Shards), e.Target)
}

// Do returns the commands that continue the move, and the command that aborts it.
func (e *PausedError) Do() (goOn, give string) {
	return resume(e.Shards) + "; then: " + moveTo(e.Shards, e.Target), abort(e.Shards)
}

// paused returns a [*PausedError] where a step is not to be done, because the move is paused. A shard that was let go is
// opened all the same, or no server would serve it.
func (m *Mover) paused(g goal, f *facts, s step) error {
	if g.back || !f.target.paused || s.do == toTake || s.do == toRecordOwner || s.do == toEnd {
		return nil
	}
	e := &PausedError{Target: m.target.Name}
	for _, p := range f.shards {
		if !p.target.serves() {
			e.Shards = append(e.Shards, p.shard)
		}
	}
	return e
}

// Pause has the moves of shards stop until Resume: the copy does not follow any more, and no cutover begins. A mover that is at
// work on them stops with a [*PausedError]. The source keeps all WAL that it writes meanwhile. With a shard it
// pauses all shards of the same batch. It returns those that have not moved. It fails with a [*StuckError] where no
// server serves a shard, no copy was begun, or all have moved.
func (m *Mover) Pause(ctx context.Context, shards []int64) (paused []int64, err error) {
	paused, err = m.eachPausable(ctx, shards, m.pauseBatch)
	if m.commented && err != nil { // the others of the batch would be paused, and nobody was told so
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTime)
		defer cancel()
		m.comment(ctx, "NULL") // where it fails, the pause is what status shows
	}
	return paused, err
}

// Resume ends what Pause has begun: the copy follows again. The move continues when somebody runs Move.
func (m *Mover) Resume(ctx context.Context, shards []int64) (resumed []int64, err error) {
	return m.eachPausable(ctx, shards, func(ctx context.Context, f *facts, some []pairOf) error {
		if !f.target.paused {
			return &StuckError{some[0].shard, "its move is not paused", fmt.Sprintf("to continue it: %s", moveTo(numbers(some), m.target.Name))}
		}
		return m.unpause(ctx)
	})
}

// unpause ends the pause of a batch, if it has one.
func (m *Mover) unpause(ctx context.Context) error {
	var paused bool
	const sql = "SELECT EXISTS (SELECT FROM pg_subscription AS s WHERE s.subname = $1 AND s.subdbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND obj_description(s.oid, 'pg_subscription') = $2)"
	if err := m.target.conn.QueryRow(ctx, sql, m.forth(), pausedComment).Scan(&paused); err != nil || !paused {
		return m.target.fault(err)
	}
	if err := m.enable(ctx, m.target); err != nil {
		return err
	}
	return m.comment(ctx, "NULL")
}

// comment writes the comment on the subscription of the target, as SQL.
func (m *Mover) comment(ctx context.Context, sql string) error {
	return m.target.call(ctx, "COMMENT ON SUBSCRIPTION "+identifier(m.forth())+" IS "+sql)
}

// eachPausable does something with the shards of each batch that have not moved.
func (m *Mover) eachPausable(ctx context.Context, shards []int64, do func(context.Context, *facts, []pairOf) error) (all []int64, err error) {
	batches, err := m.batches(ctx, shards)
	if err != nil {
		return nil, err
	}
	for _, b := range batches {
		if b.name == "" {
			continue
		}
		m.batch = b.name
		err := m.afresh(ctx, func() error {
			f, err := m.look(ctx, b.shards)
			if err == nil {
				f, err = m.whole(ctx, f)
			}
			if err != nil {
				return err
			}
			some, err := m.pausable(f)
			if err == nil {
				err = do(ctx, f, some)
			}
			if err == nil {
				all = append(all, numbers(some)...)
			}
			return err
		})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// pausable are the shards of a batch that have not moved.
func (m *Mover) pausable(f *facts) (some []pairOf, err error) {
	for _, p := range f.shards {
		switch {
		case p.target.serves():
		case !p.source.serves():
			return nil, &StuckError{p.shard, "no server serves it now", m.opens(p)}
		default:
			some = append(some, p)
		}
	}
	switch {
	case len(some) == 0:
		return nil, &StuckError{f.shards[0].shard, "it has moved", finishFirst(f.shards)}
	case !f.target.subscription:
		return nil, &StuckError{some[0].shard, "its copy has not begun", m.goOnOrGiveUp(f, some)}
	}
	return some, nil
}

// goOnOrGiveUp says what to type about a move whose copy has not begun: to continue it, where a mover can.
func (m *Mover) goOnOrGiveUp(f *facts, some []pairOf) string {
	if _, err := next(goal{attempt: newWord()}, f); err != nil || f.streams() == toEnd {
		return giveUp(some)
	}
	return fmt.Sprintf("to continue: %s; to abort: %s", moveTo(numbers(some), m.target.Name), abort(numbers(some)))
}

// pauseBatch pauses a batch. The comment comes first: a mover that looks later stops. Then begin_move has every
// other mover refused that looked before: none of them lets a shard go any more.
func (m *Mover) pauseBatch(ctx context.Context, f *facts, some []pairOf) error {
	if !f.target.paused {
		m.commented = true
		if err := m.comment(ctx, literal(pausedComment)); err != nil {
			return err
		}
	}
	attempt := newWord()
	for _, p := range some {
		if err := m.source.call(ctx, "SELECT firn.begin_move($1, $2, $3, $4, $5, $6)", p.shard, max(p.source.term, p.target.term)+1, attempt, m.batch, m.target.Name, false); err != nil {
			return err
		}
	}
	err := m.target.call(ctx, "ALTER SUBSCRIPTION "+identifier(m.forth())+" DISABLE")
	if err == nil {
		m.commented = false
	}
	return err
}
