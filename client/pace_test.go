package client

import (
	"math/rand/v2"
	"testing"
	"time"
)

// run has calls use ids at a rate for so long, each request taking trip, and
// returns the pace at the end and how many requests there were.
func (p pace) run(l limits, from, span time.Duration, rate float64, trip time.Duration) (_ pace, used float64, asked int) {
	used = float64(p.used)
	for now := from; now < from+span; {
		p = p.next(now, int64(used), l)
		n := p.order(1, l).ids
		asked++
		p = p.answered(trip)
		lasts := max(time.Duration(float64(n)/rate*float64(time.Second)), trip, time.Microsecond)
		used += float64(n)
		now += lasts
	}
	return p, used, asked
}

func TestPaceFollowsTheRate(t *testing.T) {
	l := limits{most: 10_000, age: time.Second}
	for _, tt := range []struct {
		rate        float64
		trip        time.Duration
		least, most int // of a block
	}{
		{1, time.Millisecond, 1, 1},
		{10, time.Millisecond, 1, 3},
		{1000, time.Millisecond, 125, 260},
		{100_000, time.Millisecond, 10_000, 10_000},
		// A request takes half the time that an id may live: a block is twice what is used meanwhile.
		{1000, 400 * time.Millisecond, 400, 800},
	} {
		p, _, _ := pace{}.run(l, time.Second, 20*time.Second, tt.rate, tt.trip)
		if p.size < tt.least || p.size > tt.most {
			t.Errorf("at %v ids a second and %s for a request, a block has %d, want %d to %d", tt.rate, tt.trip, p.size, tt.least, tt.most)
		}
	}
}

func TestPaceAsksAFewTimesInALife(t *testing.T) {
	l := limits{most: 10_000, age: time.Second}
	p, used, _ := pace{}.run(l, time.Second, 10*time.Second, 5000, time.Millisecond)
	p.used = int64(used)
	if _, _, asked := p.run(l, p.at+time.Second/blocks, 10*time.Second, 5000, time.Millisecond); asked > 20*blocks {
		t.Errorf("%d requests in 10 s for ids that live 1 s", asked)
	}
}

func TestPaceDoublesAtMost(t *testing.T) {
	l := limits{most: 10_000, age: time.Second}
	p := pace{}
	r := rand.New(rand.NewPCG(1, 2))
	now, used := time.Second, int64(0)
	for range 10_000 {
		before := max(p.size, 1)
		p = p.next(now, used, l)
		if p.size > 2*before || p.size < 1 || p.size < before/2 || p.size > l.most {
			t.Fatalf("a block of %d after one of %d", p.size, before)
		}
		now += time.Duration(r.Int64N(int64(time.Second)))
		used += r.Int64N(1 << uint(r.IntN(20)))
		p = p.answered(time.Duration(r.Int64N(int64(time.Second))))
	}
}

func TestPaceOfSeldomCalls(t *testing.T) {
	l := limits{most: 10_000, age: time.Second}
	p := pace{}
	for i := range 20 {
		p = p.next(time.Duration(1+3*i)*time.Second, int64(i), l).answered(time.Millisecond)
		if n := p.order(1, l); n != (order{1, 1}) || p.ahead(l) {
			t.Fatalf("call %d, 3 s after the last: %d fetched, ahead %v", i, n, p.ahead(l))
		}
	}
}

func TestPaceFixed(t *testing.T) {
	for _, tt := range []struct {
		fixed, wanted, n int
		ahead            bool
	}{
		{1, 1, 1, false},
		{1, 70, 70, false}, // calls that wait are served together
		{100, 1, 100, true},
		{100, 150, 150, true},
		{100, 5000, 1000, true},
	} {
		l := limits{most: 1000, fixed: tt.fixed, age: time.Second}
		p := pace{}.next(time.Second, 0, l)
		if n := p.order(tt.wanted, l); n != (order{tt.n, tt.n}) || p.ahead(l) != tt.ahead {
			t.Errorf("fixed %d, wanted %d: %d, ahead %v; want %d, %v", tt.fixed, tt.wanted, n, p.ahead(l), tt.n, tt.ahead)
		}
	}
}

// Where a block of a given size is used up before the next is there, several are asked
// for together: what is used in two trips, up to a burst.
func TestPaceOfShortBlocks(t *testing.T) {
	for _, tt := range []struct {
		rate float64
		trip time.Duration
		most int
		age  time.Duration
		ids  int
	}{
		{1e5, time.Millisecond, 100_000, time.Second, 1000},          // a block lasts ten trips
		{1e6, time.Millisecond, 100_000, time.Second, 2000},          // a block lasts a trip
		{2e6, time.Millisecond, 100_000, time.Second, 4000},          // half a trip
		{1e9, time.Millisecond, 100_000, time.Second, burst * 1000},  // far less
		{1e9, time.Millisecond, 3000, time.Second, 3000},             // more would be too much for the caller,
		{1e6, time.Millisecond, 100_000, 3 * time.Millisecond, 1500}, // or too old
	} {
		l := limits{most: tt.most, fixed: 1000, age: tt.age}
		p, _, _ := pace{}.run(l, time.Second, time.Second, tt.rate, tt.trip)
		p.rate, p.at = tt.rate, 0 // that of run is held up by its requests
		for range 10 {
			p = p.next(0, 0, l)
		}
		if o := p.order(1, l); o != (order{tt.ids, 1000}) {
			t.Errorf("%+v: %+v", tt, o)
		}
	}
}
