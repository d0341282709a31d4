package dated

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

var seeds = flag.Int("seeds", 1, "how many worlds of each kind are simulated")

// Years in zones with and without daylight saving: that which changes at 2:00,
// at midnight, and one in which a day is missing.
var years = []setup{
	{zone: "America/New_York", from: time.Date(2026, 1, 1, 17, 0, 0, 0, time.UTC)},
	{zone: "Asia/Ho_Chi_Minh", from: time.Date(2026, 1, 1, 5, 0, 0, 0, time.UTC)},
	{zone: "America/Sao_Paulo", from: time.Date(2018, 1, 1, 14, 0, 0, 0, time.UTC)},
	{zone: "Africa/Cairo", from: time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)},
	{zone: "Pacific/Apia", from: time.Date(2011, 1, 1, 22, 0, 0, 0, time.UTC)},
}

// worlds calls f with each kind of year; with -short, with the first.
func worlds(t *testing.T, change func(*setup), f func(*testing.T, *world)) {
	t.Helper()
	all := years
	if testing.Short() {
		all = years[:1]
	}
	for _, s := range all {
		t.Run(s.zone, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(*seeds) {
				s := s
				s.pattern, s.days, s.calls, s.procs, s.step, s.clock = "INV-{yyyyMMdd}-{6}", 365, 12, 3, 1, true
				change(&s)
				if w := check(t, s, seed); !t.Failed() {
					f(t, w)
				}
			}
		})
	}
}

// gaps counts the numbers that nobody was given.
func (w *world) gaps() (n int) {
	for _, counts := range w.counts {
		slices.Sort(counts)
		n += int(counts[len(counts)-1]) - len(counts)
	}
	return n
}

func dense(t *testing.T, w *world) {
	t.Helper()
	if n := w.gaps(); n > 0 {
		t.Errorf("%d numbers are missing", n)
	}
	if len(w.counts) < 360 || len(w.errs) > 0 {
		t.Errorf("%d dates, errors %v", len(w.counts), w.errs)
	}
}

// Where all goes well each date has its numbers without a gap, and the date is
// that of the store's clock.
func TestYear(t *testing.T) {
	worlds(t, func(*setup) {}, dense)
}

// A store without a clock leaves the date to the processes' own clocks.
func TestYearWithoutClock(t *testing.T) {
	worlds(t, func(s *setup) { s.clock = false }, dense)
}

// Clocks that are set cost at most the numbers whose date was over when they
// were written.
func TestYearOfClockSteps(t *testing.T) {
	burned := 0
	worlds(t, func(s *setup) { s.stepped = true }, func(t *testing.T, w *world) {
		if n := w.gaps(); n > w.burned {
			t.Errorf("%d numbers are missing, and %d were burned", n, w.burned)
		}
		burned += w.burned
	})
}

// Lost requests and replies, late ones, crashes and clock steps cost numbers, and
// repeat none.
func TestYearOfFaults(t *testing.T) {
	for _, step := range []int64{1, 7} {
		for _, clock := range []bool{true, false} {
			t.Run(fmt.Sprintf("step %d, clock %v", step, clock), func(t *testing.T) {
				worlds(t, func(s *setup) { s.stepped, s.lost, s.step, s.clock = true, 60, step, clock }, func(t *testing.T, w *world) {
					if w.gaps() == 0 || len(w.issued) < 3000 {
						t.Errorf("%d issued, %d missing, errors %v", len(w.issued), w.gaps(), w.errs)
					}
				})
			})
		}
	}
}

// A store that forgets its last writes with a server stops everybody until its
// operator has raised the counters.
func TestYearOfFailovers(t *testing.T) {
	for _, step := range []int64{1, 7} {
		t.Run(fmt.Sprint("step ", step), func(t *testing.T) {
			worlds(t, func(s *setup) {
				s.lossy, s.lost, s.step = true, 30, step
				s.raise = 4 * max(3*int64(s.procs), step) // four writes are forgotten at most
			}, func(t *testing.T, w *world) {
				if w.run < 20 || w.errs[fmt.Sprint(OtherInstance)] == 0 || len(w.issued) < 3000 {
					t.Errorf("%d instances, %d issued, errors %v", w.run, len(w.issued), w.errs)
				}
			})
		})
	}
}

// Without a date the series is one, whatever the clock does.
func TestYearWithoutDate(t *testing.T) {
	worlds(t, func(s *setup) { s.pattern, s.stepped, s.lost = "T{1+}", true, 60 }, func(t *testing.T, w *world) {
		if len(w.counts) != 1 || w.gaps() == 0 {
			t.Errorf("%d counters, %d missing", len(w.counts), w.gaps())
		}
	})
}

// A process that was suspended does not trust what it read of the store's clock
// before, though hardly any time has passed for it.
func TestSuspended(t *testing.T) {
	w := newWorld(setup{zone: "UTC", pattern: "{yyyyMMdd}-{6}", from: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), step: 10, clock: true}, 1)
	now := Instant{w.start, time.Minute}
	d := newDrawer(w.rules(), Definition{V: record.Format}, w.durability(), now)
	for do := d.begin(now, 1, 1); do.Op != record.None; {
		do = d.answer(now, do, w.answerOf(do, "one"))
	}
	if d.err != nil || !d.ready(Instant{now.Wall.Add(slop), now.Mono + slop}) {
		t.Fatalf("nothing is in hand: %v", d.err)
	}
	if d.ready(Instant{now.Wall.Add(8 * time.Hour), now.Mono + slop}) {
		t.Error("yesterday's numbers are used")
	}
}

// A counter that has not heeded a restoration which this process has is one from
// before, however high it is.
func TestCounterOfBefore(t *testing.T) {
	w := newWorld(setup{pattern: "{1+}", step: 1, from: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}, 1)
	now := Instant{w.start, time.Minute}
	def := Definition{V: record.Format, ID: "one", Raised: []Raise{{By: 10}}}
	w.records[Key("s")] = store.Record{Value: record.Encode(def), Version: "def"}
	d := newDrawer(w.rules(), def, w.durability(), now)
	draw := func() {
		for do := d.begin(now, 1, 1); do.Op != record.None; {
			do = d.answer(now, do, w.answerOf(do, store.NewVersion()))
		}
	}
	if draw(); d.err != nil || d.hand.Last != 11 {
		t.Fatalf("%+v, %v", d.hand, d.err)
	}
	d.deal(1)
	w.records[KeyCounter("s", "")] = store.Record{Value: record.Encode(Counter{V: record.Format, Count: 500}), Version: "other"}
	var forgot *store.ForgotError
	if draw(); !errors.As(d.err, &forgot) {
		t.Errorf("%+v, %v", d.hand, d.err)
	}
}
