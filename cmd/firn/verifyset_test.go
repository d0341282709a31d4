package main

import (
	"math/rand/v2"
	"testing"
)

// TestStateSet compares a set with a map, while its states are few and after.
func TestStateSet(t *testing.T) {
	for name, of := range map[string]func(i int) uint32{
		"increasing":          func(i int) uint32 { return uint32(i) },
		"a few are late":      func(i int) uint32 { return uint32(i ^ (i/64)%2*7) },
		"in no order":         func(int) uint32 { return rand.Uint32N(4 * fewest) },
		"falling":             func(i int) uint32 { return uint32(2*fewest - i) },
		"each of them twice":  func(i int) uint32 { return uint32(i / 2) },
		"the last ones again": func(i int) uint32 { return uint32(i % (fewest + fewest/8)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s stateSet
			seen := make([]bool, 5*fewest)
			for i := range fewest + fewest/4 {
				state := of(i)
				if got := s.add(state); got == seen[state] {
					t.Fatalf("the %dth, %d: new %v", i, state, got)
				}
				seen[state] = true
				if i%(fewest/8) == 0 {
					s.rest()
				}
			}
			next := 0
			s.each(func(state uint32) bool {
				for ; next < int(state); next++ {
					if seen[next] {
						t.Fatalf("%d is left out before %d", next, state)
					}
				}
				if !seen[state] {
					t.Fatalf("%d was never added", state)
				}
				next++
				return true
			})
			if name != "each of them twice" && s.many == nil {
				t.Error("they are few")
			}
		})
	}
}

// Two sets that take turns at each state do not copy what they have each time.
func TestStateSetsTakeTurns(t *testing.T) {
	var s stateSet
	for i := range 1 << 16 {
		s.add(uint32(i))
		s.rest()
	}
	if n := testing.AllocsPerRun(1000, func() {
		s.add(uint32(len(s.rising)))
		s.rest()
	}); n > 0.1 {
		t.Errorf("%.2f allocations for each", n)
	}
}
