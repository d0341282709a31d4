package segment

import (
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment/block"
	"github.com/firn-id/firn/store"
)

// A lane is what a series has of one store. Its fields are guarded by the
// series' mu, except those of its keeper.
type lane struct {
	series *Series
	store  store.Store
	place  set
	nudge  chan struct{}

	now   *run   // the one that numbers are taken from
	spare []*run // those after it
	low   int64  // the next segment is due when so many numbers are left

	granted int64   // numbers put into runs or given to calls
	used    firn.ID // highest number given to a call that waited for it
	thrown  int64   // numbers granted to calls that had been given up
	state   block.State
	pace    block.Pace
	limits  block.Limits
	away    time.Time // since when the store does not answer; zero: it does
	refused error     // why the last request was granted nothing
	failed  error     // final: nothing of this lane is issued any more
	ended   error     // what Close says of it; read once its keeper is done
}

// left is how many numbers are in hand.
func (l *lane) left() int64 {
	n := l.now.left()
	for _, r := range l.spare {
		n += r.left()
	}
	return n
}

func (r *run) left() int64 { return int64(r.count - min(r.taken.Load(), r.count)) }

// issued is how many numbers were given out so far.
func (l *lane) issued() int64 { return l.granted - l.left() }

// call is for when the run has come to its limit: the next segment is due.
func (l *lane) call() {
	l.now.limit.Store(l.now.count)
	l.wake()
}

func (l *lane) wake() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

// arm makes the run call when as few numbers are left as are used while the next
// segment is asked for.
func (l *lane) arm() {
	for l.now.left() == 0 && len(l.spare) > 0 {
		if l.now.count > 0 {
			l.used = max(l.used, l.now.id(l.now.count))
		}
		l.now, l.spare = l.spare[0], l.spare[1:]
		if len(l.series.lanes) == 1 {
			l.series.first.Store(l.now)
		}
	}
	after := l.left() - l.now.left()
	r := l.now
	r.limit.Store(uint64(max(int64(r.count)-max(l.low-after, 0), 0)))
}

// give gives w what it wants of the numbers in hand.
func (l *lane) give(w *waiter) {
	for i := -1; i < len(l.spare) && w.n > 0; i++ {
		r := l.now
		if i >= 0 {
			r = l.spare[i]
		}
		r.give(w)
	}
	l.arm()
	if l.left() <= l.low {
		l.wake()
	}
}

func (r *run) give(w *waiter) {
	for {
		taken := r.taken.Load()
		if taken >= r.count || w.whole && r.count-taken < uint64(w.n) {
			return
		}
		n := min(uint64(w.n), r.count-taken)
		if r.taken.CompareAndSwap(taken, taken+n) {
			w.got = append(w.got, firn.Range{First: r.id(taken + 1), Count: int(n), Step: r.stride})
			w.n -= int(n)
			return
		}
	}
}

// deliver gives a grant to the calls that wait, longest first, and keeps the
// rest in hand. It is called with the series' mu held.
func (l *lane) deliver(g block.Grant, strict bool) {
	s := l.series
	l.granted += g.Count
	r := &run{lane: l, base: g.First - g.Stride, stride: g.Stride, count: uint64(g.Count)}
	kept := s.queue[:0]
	for _, w := range s.queue {
		// In a strict series, whoever began to wait after the request was sent
		// may know of a larger number already.
		if !strict || w.asked&l.place != 0 {
			r.give(w)
		}
		w.asked &^= l.place
		if w.n == 0 {
			close(w.done)
			continue
		}
		kept = append(kept, w)
	}
	clear(s.queue[len(kept):])
	s.queue = kept
	if taken := r.taken.Load(); taken > 0 {
		l.used = max(l.used, r.id(taken))
	}
	switch left := r.left(); {
	case left == 0:
	case strict:
		l.thrown += left
		l.granted -= left
	default:
		l.spare = append(l.spare, r)
	}
	l.arm()
}

// deny ends the calls that the lane was asked for and has no numbers for, but
// for those that another lane may have some for.
func (l *lane) deny(err error) {
	var end *ExhaustedError
	exhausted := errors.As(err, &end)
	for _, w := range l.series.queue {
		if w.asked&l.place == 0 {
			continue
		}
		w.denied |= l.place
		if exhausted && w.whole {
			break // smaller ones may fit
		}
	}
	for _, w := range l.series.queue {
		w.asked &^= l.place
	}
	l.series.fail(err)
}

// shut ends the lane's numbers for good. What is taken later sees limit 0.
func (l *lane) shut() {
	for _, r := range append(l.spare, l.now) {
		r.limit.Store(0)
	}
}

// highest is the highest number that was issued, once the lane is shut. A number
// that was taken and refused counts as well.
func (l *lane) highest() firn.ID {
	used := l.used
	for _, r := range append(l.spare, l.now) {
		if taken := min(r.taken.Load(), r.count); taken > 0 {
			used = max(used, r.id(taken))
		}
	}
	return used
}
