package main

import (
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// A stateSet has the lower halves of states that share the upper one. While they are few
// a sorted list takes 4 bytes for each that came in order, a hash set 5 to 9 for each
// that did not, and a bitmap up to 80; of many, it is the bitmap that takes least.
type stateSet struct {
	rising []uint32
	late   map[uint32]struct{} // below one that came before
	many   *roaring.Bitmap     // nil while they are few

	fresh, rested uint32 // states that came since it was last made small, and before
}

// fewest is how many are many: one of 4,096 states.
const fewest = 1 << 20

// add reports whether a state is new.
func (s *stateSet) add(state uint32) bool {
	if !s.insert(state) {
		return false
	}
	s.fresh++
	if len(s.rising)+len(s.late) == fewest {
		s.many = roaring.New()
		s.many.AddMany(s.rising)
		s.many.AddMany(slices.Sorted(maps.Keys(s.late)))
		s.rising, s.late = nil, nil
	}
	return true
}

func (s *stateSet) insert(state uint32) bool {
	if s.many != nil {
		return s.many.CheckedAdd(state)
	}
	if n := len(s.rising); n == 0 || state > s.rising[n-1] {
		s.rising = append(s.rising, state)
		return true
	}
	return s.addLate(state)
}

func (s *stateSet) addLate(state uint32) bool {
	if _, found := slices.BinarySearch(s.rising, state); found {
		return false
	}
	if s.late == nil {
		s.late = map[uint32]struct{}{}
	}
	before := len(s.late)
	s.late[state] = struct{}{}
	return len(s.late) > before
}

// rest makes the set small, as states of another come now. Where the two take turns it
// does so when a set has doubled, and not each time.
func (s *stateSet) rest() {
	if s.fresh <= s.rested {
		return
	}
	s.rested, s.fresh = s.rested+s.fresh, 0
	if s.many != nil {
		s.many.RunOptimize()
	} else if cap(s.rising) > len(s.rising)+len(s.rising)/8 {
		s.rising = append(make([]uint32, 0, len(s.rising)), s.rising...)
	}
}

// each calls f with all states in their order. None is added after.
func (s *stateSet) each(f func(state uint32) bool) {
	if s.many != nil {
		s.many.Iterate(f)
		return
	}
	if len(s.late) > 0 {
		s.rising = slices.AppendSeq(s.rising, maps.Keys(s.late))
		slices.Sort(s.rising)
		s.late = nil
	}
	for _, state := range s.rising {
		f(state)
	}
}
