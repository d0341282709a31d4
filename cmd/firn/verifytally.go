package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
)

// A tally judges ids, one after the other, in memory that depends on how dense they
// are: a bit for each id of a generator at its ceiling, 8 bytes and more for one that lies
// alone.
type tally struct {
	layout  firn.Layout
	packed  packing
	makers  map[int64]*maker
	current *maker // of the last id
	minutes bool   // and by minute too

	ids       int64
	repeats   int64      // ids that were there before
	repeated  []sighting // the first of them
	malformed []sighting // the first of those that are no ids of the layout
	faults    int64      // how many there are of these
}

// A sighting is something worth naming, and where it stands.
type sighting struct {
	id   firn.ID
	at   string
	text string
}

// maxSightings is how many are kept of each sort.
const maxSightings = 20

// A packing takes an id apart into who made it, and its state: tick and sequence as
// one number, dense where the maker is busy.
type packing struct {
	time, seq         firn.Field
	timeMask, seqMask int64 // at their place in the id
}

func newPacking(l firn.Layout) packing {
	var p packing
	p.time, _ = l.Field("time")
	p.seq, _ = l.Field("seq")
	p.timeMask = (1<<p.time.Width - 1) << p.time.Shift
	p.seqMask = (1<<p.seq.Width - 1) << p.seq.Shift
	return p
}

func (p *packing) state(id firn.ID) uint64 {
	return uint64(p.time.Of(id))<<p.seq.Width | uint64(p.seq.Of(id))
}

func (p *packing) maker(id firn.ID) int64 { return int64(id) &^ (p.timeMask | p.seqMask) }

// A maker is a worker, or a shard, that made some of the ids.
type maker struct {
	key   int64
	parts firn.Parts // of its first id: the fields besides time and sequence

	seen      stateSet
	ids       int64
	last      uint64
	backwards int64 // ids below the one before
	back      sighting
	again     map[int64]int64 // ids that were there before, by minute since 1970

	// Once all are read:
	lowest   uint64
	highest  uint64
	gap      firn.Tick // the longest between one id and the next, by their time
	gapAfter firn.Tick
	minutes  map[int64]minute // since 1970
	most     int64            // in a minute
}

// A minute is what a maker made in one.
type minute struct {
	ids int64
	gap firn.Tick // the longest after one of them
}

func newTally(l firn.Layout, minutes bool) *tally {
	return &tally{layout: l, packed: newPacking(l), makers: make(map[int64]*maker), minutes: minutes}
}

// add judges an id; at says where it stands, if it is to be named.
func (t *tally) add(id firn.ID, at func() string) {
	key := t.packed.maker(id)
	m := t.current
	if m == nil || m.key != key {
		if m = t.makers[key]; m == nil {
			if m = t.newMaker(key, id, at); m == nil {
				return
			}
		}
		t.current = m
	}
	t.ids++
	state := t.packed.state(id)
	if !m.seen.add(state) {
		t.repeats++
		if m.again == nil {
			m.again = make(map[int64]int64)
		}
		m.again[t.minuteOf(t.tick(state))]++
		if len(t.repeated) < maxSightings {
			t.repeated = append(t.repeated, sighting{id: id, at: at()})
		}
	}
	if state < m.last {
		if m.backwards++; m.backwards == 1 {
			m.back = sighting{id: id, at: at()}
		}
	}
	m.ids++
	m.last = state
}

// newMaker makes the maker of an id, or reports an id that is not of the layout.
func (t *tally) newMaker(key int64, id firn.ID, at func() string) *maker {
	parts, err := t.layout.Decode(id)
	if err != nil {
		t.fault(id, err.Error(), at)
		return nil
	}
	m := &maker{key: key, parts: parts}
	t.makers[key] = m
	return m
}

// fault counts what is no id of the layout.
func (t *tally) fault(id firn.ID, why string, at func() string) {
	t.faults++
	if len(t.malformed) < maxSightings {
		t.malformed = append(t.malformed, sighting{id, at(), withoutPackage(why)})
	}
}

// end closes the tally, and returns the makers in the order of their numbers.
func (t *tally) end() []*maker {
	all := make([]*maker, 0, len(t.makers))
	for _, m := range t.makers {
		t.follow(m)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *maker) int { return compareMakers(a.parts, b.parts) })
	return all
}

// follow looks at the ids of a maker in the order of their time, whichever they were
// read in.
func (t *tally) follow(m *maker) {
	if t.minutes {
		m.minutes = make(map[int64]minute)
	}
	var before firn.Tick
	var at int64 // the minute of before
	var in minute
	first := true
	m.seen.each(func(state uint64) {
		m.highest = state
		tick := t.tick(state)
		switch {
		case first:
			first, m.lowest, at = false, state, t.minuteOf(tick)
		case tick != before:
			in.gap = max(in.gap, tick-before)
			if tick-before > m.gap {
				m.gap, m.gapAfter = tick-before, before
			}
			if next := t.minuteOf(tick); next != at {
				m.endMinute(at, in)
				at, in = next, minute{}
			}
		}
		in.ids++
		before = tick
	})
	m.endMinute(at, in)
}

// minuteOf is the minute of a tick, since 1970.
func (t *tally) minuteOf(tick firn.Tick) int64 { return t.layout.Time(tick).Unix() / 60 }

func (m *maker) endMinute(at int64, in minute) {
	in.ids += m.again[at]
	m.most = max(m.most, in.ids)
	if m.minutes != nil {
		m.minutes[at] = in
	}
}

func compareMakers(a, b firn.Parts) int {
	if a.Shard != b.Shard {
		return int(a.Shard - b.Shard)
	}
	return int(a.Worker - b.Worker)
}

// tick is the tick of a state.
func (t *tally) tick(state uint64) firn.Tick { return firn.Tick(state >> t.packed.seq.Width) }

// time is when a state is of.
func (t *tally) time(state uint64) time.Time { return t.layout.Time(t.tick(state)) }

// span is how long some ticks last.
func (t *tally) span(ticks firn.Tick) time.Duration {
	return t.layout.Time(ticks).Sub(t.layout.Time(0))
}

// perSecond is the rate of a maker over all the time from its first to its last id.
func (t *tally) perSecond(m *maker) float64 {
	lasted := t.time(m.highest).Sub(t.time(m.lowest)) + t.layout.Unit()
	return float64(m.ids) / lasted.Seconds()
}

// name is what a person calls a maker.
func (t *tally) name(m *maker) string {
	_, shard := t.layout.Field("shard")
	switch {
	case shard && t.layout.Workers() > 1:
		return fmt.Sprintf("shard %d worker %d", m.parts.Shard, m.parts.Worker)
	case shard:
		return fmt.Sprintf("shard %d", m.parts.Shard)
	default:
		return fmt.Sprintf("worker %d", m.parts.Worker)
	}
}
