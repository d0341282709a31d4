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
// Package internal/block decides what is asked of the store, and internal/supply hands numbers
// to calls; they say why nothing repeats. This package gives them clocks, stores and goroutines.
package sequence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/supply"
)

// A Series issues the numbers of a named series. It is a [firn.Source]; all its
// methods may be called from many goroutines at once.
//
// Numbers from Next and Append increase strictly within one process, except for
// a series over several stores, where those of each store do. With Strict they
// do over all processes: a call that begins after another has returned, anywhere,
// gets a larger number.
type Series struct {
	supply  supply.Supply
	name    string
	options Options
	keepers []*keeper
	epoch   time.Time // when boot time was 0
	stop    context.CancelFunc
	done    sync.WaitGroup // the keepers
}

var _ firn.Source = (*Series)(nil)

// Next returns the next number. Where those in hand are used up it waits for the
// store, or for ctx.
//
// Errors: [*OutageError] when the store is away for longer than Options.Wait,
// [*EndError] at the series' max, [*store.ForgotError] once the store has
// forgotten and [*store.OtherStoreError] once another one has answered (both final), [*LossyError], [*store.FormatError], [firn.ErrClosed] after Close,
// and ctx's.
func (s *Series) Next(ctx context.Context) (firn.ID, error) {
	t := s.supply.Draw()
	if t.Valid() {
		return t.ID(), nil
	}
	return s.next(ctx, t)
}

// next is Next where the number that was taken is beyond its run's limit.
func (s *Series) next(ctx context.Context, t supply.Ticket) (firn.ID, error) {
	if s.supply.Late(t) {
		return t.ID(), nil
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
	if t, ok := s.supply.DrawAll(n); ok && (t.Valid() || s.supply.Late(t)) {
		return appendRange(slices.Grow(dst, n), t.Range(n)), nil
	}
	ranges, err := s.take(ctx, n, false)
	if err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, n)
	for _, g := range ranges {
		dst = appendRange(dst, g)
	}
	return dst, nil
}

func appendRange(dst []firn.ID, g firn.Range) []firn.ID {
	for range g.Count {
		dst = append(dst, g.First)
		g.First += firn.ID(g.Step)
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
	ranges, err := s.take(ctx, n, true)
	if err != nil {
		return firn.Range{}, err
	}
	return ranges[0], nil
}

// take takes n numbers from what is in hand, or waits for them. With an error it has taken
// none.
func (s *Series) take(ctx context.Context, n int, whole bool) ([]firn.Range, error) {
	done := make(chan struct{})
	c := &supply.Call{N: n, Whole: whole, Done: func() { close(done) }}
	if !s.supply.Take(c) {
		t := time.NewTimer(s.options.Wait)
		defer t.Stop()
		select {
		case <-done:
		case <-ctx.Done():
			s.supply.GiveUp(c, ctx.Err())
		case <-t.C:
			s.supply.GiveUp(c, nil)
		}
	}
	ranges, err := c.Result()
	return ranges, explain(s.name, err)
}

// Abandon stops issuing what a store has granted, and asks that store for nothing more: for
// a program that knows from elsewhere that the store has forgotten something, or is another
// one. Err is what calls return when the series has no other store. The place is that of
// the store in what the series was opened with; of [Open] it is 0. Abandon is final, may be
// called more than once, and waits for nothing.
func (s *Series) Abandon(place int, err error) { s.keepers[place].Abandon(err) }

// Close stops issuing for good and hands back what is left of the last block,
// if nobody was granted one since. It waits for the store, at most 5 s. An error
// says that this process may have left a gap that it need not have. Close may be
// called more than once.
func (s *Series) Close() error {
	s.supply.Close()
	s.stop()
	s.done.Wait()
	var errs []error
	for _, k := range s.keepers {
		errs = append(errs, k.ended)
	}
	return errors.Join(errs...)
}
