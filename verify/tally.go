// Package verify says of any number of ids whether one repeats, as firn verify does.
//
// Ids go into a [Tally], one by one with [Tally.Add], or from files and streams with
// [ReadLines], [ReadCSV] and [ReadBinary]; [Tally.Report] says at any time what came of
// them. All ids are compared, in whatever order they come. That takes memory: a bit for
// each id of a generator at its ceiling, 5 bytes where it makes one a millisecond or less,
// and 12 to 20 where it makes a few an hour.
//
// Where an id stood when it came first is not kept. To name all places of those that
// repeat, read everything a second time into [Places].
//
// A Tally and Places are for one goroutine at a time.
package verify

import (
	"cmp"
	"slices"

	"github.com/firn-id/firn"
)

// A Tally compares ids of a layout, one after the other. [NewTally] makes one.
type Tally struct {
	layout  firn.Layout
	packed  packing
	makers  map[int64]*maker
	current *maker // of the last id

	ids      int64
	repeats  int64
	repeated []Sighting // the first of them
	faults   int64
	faulty   []Fault // the first of them
}

// MaxNamed is how many of each kind a [Report] names: ids that repeat, faults, and places of an
// id. It counts all of them.
const MaxNamed = 20

// A Sighting is an id, and where it stands.
type Sighting struct {
	ID firn.ID
	At string
}

// A Fault is a text or number that is no id of the layout.
type Fault struct {
	Err error // why not
	At  string
}

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
	back      Sighting
	again     map[int64]int64 // ids that were there before, by minute since 1970
}

// NewTally returns a tally of ids of a layout.
func NewTally(l firn.Layout) *Tally {
	return &Tally{layout: l, packed: newPacking(l), makers: make(map[int64]*maker)}
}

// Add compares an id with all before it.
func (t *Tally) Add(id firn.ID, at func() string) {
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
		m.again[t.minute(t.tick(state))]++
		if len(t.repeated) < MaxNamed {
			t.repeated = append(t.repeated, Sighting{id, place(at)})
		}
	}
	if state < m.last {
		if m.backwards++; m.backwards == 1 {
			m.back = Sighting{id, place(at)}
		}
	}
	m.ids++
	m.last = state
}

// newMaker makes the maker of an id, or reports an id that is not of the layout.
func (t *Tally) newMaker(key int64, id firn.ID, at func() string) *maker {
	parts, err := t.layout.Decode(id)
	if err != nil {
		t.Fault(err, at)
		return nil
	}
	m := &maker{key: key, parts: parts}
	t.makers[key] = m
	return m
}

// Fault counts a text or number that is no id.
func (t *Tally) Fault(err error, at func() string) {
	t.faults++
	if len(t.faulty) < MaxNamed {
		t.faulty = append(t.faulty, Fault{err, place(at)})
	}
}

func place(at func() string) string {
	if at == nil {
		return ""
	}
	return at()
}

// inOrder are the makers in the order of their numbers.
func (t *Tally) inOrder() []*maker {
	all := make([]*maker, 0, len(t.makers))
	for _, m := range t.makers {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *maker) int {
		return cmp.Or(cmp.Compare(a.parts.Shard, b.parts.Shard), cmp.Compare(a.parts.Worker, b.parts.Worker))
	})
	return all
}

// tick is the tick of a state.
func (t *Tally) tick(state uint64) firn.Tick { return firn.Tick(state >> t.packed.seq.Width) }

// minute is the minute of a tick, since 1970.
func (t *Tally) minute(tick firn.Tick) int64 { return t.layout.Time(tick).Unix() / 60 }

// Places are where some ids stand: an id that is a key is looked for, and the first
// places of it that are read become its value.
type Places map[firn.ID][]string

// Add notes where an id stands, if it is looked for.
func (p Places) Add(id firn.ID, at func() string) {
	if places, ok := p[id]; ok && len(places) < MaxNamed {
		p[id] = append(places, place(at))
	}
}

// Fault does nothing.
func (p Places) Fault(error, func() string) {}
