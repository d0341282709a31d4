package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/phrase"
)

// This file ends moves: the server that has a shard forgets of the move, the other one
// drops its copy, and what replicated goes. It does not matter which of the two has it:
// to abort is to do so before the shard has moved, and to finish is to do so after.

// Abort gives up the moves of shards that have not changed over, and drops their copies. With a shard it
// gives up all shards of the same batch that have not changed over. Shards that have changed over stay
// where they are. It returns the shards whose moves it has ended.
func (m *Mover) Abort(ctx context.Context, shards []int64) ([]int64, error) {
	return m.end(ctx, shards, true, func(f *facts) ([]pairOf, error) {
		var some []pairOf
		for _, p := range f.shards {
			switch {
			case p.source.batch == "" && p.target.batch == "":
			case p.target.serves(): // it has moved
			case p.source.serves():
				some = append(some, p)
			default:
				return nil, &StuckError{p.shard, "no server serves it now, so nothing is dropped", m.opens(p)}
			}
		}
		return some, nil
	})
}

// Finish drops the old copies of shards on the source. After that Revert cannot take these shards back.
// It returns the shards whose moves it has ended.
func (m *Mover) Finish(ctx context.Context, shards []int64) ([]int64, error) {
	if err := m.patiently(ctx, func() error { return m.awaitStandbys(ctx) }); err != nil {
		return nil, err
	}
	return m.end(ctx, shards, false, m.finishable)
}

// CheckFinish returns the shards of which Finish would drop an old copy, or the error with which Finish would
// refuse. It changes nothing.
func (m *Mover) CheckFinish(ctx context.Context, shards []int64) ([]int64, error) {
	var f *facts
	if err := m.patiently(ctx, func() (err error) { f, err = m.look(ctx, slices.Sorted(slices.Values(shards))); return err }); err != nil {
		return nil, err
	}
	some, err := m.finishable(f)
	if err == nil {
		err = m.checkSurplus(some)
	}
	some = slices.DeleteFunc(some, func(p pairOf) bool { return p.source.batch == "" }) // dropped already
	return numbers(some), err
}

// finishable are the shards whose moves have arrived.
func (m *Mover) finishable(f *facts) ([]pairOf, error) {
	var some, stayed []pairOf
	source, target := m.source.Name, m.target.Name
	for _, p := range f.shards {
		switch from, to := p.source.serves(), p.target.serves(); {
		case p.source.batch == "" && p.target.batch == "":
		case to && !from:
			some = append(some, p)
		case from && !to:
			stayed = append(stayed, p)
		case !from && !to:
			return nil, &StuckError{p.shard, "no server serves it now, so nothing is dropped", m.opens(p)}
		default:
			return nil, &StuckError{p.shard, fmt.Sprintf("both %s and %s serve it, so nothing is dropped", source, target), seeDoctor}
		}
	}
	if len(stayed) > 0 {
		p, list := stayed[0], phrase.Numbers(numbers(stayed))
		return nil, &StuckError{
			p.shard, fmt.Sprintf("it is on %s, so there is no old copy to drop", source),
			cmp.Or(m.copyDo(p), fmt.Sprintf("to move it to %[2]s: firn shard move %[1]s --to %[2]s; to abort the move: firn shard abort %[1]s", list, target)),
		}
	}
	return some, nil
}

// end ends the moves of the shards that are chosen, batch by batch.
func (m *Mover) end(ctx context.Context, shards []int64, whole bool, choose func(*facts) ([]pairOf, error)) (ended []int64, err error) {
	batches, err := m.batches(ctx, shards)
	if err != nil {
		return nil, err
	}
	for _, b := range batches {
		if b.name == "" {
			continue
		}
		m.batch, m.begun = b.name, make(map[int64]bool)
		err := m.afresh(ctx, func() error {
			f, err := m.look(ctx, b.shards)
			if err == nil && whole {
				f, err = m.whole(ctx, f)
			}
			if err != nil {
				return err
			}
			some, err := choose(f)
			if err == nil {
				err = cmp.Or(m.newest(some), m.checkSurplus(some))
			}
			if err != nil {
				return err
			}
			m.say(Progress{Phase: Cleaning, Shards: len(some)})
			if err := m.endBatch(ctx, some); err != nil {
				return err
			}
			for _, p := range some {
				ended = append(ended, p.shard)
			}
			return nil
		})
		if err != nil {
			return ended, err
		}
	}
	return ended, m.patiently(ctx, func() error { return dropLeftovers(ctx, []*end{m.source, m.target}, m.options.Patience) })
}

// staleTries is how often the end of a batch begins anew when somebody has worked on its shards.
const staleTries = 5

