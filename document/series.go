// Package document issues texts that people read: a prefix, a date, a counter, such
// as INV-20261120-000042. They never repeat, and the counters have no gaps but
// where a process was killed or the outcome of a write stayed unknown.
//
// The step that creates the database creates the series, once, by [Create]; a program only
// opens it. A store in a file creates it by itself:
//
//	st, err := sqlite.Open(ctx, "/var/lib/shop/ids.db")
//	...
//	invoices, err := document.Open(ctx, st, "invoice",
//		&document.Options{Pattern: "INV-{yyyyMMdd}-{6}", Zone: "Asia/Ho_Chi_Minh"})
//	...
//	defer invoices.Close()
//	n, err := invoices.Next(ctx) // n.Text
//
// Each date has a counter of its own in the store, which is never removed. The store's
// clock only chooses the counter: if that clock is set back over midnight, yesterday's
// counter continues where it ended. The file draw.go decides, and says why nothing repeats;
// the rest of the package performs what it asks.
package document

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A Series gives out the texts of one name. All its methods may be called from
// many goroutines at once: those that wait for the store share one write.
type Series struct {
	store   store.Store
	pattern *Pattern
	base    time.Time

	mu      sync.Mutex // guards the rest
	drawer  *drawer
	queue   []*waiter // all that are queued, in the order of their calls
	drawing bool      // a goroutine draws for them
	closed  bool
	last    grant // last one given out
	err     error // of the last draw

	life   context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// A waiter is a call that waits for counts.
type waiter struct {
	want   int64 // counts it asked for
	left   int64 // counts it lacks
	got    []grant
	err    error
	queued bool
	ready  chan struct{} // closed when it has all, or err
}

// Bounds of the driver.
const (
	patience = 10 * time.Second // for one answer of the store
	farewell = 5 * time.Second  // for Close
	maxDraw  = 1 << 16          // counts granted by one write because calls want them
)

// Next returns the next text. It waits for the store: for one write, which it
// may share with other calls. The date is that of the store's clock during the
// call; with Cache, or after calls that gave up waiting, as it was read up to a
// second before.
//
// Errors: [*EndError] where the period has no number left, [*InstanceError]
// and [*LossyError] where the store could have forgotten, [*store.ForgotError]
// where it has and [*store.OtherStoreError] where another one answers (both final), [firn.ErrClosed] after Close, ctx's, and the store's own.
// After an error a number may be lost; it is never given out twice.
func (s *Series) Next(ctx context.Context) (Number, error) {
	var one [1]Number
	got, err := s.Append(ctx, one[:0], 1)
	if err != nil {
		return Number{}, err
	}
	return got[0], nil
}

// Append appends n texts to dst, or none. Errors are those of Next; a call that returns
// one leaves what it got to the next calls, but for a write whose outcome stays unknown.
func (s *Series) Append(ctx context.Context, dst []Number, n int) ([]Number, error) {
	if n <= 0 {
		return dst, nil
	}
	got, err := s.counts(ctx, int64(n))
	if err != nil {
		return dst, err
	}
	for _, g := range got {
		for c := g.next; c <= g.last; c++ {
			dst = append(dst, s.pattern.number(g.period, c))
		}
	}
	return dst, nil
}

// counts takes n counts out of what is in hand, or waits for them.
func (s *Series) counts(ctx context.Context, n int64) ([]grant, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, firn.ErrClosed
	}
	w := &waiter{want: n, left: n, ready: make(chan struct{})}
	if len(s.queue) == 0 && s.drawer.ready(s.clocks()) {
		s.deal(w)
	}
	if w.left == 0 {
		s.mu.Unlock()
		return w.got, nil
	}
	if err := ctx.Err(); err != nil {
		s.undeal(w)
		s.mu.Unlock()
		return nil, err
	}
	w.queued = true
	s.queue = append(s.queue, w)
	if !s.drawing {
		s.drawing = true
		s.done.Go(s.draw)
	}
	s.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.left == 0 || w.err != nil {
		return w.got, w.err
	}
	w.queued = false
	s.leave()
	s.undeal(w)
	return nil, ctx.Err()
}

// leave takes those out of the queue that wait no longer.
func (s *Series) leave() {
	s.queue = slices.DeleteFunc(s.queue, func(w *waiter) bool { return !w.queued })
}

