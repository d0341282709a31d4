package supply

import (
	"sync/atomic"

	"github.com/firn-id/firn"
)

// A run is consecutive numbers that one grant gave.
type run struct {
	_     [64]byte
	taken atomic.Uint64 // how many were taken; more than there are where callers were refused
	_     [56]byte

	// Read by every call, written a few times.
	lane   *Lane
	limit  atomic.Uint64 // so many may be taken without looking at anything else; 0 once closed
	base   int64         // number before the first
	stride int64
	count  uint64
	_      [24]byte
}

// id is the ith number, from 1 on.
func (r *run) id(i uint64) firn.ID { return firn.ID(r.base + int64(i)*r.stride) }

func (r *run) left() int64 { return int64(r.count - min(r.taken.Load(), r.count)) }

// A Ticket is numbers that a call has taken from a run, and may use once they were found
// valid. They are taken first and compared after, on their own value. So what is closed or
// forgotten stays so however long a goroutine pauses in between.
type Ticket struct {
	run *run
	end uint64 // the last of them
}

// Draw takes one number.
func (s *Supply) Draw() Ticket {
	r := s.first.Load()
	return Ticket{r, r.taken.Add(1)}
}

// DrawAll takes n numbers of the run in hand, if it has as many.
func (s *Supply) DrawAll(n int) (t Ticket, ok bool) {
	r := s.first.Load()
	for {
		taken := r.taken.Load()
		t = Ticket{r, taken + uint64(n)}
		if t.end > r.count {
			return t, false
		}
		if r.taken.CompareAndSwap(taken, t.end) {
			return t, true
		}
	}
}

// Valid reports whether the numbers of a ticket may be used.
func (t Ticket) Valid() bool { return t.end <= t.run.limit.Load() }

// ID is the last number of a ticket, which is the only one of Draw.
func (t Ticket) ID() firn.ID { return t.run.id(t.end) }

// Range is the n numbers of a ticket.
func (t Ticket) Range(n int) firn.Range {
	return firn.Range{First: t.run.id(t.end - uint64(n) + 1), Count: n, Step: t.run.stride}
}

// Late reports whether the numbers of a ticket that is beyond its run's limit may be used
// nevertheless. If so, the next block is due, and is asked for.
func (s *Supply) Late(t Ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || t.end > t.run.count || t.run.lane.failed != nil {
		return false
	}
	t.run.lane.call()
	return true
}

// takeFrom takes all that c wants of runs, the first ones first, or nothing. Only the
// first run may lose numbers to others at the same time.
func (c *Call) takeFrom(runs []*run) {
	if c.Whole {
		for _, r := range runs {
			if r.give(c, c.want); c.want == 0 {
				return
			}
		}
		return
	}
	others := 0
	for _, r := range runs[min(1, len(runs)):] {
		others += int(r.left())
	}
	for _, r := range runs {
		if !r.give(c, c.want-others) {
			return
		}
		others = c.want
	}
}

// give gives c what it wants of the run, if that has as many as least. It reports
// whether it had.
func (r *run) give(c *Call, least int) bool {
	for {
		taken := r.taken.Load()
		n := min(c.want, int(r.count-min(taken, r.count)))
		if n < least {
			return false
		}
		if n == 0 {
			return true
		}
		if r.taken.CompareAndSwap(taken, taken+uint64(n)) {
			c.got = append(c.got, firn.Range{First: r.id(taken + 1), Count: n, Step: r.stride})
			c.want -= n
			return true
		}
	}
}
