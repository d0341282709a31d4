package move

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/shard/topology"
)

// A Mover moves shards from a source to a target. Use it in one goroutine only.
type Mover struct {
	source, target *end
	batch          string // that it is at work on
	options        Options

	progress Progress
	since    time.Time      // this phase began
	begun    map[int64]bool // by this run
	verified map[int64]bool
	slotless map[string]time.Time // copies without their slots, and since when
	far      reach
	alikeAt  time.Time // when schemas were compared last
	moved    []Moved
	wrong    []error

	commented bool // by Pause, which has not paused the batch yet
}

// New makes a mover. Source and target are those of the move, also for Revert, which goes the other way.
// It connects when it is first used.
func New(source, target topology.Server, o *Options) *Mover {
	return &Mover{
		source: newEnd(source), target: newEnd(target), options: o.orDefault(),
		verified: make(map[int64]bool), slotless: make(map[string]time.Time),
	}
}

// Close closes the connections.
func (m *Mover) Close() {
	for _, e := range []*end{m.source, m.target} {
		if e.conn != nil {
			e.conn.Close(context.Background())
		}
	}
}

// newWord is a word that there never was, of 12 letters and digits.
func newWord() string {
	b := make([]byte, 6)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// Move moves shards to the target, or continues moves that were interrupted. It returns the shards that it
// has moved, also with an error.
func (m *Mover) Move(ctx context.Context, shards []int64) ([]Moved, error) {
	return m.carry(ctx, goal{}, shards)
}

// Revert moves shards back to the source, without copying rows: replication has kept the old copy up to
// date. It fails with a [*NoWayBackError] where the old copy is not what the shard is any more.
func (m *Mover) Revert(ctx context.Context, shards []int64) ([]Moved, error) {
	return m.carry(ctx, goal{back: true}, shards)
}

// carry brings shards to where they are to be.
func (m *Mover) carry(ctx context.Context, g goal, shards []int64) ([]Moved, error) {
	m.moved, m.wrong = nil, nil
	g.attempt, m.begun, m.verified = newWord(), make(map[int64]bool), make(map[int64]bool)
	var stale *staleError
	err := m.try(ctx, g, shards)
	for begun := time.Now(); errors.As(err, &stale) && time.Since(begun) < m.options.Patience; {
		if err = pause(ctx, retryPause); err == nil {
			err = m.try(ctx, g, shards)
		}
	}
	return m.moved, errors.Join(append(m.wrong, err)...)
}

func (m *Mover) try(ctx context.Context, g goal, shards []int64) error {
	batches, err := m.batches(ctx, shards)
	if err != nil {
		return err
	}
	for _, b := range batches {
		if b.toward != "" && b.toward != m.target.Name {
			return &OtherMoveError{b.shards[0], m.source.Name, b.toward}
		}
		m.batch = cmp.Or(b.name, newWord())
		if err := m.patiently(ctx, func() error { return errors.Join(m.source.sign(ctx, m.batch), m.target.sign(ctx, m.batch)) }); err != nil {
			return err
		}
		if err := m.carryBatch(ctx, g, b.shards); err != nil {
			return err
		}
	}
	return nil
}

// A batch is shards of one move.
type batch struct {
	name   string // empty: they are in none yet
	toward string // the target of that move
	shards []int64
}

// batches are the shards by the moves that they are in.
func (m *Mover) batches(ctx context.Context, shards []int64) ([]batch, error) {
	shards = slices.Compact(slices.Sorted(slices.Values(shards)))
	var f *facts
	if err := m.patiently(ctx, func() (err error) { f, err = m.look(ctx, shards); return err }); err != nil {
		return nil, err
	}
	var all []batch
	for _, p := range f.shards {
		name := cmp.Or(p.source.batch, p.target.batch)
		i := slices.IndexFunc(all, func(b batch) bool { return b.name == name })
		if i < 0 {
			i, all = len(all), append(all, batch{name: name, toward: cmp.Or(p.source.toward, p.target.toward)})
		}
		all[i].shards = append(all[i].shards, p.shard)
	}
	return all, nil
}

// whole are the facts of all shards of the batch.
func (m *Mover) whole(ctx context.Context, f *facts) (*facts, error) {
	all := numbers(f.shards)
	for _, e := range []*end{m.source, m.target} {
		var more []int64
		if err := e.conn.QueryRow(ctx, "SELECT coalesce(array_agg(shard), '{}') FROM firn.move WHERE batch = $1", m.batch).Scan(&more); err != nil {
			return nil, e.fault(err)
		}
		all = append(all, more...)
	}
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	if len(all) == len(f.shards) {
		return f, nil
	}
	return m.look(ctx, all)
}

// carryBatch does what comes next, until nothing does. What is copied is copied of all
// shards of a batch.
func (m *Mover) carryBatch(ctx context.Context, g goal, shards []int64) error {
	m.progress, m.far, m.alikeAt = Progress{Shards: len(shards)}, reach{}, time.Time{}
	m.say(Progress{Phase: Preparing})
	for {
		var s step
		err := m.patiently(ctx, func() error {
			f, err := m.look(ctx, shards)
			if err == nil && !g.back && f.streams() != toCut {
				f, err = m.whole(ctx, f)
			}
			if err != nil {
				return err
			}
			if err := m.endedOf(g, f); err != nil {
				return err
			}
			if s, err = next(g, f); err != nil || s.do == toEnd {
				if err == nil {
					m.dropFences(ctx, g, f.shards)
				}
				return m.withOpening(f, err)
			}
			if err := m.paused(g, f, s); err != nil {
				return err
			}
			return m.whyNot(ctx, g, shards, m.do(ctx, g, f, s))
		})
		if err != nil || s.do == toEnd {
			return err
		}
	}
}

// endedOf is the error of a shard whose move has ended since this mover began it, or nil.
func (m *Mover) endedOf(g goal, f *facts) error {
	for _, p := range f.shards {
		if from, to := p.sides(g); m.begun[p.shard] && from.batch != m.batch && !to.serves() {
			return &EndedError{p.shard}
		}
	}
	return nil
}

// whyNot is the error of a step, or that the move has ended meanwhile, which may be why.
func (m *Mover) whyNot(ctx context.Context, g goal, shards []int64, err error) error {
	if err == nil || away(err) || ctx.Err() != nil {
		return err
	}
	if f, asked := m.look(ctx, shards); asked == nil {
		if code := sqlstate(err); code == "ID002" || code == "ID007" || code == "ID008" { // others may have been at work
			err = cmp.Or(m.paused(g, f, step{do: toWait}), err)
		}
		return cmp.Or(m.endedOf(g, f), err)
	}
	return err
}

// verifyAndCut moves a shard over whose copy was compared. That is so of a shard that goes back,
// too: a server that was put back to an earlier state has an old copy that lacks rows, and nothing
// else shows that.
func (m *Mover) verifyAndCut(ctx context.Context, g goal, p pairOf) error {
	from, to := m.ends(g)
	if !m.verified[p.shard] {
		m.say(Progress{Phase: Verifying})
		// Rows of a table that was changed cannot be compared.
		if err := m.checkSchemas(ctx, g, p); err != nil {
			return m.noWayBack(g, p.shard, err)
		}
		_, b := p.sides(g)
		o := VerifyOptions{Stream: m.incoming(g), Surplus: b.counted, Done: func(rows int64) {
			m.progress.Rows += rows
			m.options.Progress(m.progress)
		}}
		_, err := Verify(ctx, from.given, to.given, p.source.schema, o)
		if err := m.compared(ctx, from, to, p.shard, err); err != nil {
			return m.noWayBack(g, p.shard, fmt.Errorf("shard %d, of which %s is the source and %s the target: %w", p.shard, from.Name, to.Name, err))
		}
		if !g.back {
			if err := m.analyze(ctx, p); err != nil {
				return err
			}
		}
		m.verified[p.shard] = true
	}
	return m.noWayBack(g, p.shard, m.cut(ctx, g, p))
}

// analyze gathers statistics of a copy before programs use it: a server plans badly without. What
// autovacuum works on is left to it, and a table that cannot be analyzed, as where a function of an
// index fails, moves all the same.
func (m *Mover) analyze(ctx context.Context, p pairOf) error {
	tables, err := names(ctx, m.target.conn, "SELECT r.relation::text FROM firn.relations($1) AS r JOIN pg_class AS c ON c.oid = r.relation WHERE NOT c.relispartition", p.source.schema)
	if err != nil {
		return m.target.fault(err)
	}
	for _, table := range tables {
		if _, err := m.target.conn.Exec(ctx, "ANALYZE (SKIP_LOCKED) "+table); err != nil && (ctx.Err() != nil || away(err)) {
			return m.target.fault(err)
		}
	}
	return nil
}

// noWayBack is an error of a shard, told from others where it is on its way back.
func (m *Mover) noWayBack(g goal, n int64, err error) error {
	if g.back && (sqlstate(err) == "ID008" || errors.As(err, new(*DifferentError))) {
		return &NoWayBackError{n, m.source.Name, err}
	}
	return err
}

// say tells how far it is.
func (m *Mover) say(p Progress) {
	p.Shards, p.Done = m.progress.Shards, len(m.moved)
	if p.Phase != m.progress.Phase {
		m.since = time.Now()
	}
	if p.Bytes > 0 && p.Bytes < p.BytesTotal {
		p.Left = time.Duration(float64(p.BytesTotal-p.Bytes) / float64(p.Bytes) * float64(time.Since(m.since)))
	}
	m.progress = p
	m.options.Progress(p)
}