// deal gives a waiter what is in hand, up to what it lacks.
func (s *Series) deal(w *waiter) {
	g := s.drawer.deal(w.left)
	if g.left() > 0 {
		w.got = append(w.got, g)
		w.left -= g.left()
		s.last = g
	}
}

// undeal takes back what a waiter got that has failed.
func (s *Series) undeal(w *waiter) {
	for _, g := range slices.Backward(w.got) {
		s.drawer.undeal(g)
	}
	w.got, w.left = nil, w.want
}

// clocks reads the process's clocks.
func (s *Series) clocks() instant {
	now := time.Now()
	return instant{wall: now.Round(0), mono: now.Sub(s.base)}
}

// draw draws for the queue until there is nobody in it.
func (s *Series) draw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 {
		if s.closed {
			s.refuse(slices.Clone(s.queue), firn.ErrClosed)
			break
		}
		// Who comes later waits for the next draw: the date is that of an instant
		// after each of these calls began.
		calls := slices.Clone(s.queue)
		want := int64(0)
		for _, w := range calls {
			want += min(w.left, maxDraw-want)
		}
		do := s.drawer.begin(s.clocks(), want, min(calls[0].left, maxDraw))
		for do.Op != record.None {
			s.mu.Unlock()
			a := perform(s.life, s.store, do)
			s.mu.Lock()
			do = s.drawer.answer(s.clocks(), do, a)
		}
		s.err = s.drawer.err
		if s.err != nil {
			s.refuse(s.ended(calls), s.err)
			continue
		}
		s.serve(calls)
	}
	s.drawing = false
}

// ended returns the calls that the last draw's error ends. Where there are too few numbers
// for the first of them, others may want fewer.
func (s *Series) ended(calls []*waiter) []*waiter {
	var over *EndError
	if !errors.As(s.err, &over) {
		return calls
	}
	over.Left += s.drawer.reserved() + calls[0].want - calls[0].left
	if calls[0].want > over.Max { // no other date serves it, unlike the other calls
		over.NextAt = time.Time{}
		return calls[:1]
	}
	if over.Left > 0 {
		return calls[:1]
	}
	return calls
}

// serve gives out what is in hand to calls, in their order.
func (s *Series) serve(calls []*waiter) {
	for _, w := range calls {
		if !w.queued {
			continue
		}
		if s.deal(w); w.left > 0 {
			break
		}
		w.queued = false
		close(w.ready)
	}
	s.leave()
}

// refuse ends calls with an error.
func (s *Series) refuse(calls []*waiter, err error) {
	for _, w := range calls {
		if w.queued {
			s.undeal(w)
			w.queued, w.err = false, err
			close(w.ready)
		}
	}
	s.leave()
}

// perform does what a drawer asks.
func perform(ctx context.Context, st store.Store, do action) record.Answer {
	if do.conflicts > 0 {
		pause(ctx, do.conflicts)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := do.Send(ctx, st)
	a.Record.Key = do.Key
	return a
}

// State is where a series stands.
type State struct {
	Pattern  string
	Zone     string
	Durable  bool   // of the store: on a lossy one numbers are unique at best effort
	Why      string // what was seen of the store
	Last     Number // last one that this process was given; zero before
	Reserved int64  // counts in hand, which nobody else can have
	Err      error  // of the last draw
}

// State returns where the series stands now.
func (s *Series) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{
		Pattern: s.pattern.text, Zone: s.drawer.zoneName(), Durable: s.drawer.durability.Durable, Why: s.drawer.durability.Why,
		Reserved: s.drawer.reserved(), Err: s.err,
	}
	if s.last.left() > 0 {
		st.Last = s.pattern.number(s.last.period, s.last.last)
	}
	return st
}

// Close stops giving out texts for good and hands back the counts that are in
// hand, if nobody drew since. It waits for the store, at most 5 s. An error says
// that counts are lost. Close may be called more than once.
func (s *Series) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), farewell)
	defer cancel()
	stop := context.AfterFunc(ctx, s.cancel) // a write under way may be answered yet
	s.done.Wait()
	stop()
	defer s.cancel()
	if again {
		return nil
	}
	return s.handBack(ctx)
}