// afresh does something patiently, and again where it was refused because a mover has worked on a
// shard since the servers were looked at: who looks again ends the move, or sees why it has not ended.
func (m *Mover) afresh(ctx context.Context, f func() error) error {
	for tries := 1; ; tries++ {
		err := m.patiently(ctx, f)
		if code := sqlstate(err); code != "ID007" && code != "ID002" || tries == staleTries {
			return err
		}
		if err := pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

// newest refuses shards of which the server that serves them knows less than the other one,
// whose copy would be dropped: it was put back to an earlier state, and what was written since
// is in that copy alone.
func (m *Mover) newest(some []pairOf) error {
	for _, p := range some {
		owner, other, copied := m.source, m.target, p.target.term > p.source.term
		if !p.source.serves() {
			owner, other, copied = m.target, m.source, p.source.term > p.target.term
		}
		if copied {
			return &StuckError{p.shard, fmt.Sprintf("%s serves it, and was put back to an earlier state: %s knows more of it, so nothing is dropped", owner.Name, other.Name), seeDoctor}
		}
	}
	return nil
}

// endBatch ends the moves of shards of one batch, each of which one server has.
func (m *Mover) endBatch(ctx context.Context, some []pairOf) error {
	var bySource, byTarget []pairOf
	for _, p := range some {
		if p.source.serves() {
			bySource = append(bySource, p)
		} else {
			byTarget = append(byTarget, p)
		}
	}
	// Nobody else's word lets a shard go any more that is to stay.
	if err := m.overtake(ctx, goal{attempt: newWord()}, bySource); err != nil {
		return err
	}
	if err := m.endOn(ctx, m.source, m.target, m.forth(), numbers(bySource)); err != nil {
		return err
	}
	return m.endOn(ctx, m.target, m.source, m.back(), numbers(byTarget))
}

// overtake raises the terms of shards that the source has and has not let go.
func (m *Mover) overtake(ctx context.Context, g goal, some []pairOf) error {
	var open, claimed []pairOf
	for _, p := range some {
		if p.source.batch != "" {
			open = append(open, p)
		}
	}
	if err := m.begin(ctx, g, open); err != nil || len(open) == 0 {
		return err
	}
	f, err := m.look(ctx, numbers(open))
	if err != nil {
		return err
	}
	for _, p := range f.shards {
		if p.target.batch != "" {
			claimed = append(claimed, p)
		}
	}
	return m.claim(ctx, g, claimed, false)
}

// endOn ends the moves of shards that one server has, and drops the copies of the other.
func (m *Mover) endOn(ctx context.Context, owner, other *end, stream string, shards []int64) error {
	if len(shards) == 0 {
		return nil
	}
	f, err := m.look(ctx, shards)
	if err != nil {
		return err
	}
	var known, terms []int64
	var attempts []string
	for _, p := range f.shards {
		mine, theirs := p.source, p.target
		if owner == m.target {
			mine, theirs = theirs, mine
		}
		if mine.batch != "" {
			if err := owner.call(ctx, "SELECT firn.end_move($1, $2, $3)", p.shard, mine.term, mine.attempt); err != nil {
				return err
			}
		}
		if theirs.batch == m.batch { // else it was not claimed, or was told since where the shard is
			known, terms, attempts = append(known, p.shard), append(terms, theirs.term), append(attempts, theirs.attempt)
		}
	}
	if len(known) == 0 {
		return nil
	}
	if err := m.awaitDrained(ctx, owner, other, stream, known); err != nil {
		return err
	}
	if err := other.call(ctx, "SELECT firn.unsubscribe($1, $2, $3, $4)", m.batch, known, terms, attempts); err != nil {
		return err
	}
	fenced := make(map[int64]copyOf)
	for _, p := range f.shards {
		fenced[p.shard] = p.source
		if owner == m.target {
			fenced[p.shard] = p.target
		}
	}
	owner.dropAllFences(ctx, fenced) // or they stay, and do nothing
	for i, n := range known {
		if err := other.call(ctx, "SELECT firn.discard($1, $2, $3)", n, terms[i], attempts[i]); err != nil {
			return err
		}
	}
	return nil
}

// awaitDrained waits until the stream of a batch that goes on with other shards has nothing
// more of these: it could not be applied.
func (m *Mover) awaitDrained(ctx context.Context, owner, other *end, stream string, shards []int64) error {
	var position string
	var goesOn bool
	if err := other.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM firn.move WHERE batch = $1 AND shard <> ALL ($2))", m.batch, shards).Scan(&goesOn); err != nil || !goesOn {
		return other.fault(err)
	}
	if other == m.target { // of a paused move nothing would be applied
		if err := m.unpause(ctx); err != nil {
			return err
		}
	}
	if err := owner.conn.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&position); err != nil {
		return owner.fault(err)
	}
	for begun := time.Now(); ; {
		var waiting bool
		if err := owner.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1 AND confirmed_flush_lsn < $2::text::pg_lsn)", stream, position).Scan(&waiting); err != nil {
			return owner.fault(err)
		}
		if !waiting {
			return nil
		}
		if time.Since(begun) > m.options.Patience {
			return other.fault(errors.New("its subscription " + stream + " does not come on: see its log"))
		}
		if err := pause(ctx, copyPause); err != nil {
			return err
		}
	}
}

func numbers(some []pairOf) []int64 {
	all := make([]int64, len(some))
	for i, p := range some {
		all[i] = p.shard
	}
	return all
}
