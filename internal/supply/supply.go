// Package supply hands the numbers of one series to calls. Package sequence runs it with the
// system's clocks, stores and goroutines; the simulation runs the same code in a world of its
// own.
//
// The machine of package block, in a [block.Driver], decides what a process asks a store for.
// A [Lane] is what a process has of one store: the driver, and the numbers in hand. [Lane.Run]
// is its loop, one goroutine a lane: it does what the machine asks, and what it needs from
// outside it asks of a [World]. A [Supply] is the lanes of a series, and the calls that wait
// for numbers of any of them. So a call is served from what is in hand, or by the lane whose
// grant comes first.
//
//	call ── Draw ──► run in hand ── Valid ──► number     one atomic add, one compare
//	  └─ Take ──► in hand, or queue ◄── deliver ◄── lane ◄── grant ◄── machine ◄── store
//
// Why nothing is issued twice, given that no two grants of package block overlap: a number is
// taken from a run by an atomic add or compare-and-set, once. It is compared with the run's
// limit after it was taken. Close and a failure set the limit to 0, and only then read how
// many were taken: what was taken by then counts as issued, and is not handed back.
package supply

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/store"
)

// A Supply is what a process has of one series. Its methods may be called from many
// goroutines at once, after [Supply.Begin].
type Supply struct {
	// first is the run that Draw tries; with several lanes one without numbers.
	first atomic.Pointer[run]

	wait     time.Duration // how long a call waits
	patience time.Duration // with one request to the store, and with all that a close asks of it
	lanes    []*Lane

	mu     sync.Mutex // of all that is not a number in a run; guards the rest, and the lanes
	queue  []*Call    // that wait for numbers, longest first
	waits  int64      // calls that have waited so far
	turn   int        // the lane to draw from next, of several
	closed bool
}

// Begin makes a Supply with a lane for each world. Calls wait for so long at most. The lanes have
// nothing before [Lane.Open].
func (s *Supply) Begin(wait, patience time.Duration, worlds ...World) {
	s.wait, s.patience = wait, patience
	s.first.Store(&run{})
	for i, w := range worlds {
		l := &Lane{supply: s, world: w, place: 1 << i}
		l.now = &run{lane: l}
		s.lanes = append(s.lanes, l)
	}
	if len(s.lanes) == 1 {
		s.first.Store(s.lanes[0].now)
	}
}

// Lane returns the lane of the ith world.
func (s *Supply) Lane(i int) *Lane { return s.lanes[i] }

// A Call wants numbers.
type Call struct {
	N     int
	Whole bool   // in one range
	Done  func() // is called once, when a call that waited is over; it must not call the Supply

	want   int // how many are wanted yet; 0: it has them
	asked  set // lanes whose request under way is for it, too
	denied set // lanes that had none for it
	got    []firn.Range
	err    error
}

// A set is of lanes: a bit for each, by its place.
type set uint64

// Result is what came of a call that is over. With an error it has used up no number.
func (c *Call) Result() ([]firn.Range, error) { return c.got, c.err }

// An Outage says that fewer numbers are in hand than a call wants, and that no store has
// granted more for as long as a call waits.
type Outage struct {
	Want int
	Left int64         // in hand
	Wait time.Duration // how long the store has not answered, or the call has waited
	Err  error         // what came of the last request; nil while it is under way
}

func (e *Outage) Error() string {
	return fmt.Sprintf("%d of %d numbers in hand, for %s: %v", e.Left, e.Want, e.Wait, e.Err)
}

// Take takes the numbers that c wants from what is in hand, and reports whether the call is
// over. Otherwise it waits from now on.
func (s *Supply) Take(c *Call) (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.err = s.refusal(c.N); c.err != nil {
		return true
	}
	c.want = c.N
	// A call that waits wants more than is in hand. The store is asked for all of it, so
	// that calls for less, which are served meanwhile, never keep it waiting.
	s.serveInHand(c)
	s.rearm()
	if c.want == 0 {
		return true
	}
	s.queue = append(s.queue, c)
	s.waits++
	for _, l := range s.lanes {
		l.world.Wake()
	}
	return false
}

