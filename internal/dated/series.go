package dated

import (
	"errors"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// A World is what a series asks of the outside. Ask and Rest take time, and so does Wait of
// a [Caller]: meanwhile other calls come and go. Besides that one method of a series runs at a
// time.
type World interface {
	// Clocks reads the process's clocks.
	Clocks() Instant

	// Ask sends a request to the store and returns what came of it, after [Patience] at most.
	Ask(Action) record.Answer

	// Go lets Draw run by itself.
	Go()

	// Rest returns when no Draw is running.
	Rest()
}

// A Caller is the world of one call.
type Caller interface {
	World

	// Gone says why the caller waits no longer; nil: it waits.
	Gone() error

	// Wait returns after Wake, or when the caller is gone.
	Wait()

	// Wake is called once, if the call waits: it has its numbers, or an error.
	Wake()
}

const (
	Patience = 10 * time.Second // for one answer of the store
	Farewell = 5 * time.Second  // for Close: what is under way then is broken off
)

// maxDraw is how many counts one write grants because calls want them.
const maxDraw = 1 << 16

// A Series gives out the numbers of one name: it drives the machine of this package for
// calls that share its writes. Package document runs it with the system's clocks, a store and
// goroutines; the simulation runs the same code in a world of its own.
type Series struct {
	drawer
	queue   []*call // all that are queued, in the order of their calls
	drawing bool    // Draw runs, for them
	closed  bool
	last    Grant // the last one given out
	failure error // of the last draw
}

// A call waits for counts.
type call struct {
	Caller
	want   int64 // counts it asked for
	left   int64 // counts it lacks
	got    []Grant
	err    error
	queued bool
}

// NewSeries returns a series whose definition and durability were just read.
func NewSeries(r Rules, def Definition, p store.Durability, now Instant) *Series {
	return &Series{drawer: newDrawer(r, def, p, now), last: none}
}

// Last is what was given out last, Err why nothing was by the last draw, and Durability what
// the store said last.
func (s *Series) Last() Grant                  { return s.last }
func (s *Series) Err() error                   { return s.failure }
func (s *Series) Durability() store.Durability { return s.durability }

// Take takes n counts out of what is in hand, or waits for them. After an error the call has
// used up nothing, but for a write whose outcome stays unknown.
func (s *Series) Take(w Caller, n int64) ([]Grant, error) {
	if s.closed {
		return nil, firn.ErrClosed
	}
	c := &call{Caller: w, want: n, left: n}
	if len(s.queue) == 0 && s.ready(w.Clocks()) {
		s.serve(c)
	}
	if c.left == 0 {
		return c.got, nil
	}
	if err := w.Gone(); err != nil {
		s.takeBack(c)
		return nil, err
	}
	c.queued = true
	s.queue = append(s.queue, c)
	if !s.drawing {
		s.drawing = true
		w.Go()
	}
	w.Wait()
	if c.left == 0 || c.err != nil {
		return c.got, c.err
	}
	c.queued = false
	s.tidy()
	s.takeBack(c)
	return nil, w.Gone()
}

// tidy takes those out of the queue that wait no longer.
func (s *Series) tidy() {
	s.queue = slices.DeleteFunc(s.queue, func(c *call) bool { return !c.queued })
}

// serve gives a call what is in hand, up to what it lacks.
func (s *Series) serve(c *call) {
	g := s.deal(c.left)
	if g.Left() > 0 {
		c.got = append(c.got, g)
		c.left -= g.Left()
		s.last = g
	}
}

// takeBack takes back what a call got that has failed.
func (s *Series) takeBack(c *call) {
	for _, g := range slices.Backward(c.got) {
		s.undeal(g)
	}
	c.got, c.left = nil, c.want
}

// Draw draws for the queue until there is nobody in it.
func (s *Series) Draw(w World) {
	for len(s.queue) > 0 {
		if s.closed {
			s.refuse(slices.Clone(s.queue), firn.ErrClosed)
			break
		}
		// Who comes later waits for the next draw: the date is that of an instant
		// after each of these calls began.
		calls := slices.Clone(s.queue)
		want := int64(0)
		for _, c := range calls {
			want += min(c.left, maxDraw-want)
		}
		do := s.begin(w.Clocks(), want, min(calls[0].left, maxDraw))
		for do.Op != record.None {
			a := w.Ask(do)
			a.Record.Key = do.Key
			do = s.answer(w.Clocks(), do, a)
		}
		if s.failure = s.err; s.err != nil {
			s.refuse(s.ended(calls), s.err)
			continue
		}
		s.share(calls)
	}
	s.drawing = false
}

// ended returns the calls that the last draw's error ends. Where there are too few numbers
// for the first of them, others may want fewer.
func (s *Series) ended(calls []*call) []*call {
	var no *Refusal
	if !errors.As(s.err, &no) || no.Why != Ended {
		return calls
	}
	first := calls[0]
	no.Left += s.Reserved() + first.want - first.left
	if first.want > s.Max { // no other date serves it, unlike the other calls
		no.NextAt = time.Time{}
		return calls[:1]
	}
	if no.Left > 0 {
		return calls[:1]
	}
	return calls
}

// share gives out what is in hand to calls, in their order.
func (s *Series) share(calls []*call) {
	for _, c := range calls {
		if !c.queued {
			continue
		}
		if s.serve(c); c.left > 0 {
			break
		}
		c.queued = false
		c.Wake()
	}
	s.tidy()
}

// refuse ends calls with an error.
func (s *Series) refuse(calls []*call, err error) {
	for _, c := range calls {
		if c.queued {
			s.takeBack(c)
			c.queued, c.err = false, err
			c.Wake()
		}
	}
	s.tidy()
}

// Close gives out nothing any more, and hands back the counts in hand if nobody drew since. After
// an error so many are lost.
func (s *Series) Close(w World) (lost int64, err error) {
	again := s.closed
	s.closed = true
	w.Rest()
	if again {
		return 0, nil
	}
	do, lost := s.handBack(), s.Reserved()
	s.hand, s.spare = none, nil
	if do.Op == record.None {
		return 0, nil
	}
	if a := w.Ask(do); a.Err != nil && !errors.Is(a.Err, store.ErrConflict) {
		return lost, a.Err
	}
	return 0, nil
}
