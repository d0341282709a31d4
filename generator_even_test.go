package firn_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
)

// A manual clock stands still until it is moved.
type manual struct{ at time.Time }

func (c *manual) now() time.Time       { return c.at }
func (c *manual) move(d time.Duration) { c.at = c.at.Add(d) }

// year is where a manual clock begins.
var year = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func manualGenerator(t testing.TB, l firn.Layout, borrow time.Duration) (*firn.Generator, *manual) {
	t.Helper()
	c := &manual{year}
	grant := firn.Grant{Worker: l.Workers() - 1, Base: l.Tick(year) - 1, Horizon: l.Last()}
	return generator(t, l, grant, &firn.GeneratorOptions{Now: c.now, Borrow: borrow}), c
}

// A spread counts ids by their lowest bits, of the field seq.
type spread struct {
	bits  int // that should be even
	shift int
	count []int
	total int
	last  int
	gap   int // steps that were not to the next class
}

func newSpread(l firn.Layout, bits int) *spread {
	f, _ := l.Field("seq")
	return &spread{bits: bits, shift: f.Shift, count: make([]int, 1<<bits)}
}

func (s *spread) add(id firn.ID) {
	class := int(id>>s.shift) & (len(s.count) - 1)
	if s.total > 0 && class != (s.last+1)&(len(s.count)-1) {
		s.gap++
	}
	s.count[class]++
	s.last = class
	s.total++
}

// check fails unless, for each n up to bits, no class of id % 2^n has two more
// than another.
func (s *spread) check(t *testing.T) {
	t.Helper()
	if s.gap > 0 {
		t.Fatalf("%d of %d steps are not to the next class", s.gap, s.total)
	}
	for n := 1; n <= s.bits; n++ {
		classes := make([]int, 1<<n)
		for i, k := range s.count {
			classes[i&(len(classes)-1)] += k
		}
		low, high := classes[0], classes[0]
		for _, k := range classes {
			low, high = min(low, k), max(high, k)
		}
		if high > low+1 {
			t.Errorf("of %d ids some class of id %% 2^%d has %d and another %d", s.total, n, low, high)
		}
	}
}

// A rate says how many ids come next and how long nothing happens after them.
type rate struct {
	name string
	next func() (ids int, pause time.Duration)
}

var rates = []rate{
	{"1 a ms", func() (int, time.Duration) { return 1, time.Millisecond }},
	{"1 in 3 ms", func() (int, time.Duration) { return 1, 3 * time.Millisecond }},
	{"3 a ms", func() (int, time.Duration) { return 3, time.Millisecond }},
	{"1 in 4096 ms", func() (int, time.Duration) { return 1, 4096 * time.Millisecond }},
	{"any", func() (int, time.Duration) { return rand.IntN(20), rand.N(10 * time.Millisecond) }},
	{"bursts", func() (int, time.Duration) { return rand.IntN(9000), rand.N(time.Second) }},
	{"seldom", func() (int, time.Duration) { return 1, rand.N(100 * time.Hour) }},
}

// id % 2^n is even at any rate, for all bits of the sequence, and for all but
// two where nothing may be borrowed.
func TestEven(t *testing.T) {
	const enough = 50_000
	for _, tt := range []struct {
		spec   string
		borrow time.Duration
		bits   int
	}{
		{"time:41@1ms,worker:10,seq:12", 0, 12},
		{"time:41@1ms,worker:5,seq:17", 0, 17},
		{"time:41@1ms,worker:10,seq:12", -1, 10},
		{"time:41@1ms,worker:10,seq:3", 0, 3},
		{"time:41@1ms,worker:10,seq:1", 0, 1},
		{"time:39@10ms,seq:8,machine:16", 0, 8},
		{"time:52@1us,seq:8", 0, 8},
		{"time:32@1s,worker:5,seq:13", 0, 11}, // a tick cannot be borrowed
		{"time:28@10s,worker:5,seq:5", 0, 3},
		{"seq:12,time:41@1ms", 0, 12},
	} {
		l := firn.MustLayout(tt.spec + ";epoch=2020-01-01T00:00:00Z")
		for _, r := range rates {
			t.Run(fmt.Sprint(tt.spec, " ", r.name), func(t *testing.T) {
				g, clock := manualGenerator(t, l, tt.borrow)
				s := newSpread(l, tt.bits)
				for range enough {
					n, pause := r.next()
					ids, err := g.TryAppend(nil, n)
					if err != nil {
						t.Fatal(err)
					}
					for _, id := range ids {
						s.add(id)
					}
					clock.move(pause)
					if s.total > enough || clock.at.After(year.AddDate(4, 0, 0)) {
						break
					}
				}
				s.check(t)
			})
		}
	}
}

