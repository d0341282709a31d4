package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/block"
)

// counters are the keys of the records that the drawers of a world draw from, one for each lane
// of the series. They stand for stores of their own, which fail together or one at a time.
var counters = [...]string{"segment/world", "segment/world1", "segment/world2"}

// counterOf returns whose lane's record has a key; -1: none's.
func counterOf(key string) int { return slices.Index(counters[:], key) }

// foreignSeries is below the numbers of a series that is in the place of the world's.
const foreignSeries = 1 << 40

// laneOf returns the lane that a number is of.
func (w *world) laneOf(n int64) int {
	if w.lanes == 1 {
		return 0
	}
	r := w.store.records[counters[0]].intact().counter
	return int((n - r.First) / r.Increment % int64(w.lanes))
}

// newCounter is the record that the schedule begins with, in the first store.
func (w *world) newCounter(s *memory) block.Record {
	r := block.Record{
		ID: "world", First: 1 + w.rng.Int64N(3), Max: math.MaxInt64, Increment: 1 + w.rng.Int64N(2),
		Step: 1 + w.rng.Int64N(8), Store: s.identity,
	}
	if w.chance(0.05) {
		r.Max = r.First + 60
	}
	if w.lanes > 1 {
		r.Stores = int64(w.lanes)
	} else {
		r.Strict = w.chance(0.15)
	}
	if w.kind.lossy() && w.chance(0.5) {
		r.Instance = s.promise(nil).Instance // else it was begun on a durable one
	}
	return r
}

// foundCounters writes the records that the schedule begins with.
func (s *memory) foundCounters() {
	r := s.w.newCounter(s)
	for i := range s.w.lanes {
		r.Offset = int64(i)
		s.write(counters[i], r.New().Encode(), s.w.newVersion())
	}
}

// repairCounter is what sequence.Recover does, with a margin that is above what
// was granted and forgotten.
func (w *world) repairCounter(s *memory) {
	for i, key := range counters[:w.lanes] {
		now := s.records[key].intact()
		if now == nil || s != w.store || !ours(now.counter) {
			continue
		}
		r := now.counter.Raised(now.counter.Reached) // what was handed back since is not part of the margin
		r.Reached = 0
		to := min(r.Granted+w.check.lost[i]+r.Stride(), r.Max)
		if w.wrong.belittles {
			to = r.Granted
		}
		r = r.Raised(to)
		r.Instance, r.Store = "", s.identity
		if w.kind.lossy() {
			r.Instance = s.promise(nil).Instance
		}
		w.logf("operator: the counter is raised")
		w.write(s, key, r.Encode(), s.records[key].version)
	}
	s.blank = s.blank && s != w.store
}

// recache is what sequence.SetCache does, some times in a row.
func (w *world) recache() {
	key := counters[w.rng.IntN(w.lanes)]
	for range 1 + w.rng.IntN(3) {
		w.after(w.upTo(50*time.Millisecond), func() {
			now := w.store.records[key]
			if now == nil || now.whole != nil || !ours(now.counter) || w.cutOff {
				return
			}
			r := now.counter
			r.Step = 1 + w.rng.Int64N(8)
			r.Writes++
			w.write(w.store, key, r.Encode(), now.version)
		})
	}
}

// counted: the store has carried out a write of a counter.
func (c *checker) counted(by *process, lane int, old, now *stored) {
	if ours(now.counter) {
		c.highest[lane] = max(c.highest[lane], now.counter.Granted)
	}
	if by == nil || old == nil {
		return
	}
	was, is := old.counter, now.counter
	if is.ID != was.ID || is.Writes != was.Writes+1 || is.Granted < was.Granted && is.Reached < was.Granted {
		c.w.fail(misstep, "p%d: makes %+v of %+v", by.id, is, was)
	}
}

// forgotten: the store has gone back.
func (c *checker) forgotten(s *memory) {
	for i, key := range counters {
		if r := s.records[key]; r != nil {
			c.lost[i] = max(c.highest[i]-r.counter.Granted, 0)
		}
	}
}

// drawn: somebody has got a number of a lane.
func (c *checker) drawn(d *drawer, lane int, n int64) {
	w := c.w
	w.total.Numbers++
	if w.kind.lossy() && !w.store.settled && !d.accepts {
		w.fail(misstep, "p%d: draws number %d from a store that can forget, which it does not accept", d.id, n)
	}
	by := fmt.Sprintf("p%d, run %d", d.id, d.life)
	if other, twice := c.numbers[n]; twice {
		w.fail(repeated, "number %d: drawn by %s and by %s", n, other, by)
		return
	}
	c.numbers[n] = by
	if w.trace != nil {
		w.logf("p%d draws %d", d.id, n)
	}
	if n >= foreignSeries {
		return
	}
	c.drawnMost = max(c.drawnMost, n)
	if n > c.highest[lane] {
		w.fail(outside, "p%d: number %d: granted were those up to %d", d.id, n, c.highest[lane])
	}
}

// noticed: who knows a counter draws no numbers once its record is gone or another series', or has
// less than was granted.
func (c *checker) noticed(l *lane, knew string, refused bool) {
	switch have := l.State.Have; {
	case knew == "" || l.State.Over:
	case refused:
		c.w.fail(unnoticed, "p%d: does not notice that its counter's record is gone", l.id)
	case have.ID != knew:
		c.w.fail(unnoticed, "p%d: does not notice that its counter's record is another series'", l.id)
	case l.top > 0 && have.Granted < l.top:
		c.w.fail(unnoticed, "p%d: does not notice that its counter's record says %d, and it was granted %d", l.id, have.Granted, l.top)
	}
}
