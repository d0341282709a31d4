package verify

import (
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// A stateSet has the states of a maker. Many that share their upper half are a chunk;
// the others stand in one list, 8 bytes each, since a chunk of its own would take 100 and
// more for each.
type stateSet struct {
	lone    sortedList[uint64] // in no chunk
	most    int                // how many these may be until the next divide
	chunks  map[uint32]*chunk  // by upper half
	upper   uint32             // of the last state
	current *chunk             // its chunk, if there is one
}

const (
	leastLone = 1 << 12 // how many there are at the first divide
	leastOf   = 64      // how many are a chunk: no more bytes than in the list
)

// add reports whether a state is new.
func (s *stateSet) add(state uint64) bool {
	if upper := uint32(state >> 32); upper != s.upper {
		if s.current != nil {
			s.current.rest()
		}
		s.upper, s.current = upper, s.chunks[upper]
	}
	if s.current != nil {
		return s.current.add(uint32(state))
	}
	if !s.lone.add(state) {
		return false
	}
	if s.lone.len() >= max(s.most, leastLone) {
		s.divide()
	}
	return true
}

// divide makes chunks of those that are enough for one. The others have to double before
// the next time.
func (s *stateSet) divide() {
	s.lone.merge()
	left := s.lone.all
	lone := left[:0]
	for len(left) > 0 {
		upper, n := uint32(left[0]>>32), 1
		for n < len(left) && uint32(left[n]>>32) == upper {
			n++
		}
		if n < leastOf {
			lone = append(lone, left[:n]...)
		} else {
			s.newChunk(upper, left[:n])
		}
		left = left[n:]
	}
	s.lone.all, s.most = slices.Clone(lone), 2*len(lone)
	s.current = s.chunks[s.upper]
}

func (s *stateSet) newChunk(upper uint32, states []uint64) {
	c := &chunk{}
	for _, state := range states {
		c.add(uint32(state))
	}
	c.rest()
	if s.chunks == nil {
		s.chunks = make(map[uint32]*chunk)
	}
	s.chunks[upper] = c
}

// each calls f with all states in their order, until it returns false.
func (s *stateSet) each(f func(state uint64) bool) {
	s.lone.merge()
	lone := s.lone.all
	for _, upper := range slices.Sorted(maps.Keys(s.chunks)) {
		for len(lone) > 0 && uint32(lone[0]>>32) < upper {
			if !f(lone[0]) {
				return
			}
			lone = lone[1:]
		}
		more := true
		s.chunks[upper].each(func(lower uint32) bool {
			more = f(uint64(upper)<<32 | uint64(lower))
			return more
		})
		if !more {
			return
		}
	}
	for _, state := range lone {
		if !f(state) {
			return
		}
	}
}

// A chunk has the lower halves of states that share the upper one. While they are few
// a list takes 4 bytes for each, and a bitmap up to 80; of many, it is the bitmap that
// takes least.
type chunk struct {
	few  sortedList[uint32]
	many *roaring.Bitmap // nil while they are few

	fresh, rested uint32 // states that came since it was last made small, and before
}

// fewest is how many are many: one of 4,096 states.
const fewest = 1 << 20

// add reports whether a state is new.
func (c *chunk) add(state uint32) bool {
	if c.many != nil {
		if !c.many.CheckedAdd(state) {
			return false
		}
		c.fresh++
		return true
	}
	if !c.few.add(state) {
		return false
	}
	c.fresh++
	if c.few.len() == fewest {
		c.few.merge()
		c.many = roaring.New()
		c.many.AddMany(c.few.all)
		c.few = sortedList[uint32]{}
	}
	return true
}

// rest makes the chunk small, as states of another come now. Where the two take turns it
// does so when a chunk has doubled, and not each time.
func (c *chunk) rest() {
	if c.fresh <= c.rested {
		return
	}
	c.rested, c.fresh = c.rested+c.fresh, 0
	if c.many != nil {
		c.many.RunOptimize()
	} else if all := c.few.all; cap(all) > len(all)+len(all)/8 {
		c.few.all = append(make([]uint32, 0, len(all)), all...)
	}
}

// each calls f with all states in their order, until it returns false.
func (c *chunk) each(f func(state uint32) bool) {
	if c.many != nil {
		c.many.Iterate(f)
		return
	}
	c.few.merge()
	for _, state := range c.few.all {
		if !f(state) {
			return
		}
	}
}

// A sortedList is a set of numbers, at the size of a number each in whatever order they
// come. To move all that are above one for each of them would take long, so those that
// come late wait until they are about the root of all.
type sortedList[T uint32 | uint64] struct {
	all  []T // increasing, but for those of late
	late []T // increasing; each was below the last of all
}

func (l *sortedList[T]) len() int { return len(l.all) + len(l.late) }

// add reports whether a number is new.
func (l *sortedList[T]) add(n T) bool {
	if i := len(l.all); i == 0 || n > l.all[i-1] {
		l.all = append(l.all, n)
		return true
	}
	if _, found := slices.BinarySearch(l.all, n); found {
		return false
	}
	i, found := slices.BinarySearch(l.late, n)
	if found {
		return false
	}
	l.late = slices.Insert(l.late, i, n)
	if len(l.late)*len(l.late) > len(l.all) {
		l.merge()
	}
	return true
}

// merge brings the late ones to their places, the last first.
func (l *sortedList[T]) merge() {
	end := len(l.all)
	l.all = append(l.all, l.late...)
	for i, n := range slices.Backward(l.late) {
		at, _ := slices.BinarySearch(l.all[:end], n)
		copy(l.all[at+i+1:], l.all[at:end])
		l.all[at+i] = n
		end = at
	}
	l.late = l.late[:0]
}