// GiveUp ends a call that has waited, for a cause of the caller's, or with nil because it has
// waited for long enough. A call that was served, or refused, at the last moment stays so.
func (s *Supply) GiveUp(c *Call, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, c)
	if i < 0 {
		return
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	if c.err = cause; cause == nil {
		c.err = &Outage{Want: c.N, Left: s.left(), Wait: s.wait, Err: s.trouble()}
	}
}

// trouble is what came of the last request to a store that does not answer.
func (s *Supply) trouble() error {
	for _, l := range s.lanes {
		if l.failed == nil && l.driver.State.Err != nil {
			return l.driver.State.Err
		}
	}
	return nil
}

// refusal is why no call for n numbers is served now; nil if some may be.
func (s *Supply) refusal(n int) error {
	if s.closed {
		return firn.ErrClosed
	}
	var failed, away error
	for _, l := range s.lanes {
		d := &l.driver
		out := l.world.Clocks().Wall.Sub(d.Away)
		switch {
		case l.failed != nil:
			failed = l.failed
		case d.Away.IsZero() || out < s.wait && !errors.Is(d.State.Err, store.ErrDenied) || l.left() > 0:
			return nil
		default:
			away = &Outage{Want: n, Wait: out, Err: d.State.Err}
		}
	}
	if away != nil {
		return away
	}
	return failed
}

// serveInHand gives c all that it wants of the numbers in hand, beginning at the next lane; or
// nothing, if there are fewer. Rearm is to be called after.
func (s *Supply) serveInHand(c *Call) {
	s.turn++
	var runs []*run
	for i := range s.lanes {
		if l := s.lanes[(s.turn+i)%len(s.lanes)]; l.failed == nil {
			runs = append(append(runs, l.now), l.spare...)
		}
	}
	c.takeFrom(runs)
}

// rearm is called once numbers in hand were taken: runs that are used up are replaced,
// and the next blocks asked for where they are due.
func (s *Supply) rearm() {
	for _, l := range s.lanes {
		if l.failed != nil {
			continue
		}
		if l.arm(); l.left() <= l.driver.Low() {
			l.world.Wake()
		}
	}
}

// left is how many numbers are in hand, of all lanes.
func (s *Supply) left() (n int64) {
	for _, l := range s.lanes {
		if l.failed == nil {
			n += l.left()
		}
	}
	return n
}

// end ends the calls that wait and that why has an error for.
func (s *Supply) end(why func(*Call) error) {
	s.queue = slices.DeleteFunc(s.queue, func(c *Call) bool {
		if c.err = why(c); c.err == nil {
			return false
		}
		c.Done()
		return true
	})
}

// refuse ends the calls that wait for what no store grants until somebody gives this user a
// right. The lanes go on asking, so numbers come again once somebody does.
func (s *Supply) refuse() {
	s.end(func(c *Call) error { return s.refusal(c.N) })
}

// fail ends every call that waits for lanes of which none is left.
func (s *Supply) fail(err error) {
	s.end(func(c *Call) error {
		for _, l := range s.lanes {
			if !s.closed && l.failed == nil && c.denied&l.place == 0 {
				return nil
			}
		}
		return err
	})
}

// Close stops issuing for good, and makes each lane hand back what is left, and end.
func (s *Supply) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	for _, l := range s.lanes {
		l.shut()
		l.world.Wake()
	}
	s.fail(firn.ErrClosed)
}

// Closed reports whether Close was called.
func (s *Supply) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// A Status is where a lane stands.
type Status struct {
	Driver block.Driver
	Left   int64 // numbers in hand
	Issued int64 // numbers given out so far
	Thrown int64 // numbers granted to calls that had been given up
	Waits  int64 // calls that have waited so far, for any lane
	Failed error // final: nothing of this lane is issued any more
}

// Status returns where each lane stands.
func (s *Supply) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Status, len(s.lanes))
	for i, l := range s.lanes {
		all[i] = l.status()
	}
	return all
}