// The ids of a year at one a millisecond are too many. But where the sequence
// of a tick begins follows from the number before alone, so that a quarter
// of an hour of them, and then some at each of many instants of the year, say it
// all.
func TestEvenForAYear(t *testing.T) {
	l := firn.MustLayout("firn;epoch=2025-01-01T00:00:00Z")
	g, clock := manualGenerator(t, l, 0)
	s := newSpread(l, 12)
	id := next(t, g)
	s.add(id)
	one := func(d time.Duration) {
		clock.move(d)
		id, err := g.Try()
		if err != nil {
			t.Fatal(err)
		}
		if tick := l.Tick(clock.at); firn.Tick(id>>22) != tick {
			t.Fatalf("tick %d at %s, which is %d", id>>22, clock.at, tick)
		}
		s.add(id)
	}
	for range 900_000 {
		one(time.Millisecond)
	}
	for clock.at.Before(year.AddDate(1, 0, 0)) {
		one(rand.N(2 * 365 * time.Minute).Truncate(time.Millisecond))
		for range 100 {
			one(time.Millisecond)
		}
	}
	s.check(t)
}

// Where nothing may be borrowed a tick has three quarters of its sequence at
// least, and all of it where the one before was used up.
func TestEvenLeavesRoom(t *testing.T) {
	l := firn.MustLayout("time:32@1s,worker:5,seq:13;epoch=2020-01-01T00:00:00Z")
	g, clock := manualGenerator(t, l, 0)
	for range 300 {
		if _, err := g.TryAppend(nil, rand.IntN(6000)); err != nil {
			t.Fatal(err)
		}
		clock.move(time.Second)
		if ids, err := g.TryAppend(nil, 10_000); err != nil || len(ids) < 6144 {
			t.Fatalf("%d ids in a tick of 8,192, %v", len(ids), err)
		}
		clock.move(time.Second)
		if ids, err := g.TryAppend(nil, 10_000); err != nil || len(ids) != 8192 {
			t.Fatalf("%d ids in a tick of 8,192 after one that was used up, %v", len(ids), err)
		}
	}
}

// Callers at once, and waits, do not disturb it.
func TestEvenAmongCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := generator(t, small, grantOf(small, time.Hour), nil)
		in := inspect(t, small, grantOf(small, time.Hour), 0)
		in.grant.Worker = 1
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 1000 {
					in.call(func() ([]firn.ID, error) { return ask(t.Context(), g) })
					if rand.IntN(20) == 0 {
						time.Sleep(rand.N(20 * time.Millisecond))
					}
				}
			})
		}
		wg.Wait()
		s := newSpread(small, 4)
		for _, id := range in.unique() {
			s.add(id)
		}
		s.check(t)
	})
}

// Many lives of one id each are even as well: a program that runs, takes an id
// and ends, again and again.
func TestEvenOverManyLives(t *testing.T) {
	for _, tt := range []struct {
		l           firn.Layout
		shift, bits int // of the sequence
	}{{usual, 0, 6}, {usual, 6, 6}, {small, 0, 4}, {coarse, 0, 2}} {
		clock := &manual{year}
		base := tt.l.Tick(year) - 1
		seq, _ := tt.l.Field("seq")
		const each, deviation = 400, 20 // of a fair draw
		count := make([]int, 1<<tt.bits)
		for range each << tt.bits {
			g := generator(t, tt.l, firn.Grant{Base: base, Horizon: tt.l.Last()}, &firn.GeneratorOptions{Now: clock.now})
			count[seq.Of(next(t, g))>>tt.shift&int64(len(count)-1)]++
			base = g.Close()
			clock.move(tt.l.Unit())
		}
		for class, n := range count {
			if n < each-7*deviation || n > each+7*deviation {
				t.Fatalf("%s: %d of %d lives began with class %d of %d", tt.l, n, each<<tt.bits, class, len(count))
			}
		}
	}
}
