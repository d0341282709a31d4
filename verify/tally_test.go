package verify_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/verify"
)

// TestTally compares a tally of random ids, dense and sparse, of several makers, with
// what a map says.
func TestTally(t *testing.T) {
	for name, layout := range firn.Presets() {
		t.Run(name, func(t *testing.T) {
			all := verify.NewTally(layout)
			seen, perMaker := make(map[firn.ID]bool), make(map[string]int64)
			var repeats int64
			span := int64(1) << 20
			for range 50_000 {
				p := firn.Parts{
					Tick: firn.Tick(1 + rand.Int64N(3)*span + rand.Int64N(4)), Seq: rand.Int64N(4),
					Worker: rand.Int64N(min(layout.Workers(), 3)), Shard: rand.Int64N(min(layout.Shards(), 3)),
				}
				if rand.IntN(2) == 0 {
					p.Tick = firn.Tick(1 + rand.Int64N(int64(layout.Last())))
				}
				p.Time = layout.Time(p.Tick)
				id, err := layout.Encode(p)
				if err != nil {
					t.Fatal(err)
				}
				if seen[id] {
					repeats++
				}
				seen[id] = true
				all.Add(id, nil)
				perMaker[strconv.FormatInt(p.Shard, 10)+" "+strconv.FormatInt(p.Worker, 10)]++
			}
			r := all.Report()
			if r.Repeats != repeats || repeats == 0 || r.Faults != 0 || r.IDs != 50_000 {
				t.Errorf("%d ids, %d repeats and %d faults, of %d repeats", r.IDs, r.Repeats, r.Faults, repeats)
			}
			for _, m := range r.Makers {
				var minutes, most int64
				for in := range m.Minutes() {
					minutes += in.IDs
					most = max(most, in.IDs)
				}
				want := perMaker[strconv.FormatInt(m.Shard, 10)+" "+strconv.FormatInt(m.Worker, 10)]
				if m.IDs != want || minutes != want || m.MostInMinute != most {
					t.Errorf("shard %d, worker %d made %d, by minutes %d; it was %d", m.Shard, m.Worker, m.IDs, minutes, want)
				}
			}
		})
	}
}

// TestTallyMemory: ids of makers that are seldom busy take little each, also where
// these were busy once.
func TestTallyMemory(t *testing.T) {
	const ids, makers = 1 << 18, 64
	start := firn.Default().Tick(time.Date(2025, 2, 1, 0, 0, 0, 0, time.UTC))
	for name, tick := range map[string]func(i int) firn.Tick{
		"one an hour":          func(i int) firn.Tick { return firn.Tick(i/makers) * 3_600_000 },
		"in no order":          func(int) firn.Tick { return rand.N[firn.Tick](3_600_000 * ids / makers) },
		"busy, and then alone": func(i int) firn.Tick { return max(firn.Tick(i), firn.Tick(i-ids/4)*3_600_000/8) },
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			all := verify.NewTally(firn.Default())
			for i := range ids {
				id, err := firn.Default().Encode(firn.Parts{Time: firn.Default().Time(start + tick(i)), Worker: int64(i % makers)})
				if err != nil {
					t.Fatal(err)
				}
				all.Add(id, nil)
			}
			if each := float64(heap()-before) / ids; each > 20 {
				t.Errorf("%.1f bytes for each id", each)
			}
			all.Report()
		})
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMinutes: gaps and minutes are by the time in the ids, whichever they were read
// in. A gap is of the minute of the id before it, also where it ends in a later one.
func TestMinutes(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	all := verify.NewTally(firn.Default())
	for _, d := range []time.Duration{0, 10, 15, 75, 76, 30, 38, 58, 30} {
		id, err := firn.Default().Encode(firn.Parts{Time: start.Add(d * time.Second), Worker: 7})
		if err != nil {
			t.Fatal(err)
		}
		all.Add(id, nil)
	}
	m := all.Report().Makers[0]
	want := []verify.Minute{{start, 7, 20 * time.Second}, {start.Add(time.Minute), 2, time.Second}}
	if got := slices.Collect(m.Minutes()); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if after := start.Add(38 * time.Second); m.LongestGap != 20*time.Second || !m.GapAfter.Equal(after) || m.MostInMinute != 7 {
		t.Errorf("longest gap %s after %s, most %d", m.LongestGap, m.GapAfter, m.MostInMinute)
	}
	for first := range m.Minutes() { // as often as one likes, and no further than one likes
		if first != want[0] {
			t.Errorf("%v first", first)
		}
		break
	}
}
