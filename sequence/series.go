// Package sequence issues dense numbers, 1, 2, 3 and so on, that many processes draw from
// one named series without a write to the store for each. A process reserves a block of
// numbers by one write, and the next block before that one is used up.
//
// The step that creates the database creates the series, once, by [Create]; a program only
// opens it:
//
//	orders, err := sequence.Open(ctx, st, "orders", nil)
//	...
//	defer orders.Close()
//	id, err := orders.Next(ctx)
//
// A number is granted once: the store has acknowledged the write that reserves a block
// before any number of the block is issued. Numbers of one process increase; those of
// several processes interleave by blocks, unless the series is Strict. A process that is
// killed loses the numbers that it had in hand, at most Options.MaxUnused, so there are gaps.
// Package internal/block decides, and says why nothing repeats; this package performs what
// it asks.
package sequence

import (
	"context"
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

// A Series issues the numbers of a named series. It is a [firn.Source]; all its
// methods may be called from many goroutines at once.
//
// Numbers from Next and Append increase strictly within one process, except for
// a series over several stores, where those of each store do. With Strict they
// do over all processes: a call that begins after another has returned, anywhere,
// gets a larger number.
type Series struct {
	// first is the run that Next tries; with several stores one without numbers.
	first atomic.Pointer[run]

	name    string
	options Options
	lanes   []*lane
	epoch   time.Time // when boot time was 0
	stop    context.CancelFunc
	done    sync.WaitGroup // the lanes' keepers

	mu     sync.Mutex // of all that is not a number in a run; guards the rest
	queue  []*waiter  // calls that wait for numbers, longest first
	waits  int64      // calls that have waited so far
	turn   int        // the store to draw from next, of several
	closed bool
}

var _ firn.Source = (*Series)(nil)

// A run is consecutive numbers that one grant gave.
type run struct {
	_     [64]byte
	taken atomic.Uint64 // how many were taken; more than there are where callers were refused
	_     [56]byte

	// Read by every call, written a few times.
	lane   *lane
	limit  atomic.Uint64 // so many may be taken without looking at anything else; 0 once closed
	base   int64         // number before the first
	stride int64
	count  uint64
	_      [24]byte
}

// id is the ith number, from 1 on.
func (r *run) id(i uint64) firn.ID { return firn.ID(r.base + int64(i)*r.stride) }

// A waiter is a call that waits for numbers.
type waiter struct {
	n      int  // how many are wanted; 0: it has them
	whole  bool // in one range
	asked  set  // lanes whose request under way is for them, too
	denied set  // lanes that had none for it
	got    []firn.Range
	err    error
	done   chan struct{} // closed when n is 0 or err is set
}

// A set is of lanes: a bit for each, by its place.
type set uint64

// Next returns the next number. Where those in hand are used up it waits for the
// store, or for ctx.
//
// Errors: [*OutageError] when the store is away for longer than Options.Wait,
// [*EndError] at the series' max, [*store.ForgotError] once the store has
// forgotten and [*store.OtherStoreError] once another one has answered (both final), [*LossyError], [*store.FormatError], [firn.ErrClosed] after Close,
// and ctx's.
func (s *Series) Next(ctx context.Context) (firn.ID, error) {
	// The number is taken first and compared after, on its own value. So what is
	// closed or forgotten stays so however long this goroutine pauses here.
	r := s.first.Load()
	i := r.taken.Add(1)
	if i <= r.limit.Load() {
		return r.id(i), nil
	}
	return s.next(ctx, r, i)
}

// next is Next where i, a number of r that was taken, is beyond its limit.
func (s *Series) next(ctx context.Context, r *run, i uint64) (firn.ID, error) {
	s.mu.Lock()
	if !s.closed && i <= r.count && r.lane.failed == nil {
		r.lane.call()
		s.mu.Unlock()
		return r.id(i), nil
	}
	ranges, err := s.take(ctx, 1, false)
	if err != nil {
		return 0, err
	}
	return ranges[0].First, nil
}

// Append appends n numbers to dst, or none. Errors are those of Next; a call that
// returns one has used up no number: what was in hand stays there.
func (s *Series) Append(ctx context.Context, dst []firn.ID, n int) ([]firn.ID, error) {
	if n <= 0 {
		return dst, nil
	}
	if r, end := s.first.Load().takeAll(n); end > 0 {
		// They are taken first and compared after, as in Next.
		begin := end - uint64(n)
		if end <= r.limit.Load() {
			return r.append(slices.Grow(dst, n), begin, end), nil
		}
		s.mu.Lock()
		if !s.closed && r.lane.failed == nil {
			r.lane.call()
			s.mu.Unlock()
			return r.append(slices.Grow(dst, n), begin, end), nil
		}
	} else {
		s.mu.Lock()
	}
	ranges, err := s.take(ctx, n, false)
	if err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, n)
	for _, g := range ranges {
		dst = appendRange(dst, g.First, g.Count, g.Step)
	}
	return dst, nil
}

// takeAll takes n numbers of the run, if it has as many. It returns how many are taken
// then, these being the last of them; 0: none was.
func (r *run) takeAll(n int) (*run, uint64) {
	for {
		taken := r.taken.Load()
		end := taken + uint64(n)
		if end > r.count {
			return r, 0
		}
		if r.taken.CompareAndSwap(taken, end) {
			return r, end
		}
	}
}

// append appends the numbers above begin up to end.
func (r *run) append(dst []firn.ID, begin, end uint64) []firn.ID {
	return appendRange(dst, r.id(begin+1), int(end-begin), r.stride)
}

func appendRange(dst []firn.ID, first firn.ID, n int, step int64) []firn.ID {
	for range n {
		dst = append(dst, first)
		first += firn.ID(step)
	}
	return dst
}

