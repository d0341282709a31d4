package supply

import (
	"errors"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
)

// A Lane is what a process has of one store. Its fields are guarded by the mutex of the Supply.
type Lane struct {
	supply *Supply
	world  World
	place  set

	now   *run   // the one that numbers are taken from
	spare []*run // those after it

	granted int64   // numbers put into runs or given to calls
	used    firn.ID // highest number given to a call that waited for it
	thrown  int64   // numbers granted to calls that had been given up
	failed  error   // final: nothing of this lane is issued any more
	driver  block.Driver
	updates bool // the World can Update
	closing closing
}

// Open begins to use the lane, whose record was read by d. With updates the World can Update.
func (l *Lane) Open(d block.Driver, updates bool) {
	l.supply.mu.Lock()
	defer l.supply.mu.Unlock()
	away := l.driver.Away
	l.driver, l.updates = d, updates
	l.world.Stepped(nil, block.Action{}, away, l.status())
}

// Away takes note that the store of a lane that is not open yet does not answer.
func (l *Lane) Away() {
	l.supply.mu.Lock()
	defer l.supply.mu.Unlock()
	l.driver.Away = l.world.Clocks().Wall
}

// Status returns where the lane stands.
func (l *Lane) Status() Status {
	l.supply.mu.Lock()
	defer l.supply.mu.Unlock()
	return l.status()
}

func (l *Lane) status() Status {
	return Status{
		Driver: l.driver, Left: l.left(), Issued: l.issued(), Thrown: l.thrown, Waits: l.supply.waits, Failed: l.failed,
	}
}

// Abandon ends the lane for good, unless the series is closed.
func (l *Lane) Abandon(err error) {
	l.supply.mu.Lock()
	defer l.supply.mu.Unlock()
	if !l.supply.closed {
		l.fail(err)
	}
}

// left is how many numbers are in hand.
func (l *Lane) left() int64 {
	n := l.now.left()
	for _, r := range l.spare {
		n += r.left()
	}
	return n
}

// issued is how many numbers were given out so far.
func (l *Lane) issued() int64 { return l.granted - l.left() }

// call is for when the run has come to its limit: the next block is due.
func (l *Lane) call() {
	l.now.limit.Store(l.now.count)
	l.world.Wake()
}

// arm makes the run call when as few numbers are left as are used while the next
// block is asked for.
func (l *Lane) arm() {
	for l.now.left() == 0 && len(l.spare) > 0 {
		if l.now.count > 0 {
			l.used = max(l.used, l.now.id(l.now.count))
		}
		l.now, l.spare = l.spare[0], l.spare[1:]
		if len(l.supply.lanes) == 1 {
			l.supply.first.Store(l.now)
		}
	}
	after := l.left() - l.now.left()
	r := l.now
	r.limit.Store(uint64(max(int64(r.count)-max(l.driver.Low()-after, 0), 0)))
}

// deliver gives a grant, and what was in hand, to the calls that wait, longest first,
// and keeps the rest in hand.
func (l *Lane) deliver(g block.Grant, strict bool) {
	s := l.supply
	l.granted += g.Count
	r := &run{lane: l, base: g.First - g.Stride, stride: g.Stride, count: uint64(g.Count)}
	if !strict {
		l.spare = append(l.spare, r)
	}
	kept := s.queue[:0]
	for _, c := range s.queue {
		switch {
		case !strict:
			s.serveInHand(c)
		// In a strict series, a call that began to wait after the request was sent
		// may know of a larger number already.
		case c.asked&l.place != 0:
			c.takeFrom([]*run{r})
		}
		c.asked &^= l.place
		if c.want == 0 {
			c.Done()
			continue
		}
		kept = append(kept, c)
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
func (l *Lane) deny(err error) {
	no := new(block.Refusal)
	exhausted := errors.As(err, &no) && no.Why == block.Ended
	for _, c := range l.supply.queue {
		if c.asked&l.place == 0 {
			continue
		}
		c.denied |= l.place
		if exhausted && no.Left > 0 {
			break
		}
	}
	for _, c := range l.supply.queue {
		c.asked &^= l.place
	}
	if exhausted {
		err = &block.Refusal{Why: block.Ended, Max: no.Max, Left: no.Left + l.supply.left()}
	}
	l.supply.fail(err)
}

// fail ends the lane for good.
func (l *Lane) fail(err error) {
	if l.failed != nil {
		return
	}
	l.failed = err
	l.shut()
	l.world.Failed(err)
	l.supply.fail(err)
	l.world.Wake()
}

// shut ends the lane's numbers for good. What is taken later sees limit 0.
func (l *Lane) shut() {
	for _, r := range append(l.spare, l.now) {
		r.limit.Store(0)
	}
}

// highest is the highest number that was issued, once the lane is shut. A number
// that was taken and refused counts as well.
func (l *Lane) highest() firn.ID {
	used := l.used
	for _, r := range append(l.spare, l.now) {
		if taken := min(r.taken.Load(), r.count); taken > 0 {
			used = max(used, r.id(taken))
		}
	}
	return used
}
