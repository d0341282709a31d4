package sequence_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

// A range that there is no room for, and a store that is away, keep nobody from
// the numbers in hand.
func TestWhileARangeIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memory.New())
		s := begin(t, f, sequence.Options{Cache: 100})
		defer closeSeries(t, s)
		for range 60 {
			next(t, s)
		}
		synctest.Wait()
		if left := s.State().Left; left != 140 { // in two blocks
			t.Fatalf("%d left", left)
		}
		before := s.State().Waits // the first number, if it was asked for before it was there
		f.Away(errors.New("away"))
		go func() {
			var outage *sequence.OutageError
			if _, err := s.Reserve(ctx, 1000); !errors.As(err, &outage) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		began := time.Now()
		for range 90 {
			next(t, s)
		}
		if ids, err := s.Append(ctx, nil, 50); len(ids) != 50 || err != nil {
			t.Errorf("%d, %v", len(ids), err)
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("numbers in hand were waited for, %s", d)
		}
		if waits := s.State().Waits - before; waits != 1 {
			t.Errorf("%d calls have waited, want the range", waits)
		}
		time.Sleep(10 * time.Second)
		f.Away(nil)
		time.Sleep(10 * time.Second)
	})
}

// Who waits when the store is found to have forgotten waits no longer, whether
// the request that found it was for them or not.
func TestForgottenWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := storetest.NewFaulty(st)
		s := begin(t, f, sequence.Options{Cache: 10, Strict: true})
		defer s.Close()
		next(t, s)
		resume := f.Hang()
		began := time.Now()
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				var forgot *store.ForgotError
				if _, err := s.Next(ctx); !errors.As(err, &forgot) || time.Since(began) != 2*time.Second {
					t.Errorf("%v after %s", err, time.Since(began))
				}
			})
			time.Sleep(time.Second / 2)
		}
		st.Restore(memory.Snapshot{})
		time.Sleep(time.Second / 2)
		resume()
		calls.Wait()
	})
}

// counted counts the calls of a store.
type counted struct {
	store.Store
	calls atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string) (store.Record, error) {
	c.calls.Add(1)
	return c.Store.Get(ctx, key)
}

// A store of several that is used up is not asked again and again while a call
// waits for another that is away.
func TestTicketsOneUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores, faulty := places(t, 2)
		if _, err := sequence.CreateAcross(ctx, stores, "few", &sequence.Options{Max: 20, Cache: 1}); err != nil {
			t.Fatal(err)
		}
		one := &counted{Store: stores[0]}
		s, err := sequence.OpenAcross(ctx, []store.Store{one, stores[1]}, "few", &sequence.Options{Logger: quiet, Wait: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		away := errors.New("away")
		faulty[1].Away(away)
		for {
			if _, err = s.Next(ctx); err != nil {
				break
			}
		}
		if !errors.As(err, new(*sequence.OutageError)) || !errors.Is(err, away) {
			t.Error(err)
		}
		if n := one.calls.Load(); n > 20 {
			t.Errorf("a store that is used up was read %d times", n)
		}
		faulty[1].Away(nil)
		time.Sleep(5 * time.Second)
		if id := next(t, s); id%2 != 0 {
			t.Errorf("%d", id)
		}
	})
}

// A range that no store has room for says nothing about single numbers.
func TestTicketsAfterTooLargeARange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores, faulty := places(t, 2)
		if _, err := sequence.CreateAcross(ctx, stores, "few", &sequence.Options{Max: 20, Cache: 1}); err != nil {
			t.Fatal(err)
		}
		open := func() *sequence.Series {
			s, err := sequence.OpenAcross(ctx, stores, "few", &sequence.Options{Logger: quiet, MaxUnused: 1})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		faulty[0].Away(errors.New("away"))
		s := open()
		for range 10 { // all of the other
			if id := next(t, s); id%2 != 0 {
				t.Fatal(id)
			}
		}
		closeSeries(t, s)
		faulty[0].Away(nil)
		s = open()
		defer s.Close()
		var end *sequence.EndError
		if _, err := s.Reserve(ctx, 15); !errors.As(err, &end) {
			t.Fatal(err)
		}
		for i := range 10 {
			faulty[0].Next(storetest.Delay(time.Second, 0))
			if id := next(t, s); id != firn.ID(1+2*i) {
				t.Errorf("%d", id)
			}
		}
		if _, err := s.Next(ctx); !errors.As(err, &end) {
			t.Error(err)
		}
	})
}

// A range that the series has no room for fails alone: a call that waits behind it, and was
// asked for together with it, gets its number.
func TestNextBehindTooLargeARange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memory.New())
		s := begin(t, f, sequence.Options{Max: 20, Cache: 1, MaxUnused: 1})
		defer closeSeries(t, s)
		const calls = 10
		var ranges, numbers [calls]error
		var wg sync.WaitGroup
		for range 2 { // what is in hand, and what is asked for ahead of demand
			next(t, s)
		}
		f.Next(storetest.Delay(time.Second, 0)) // while the store is busy, calls queue up
		for i := range calls {
			wg.Go(func() { _, ranges[i] = s.Reserve(ctx, 30) })
			synctest.Wait()
			wg.Go(func() { _, numbers[i] = s.Next(ctx) })
			synctest.Wait()
		}
		wg.Wait()
		for i := range calls {
			var end *sequence.EndError
			if !errors.As(ranges[i], &end) {
				t.Errorf("Reserve of 30 of 20 numbers returned %v", ranges[i])
			}
			if numbers[i] != nil {
				t.Errorf("Next behind it returned %v", numbers[i])
			}
		}
	})
}
