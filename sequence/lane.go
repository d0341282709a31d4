package sequence

import (
	"errors"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
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

	granted int64   // numbers put into runs or given to calls
	used    firn.ID // highest number given to a call that waited for it
	thrown  int64   // numbers granted to calls that had been given up
	driver  block.Driver
	failed  error // final: nothing of this lane is issued any more
	ended   error // what Close says of it; read once its keeper is done
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

// call is for when the run has come to its limit: the next block is due.
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
// block is asked for.
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
	r.limit.Store(uint64(max(int64(r.count)-max(l.driver.Low()-after, 0), 0)))
}

// takeFrom takes all that w wants of runs, the first ones first, or nothing. Only the
// first run may lose numbers to others at the same time.
func (w *waiter) takeFrom(runs []*run) {
	if w.whole {
		for _, r := range runs {
			if r.give(w, w.n); w.n == 0 {
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
		if !r.give(w, w.n-others) {
			return
		}
		others = w.n
	}
}

// give gives w what it wants of the run, if that has as many as least. It reports
// whether it had.
func (r *run) give(w *waiter, least int) bool {
	for {
		taken := r.taken.Load()
		n := min(w.n, int(r.count-min(taken, r.count)))
		if n < least {
			return false
		}
		if n == 0 {
			return true
		}
		if r.taken.CompareAndSwap(taken, taken+uint64(n)) {
			w.got = append(w.got, firn.Range{First: r.id(taken + 1), Count: n, Step: r.stride})
			w.n -= n
			return true
		}
	}
}

// deliver gives a grant, and what was in hand, to the calls that wait, longest first,
// and keeps the rest in hand. It is called with the series' mu held.
func (l *lane) deliver(g block.Grant, strict bool) {
	s := l.series
	l.granted += g.Count
	r := &run{lane: l, base: g.First - g.Stride, stride: g.Stride, count: uint64(g.Count)}
	if !strict {
		l.spare = append(l.spare, r)
	}
	kept := s.queue[:0]
	for _, w := range s.queue {
		switch {
		case !strict:
			s.serveInHand(w)
		// In a strict series, whoever began to wait after the request was sent
		// may know of a larger number already.
		case w.asked&l.place != 0:
			w.takeFrom([]*run{r})
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
	if strict {
		if taken := r.taken.Load(); taken > 0 {
			l.used = max(l.used, r.id(taken))
		}
		l.thrown += r.left()
		l.granted -= r.left()
	}
	s.rearm() // not before all were served: others take from runs without the lock then
}

// deny ends the calls that the lane was asked for and has no numbers for, but
// for those that another lane may have some for. Where the series has too few numbers for
// the first of them, others may want fewer.
func (l *lane) deny(err error) {
	var end *EndError
	exhausted := errors.As(err, &end)
	for _, w := range l.series.queue {
		if w.asked&l.place == 0 {
			continue
		}
		w.denied |= l.place
		if exhausted && end.Left > 0 {
			break
		}
	}
	for _, w := range l.series.queue {
		w.asked &^= l.place
	}
	if exhausted {
		err = &EndError{Name: end.Name, Max: end.Max, Left: end.Left + l.series.left()}
	}
	l.series.fail(err)
}

// fail ends the lane for good. It is called with the series' mu held.
func (l *lane) fail(err error) {
	if l.failed != nil {
		return
	}
	l.failed = err
	l.shut()
	l.series.options.Logger.Error("nothing is issued any more", "series", l.series.name, "err", err, "hint", nextStep(err))
	l.series.fail(err)
	l.wake()
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
