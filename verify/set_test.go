package verify

import (
	"math/rand/v2"
	"testing"
)

// TestStateSet compares a set with a list of what came, of states that are dense, that
// lie alone, and between, in many orders.
func TestStateSet(t *testing.T) {
	orders := map[string]func(i, n int) int{
		"increasing":             func(i, _ int) int { return i },
		"a few are late":         func(i, _ int) int { return i ^ (i/64)%2*7 },
		"in no order":            func(_, n int) int { return rand.IntN(3 * n) },
		"falling":                func(i, n int) int { return n - i },
		"one half, then between": func(i, n int) int { return i*2%n + i*2/n },
		"each of them twice":     func(i, _ int) int { return i / 2 },
		"the last ones again":    func(i, n int) int { return i % (n - n/10) },
	}
	for name, of := range map[string]struct {
		states func(i int) uint64 // increasing
		n      int
	}{
		"dense":            {func(i int) uint64 { return 7<<32 + uint64(i) }, fewest * 5 / 2},
		"1,024 of a chunk": {func(i int) uint64 { return uint64(i) << 22 }, 1 << 16},
		"64 of a chunk":    {func(i int) uint64 { return uint64(i) << 26 }, 1 << 16},
		"32 of a chunk":    {func(i int) uint64 { return uint64(i) << 27 }, 1 << 16},
		"alone":            {func(i int) uint64 { return uint64(i) << 32 }, 1 << 16},
		"many and alone in turn": {func(i int) uint64 {
			first, in := uint64(i>>10)<<42, uint64(i&1023)
			return first + in<<(uint64(i>>10)%2*32)
		}, 1 << 16},
	} {
		for order, index := range orders {
			t.Run(name+", "+order, func(t *testing.T) {
				t.Parallel()
				var s stateSet
				seen := make([]bool, 3*of.n)
				for i := range of.n {
					n := index(i, of.n)
					if got := s.add(of.states(n)); got == seen[n] {
						t.Fatalf("the %dth, %d: new %v", i, n, got)
					}
					seen[n] = true
				}
				next := 0
				s.each(func(state uint64) bool {
					for ; !seen[next]; next++ {
					}
					if want := of.states(next); state != want {
						t.Fatalf("%d, not %d", state, want)
					}
					next++
					return true
				})
				for ; next < len(seen); next++ {
					if seen[next] {
						t.Fatalf("%d is left out at the end", of.states(next))
					}
				}
				if dense := name == "dense"; dense && s.chunks[7].many == nil || name == "alone" && len(s.chunks) > 0 {
					t.Errorf("%d chunks, %d lone", len(s.chunks), s.lone.len())
				}
			})
		}
	}
}

// Two chunks that take turns at each state do not copy what they have each time.
func TestChunksTakeTurns(t *testing.T) {
	var c chunk
	for i := range 1 << 16 {
		c.add(uint32(i))
		c.rest()
	}
	if n := testing.AllocsPerRun(1000, func() {
		c.add(uint32(c.few.len()))
		c.rest()
	}); n > 0.1 {
		t.Errorf("%.2f allocations for each", n)
	}
}