// Reserve returns one range of n numbers, which may be more than a block has.
// They are used up, whatever becomes of them. One that what is in hand has no
// room for is granted above it: later calls of Next may return smaller numbers.
// Errors are those of Next; where max leaves no room it is [*EndError].
func (s *Series) Reserve(ctx context.Context, n int) (firn.Range, error) {
	if n < 1 || n > block.MaxCache {
		return firn.Range{}, &OptionError{"n", fmt.Sprintf("n %d: a range has 1 to %d numbers", n, block.MaxCache)}
	}
	s.mu.Lock()
	ranges, err := s.take(ctx, n, true)
	if err != nil {
		return firn.Range{}, err
	}
	return ranges[0], nil
}

// take takes n numbers from what is in hand, or waits for them. It is called
// with s.mu held, and returns without it. With an error it has taken none.
func (s *Series) take(ctx context.Context, n int, whole bool) ([]firn.Range, error) {
	if err := s.refusal(n); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	w := &waiter{n: n, whole: whole, done: make(chan struct{})}
	// Whoever waits wants more than is in hand. The store is asked for all of it, so
	// that calls for less, which are served meanwhile, never keep it waiting.
	s.serveInHand(w)
	s.rearm()
	if w.n == 0 {
		s.mu.Unlock()
		return w.got, nil
	}
	s.queue = append(s.queue, w)
	s.waits++
	for _, l := range s.lanes {
		l.wake()
	}
	s.mu.Unlock()

	t := time.NewTimer(s.options.Wait)
	defer t.Stop()
	var err error
	select {
	case <-w.done:
		return w.got, w.err
	case <-ctx.Done():
		err = ctx.Err()
	case <-t.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, w)
	if i < 0 { // served, or refused, at the last moment
		return w.got, w.err
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	if err == nil {
		err = &OutageError{Name: s.name, Want: n, Left: s.left(), Wait: s.options.Wait, Err: s.trouble()}
	}
	return nil, err
}

// trouble is what came of the last request to a store that does not answer.
func (s *Series) trouble() error {
	for _, l := range s.lanes {
		if l.failed == nil && l.driver.State.Err != nil {
			return l.driver.State.Err
		}
	}
	return nil
}

// refusal is why no call for n numbers is served now; nil if some may be. It is called with
// s.mu held.
func (s *Series) refusal(n int) error {
	if s.closed {
		return firn.ErrClosed
	}
	var failed, away error
	for _, l := range s.lanes {
		d := &l.driver
		out := time.Since(d.Away)
		switch {
		case l.failed != nil:
			failed = l.failed
		case d.Away.IsZero() || out < s.options.Wait && !errors.Is(d.State.Err, store.ErrDenied) || l.left() > 0:
			return nil
		default:
			away = &OutageError{Name: s.name, Want: n, Wait: out, Err: d.State.Err}
		}
	}
	if away != nil {
		return away
	}
	return failed
}

// serveInHand gives w all that it wants of the numbers in hand, beginning at the
// next store; or nothing, if there are fewer. Rearm is to be called after.
func (s *Series) serveInHand(w *waiter) {
	s.turn++
	var runs []*run
	for i := range s.lanes {
		if l := s.lanes[(s.turn+i)%len(s.lanes)]; l.failed == nil {
			runs = append(append(runs, l.now), l.spare...)
		}
	}
	w.takeFrom(runs)
}

// rearm is called once numbers in hand were taken: runs that are used up are replaced,
// and the next blocks asked for where they are due.
func (s *Series) rearm() {
	for _, l := range s.lanes {
		if l.failed != nil {
			continue
		}
		if l.arm(); l.left() <= l.driver.Low() {
			l.wake()
		}
	}
}

// left is how many numbers are in hand, of all stores.
func (s *Series) left() (n int64) {
	for _, l := range s.lanes {
		if l.failed == nil {
			n += l.left()
		}
	}
	return n
}

// refuse ends the calls that wait for what no store grants until somebody gives this user a
// right. The lanes go on asking, so numbers come again once somebody does.
func (s *Series) refuse() {
	s.queue = slices.DeleteFunc(s.queue, func(w *waiter) bool {
		if w.err = s.refusal(w.n); w.err == nil {
			return false
		}
		close(w.done)
		return true
	})
}

// fail ends every call that waits for lanes of which none is left.
func (s *Series) fail(err error) {
	s.queue = slices.DeleteFunc(s.queue, func(w *waiter) bool {
		for _, l := range s.lanes {
			if !s.closed && l.failed == nil && w.denied&l.place == 0 {
				return false
			}
		}
		w.err = err
		close(w.done)
		return true
	})
}

// Abandon stops issuing what a store has granted, and asks that store for nothing more: for
// a program that knows from elsewhere that the store has forgotten something, or is another
// one. Err is what calls return when the series has no other store. The place is that of
// the store in what the series was opened with; of [Open] it is 0. Abandon is final, may be
// called more than once, and waits for nothing.
func (s *Series) Abandon(place int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.lanes[place].fail(err)
	}
}

// Close stops issuing for good and hands back what is left of the last block,
// if nobody was granted one since. It waits for the store, at most 5 s. An error
// says that this process may have left a gap that it need not have. Close may be
// called more than once.
func (s *Series) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		for _, l := range s.lanes {
			l.shut()
		}
		s.fail(firn.ErrClosed)
	}
	s.mu.Unlock()
	s.stop()
	s.done.Wait()
	var errs []error
	for _, l := range s.lanes {
		errs = append(errs, l.ended)
	}
	return errors.Join(errs...)
}
