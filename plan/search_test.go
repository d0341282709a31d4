package plan

import (
	"math/rand/v2"
	"testing"
	"time"
)

var someDay = time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC)

// Where nothing is proposed there is nothing: no division of 63 bits with the
// epoch at the beginning of any year does.
func TestFindsWhatThereIs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	none := 0
	for range 400 {
		n := RandomNeed(r)
		if len(n.search(someDay)) > 0 {
			continue
		}
		none++
		if n.possible(someDay) {
			t.Errorf("%+v is possible, and nothing is proposed", n)
		}
		for range 2000 {
			unit := units[r.IntN(len(units))]
			worker, seq := n.least(unit)
			if worker+seq > 62 {
				continue
			}
			below := worker + seq + r.IntN(63-worker-seq)
			s := split{time: 63 - below, worker: worker, seq: below - worker, epoch: time.Date(1970+r.IntN(57), 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()}
			if l, ok := s.layout(unit); ok && n.meets(l, someDay) {
				t.Errorf("%+v: %s does, and nothing is proposed", n, l)
			}
		}
	}
	if none < 20 {
		t.Errorf("only %d of the questions had no answer", none)
	}
}

// The fewest bits are the fewest: one less and nothing does.
func TestFewestBits(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		n := RandomNeed(r)
		now := time.Date(2026+r.IntN(40), 1, 1, 0, 0, 0, 0, time.UTC)
		if r.IntN(3) > 0 {
			now = now.Add(time.Duration(r.Int64N(int64(365 * 24 * time.Hour))))
		}
		for _, unit := range units {
			if s, ok := n.fewest(unit, now); ok {
				if l, ok := n.roomiest(unit, s.bits(), now); !ok || l.Bits() != s.bits() {
					t.Errorf("%+v: %d bits do, and %s has them", n, s.bits(), l)
				}
				if l, ok := n.roomiest(unit, s.bits()-1, now); ok {
					t.Errorf("%+v: %d bits, and %s has fewer", n, s.bits(), l)
				}
			}
		}
	}
}
