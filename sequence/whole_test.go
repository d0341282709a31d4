package sequence_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

// A call that asks for more numbers than it can get uses up none: those that were in
// hand go to the next calls, or back to the store.
func TestAppendThatFailsUsesNothing(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail func(t *testing.T, f *storetest.Faulty, s *sequence.Series) error
	}{
		{"more than is left", func(t *testing.T, _ *storetest.Faulty, s *sequence.Series) error {
			ids, err := s.Append(ctx, nil, 200)
			if end := (*sequence.EndError)(nil); !errors.As(err, &end) || end.Left != 149 {
				t.Errorf("Append of 200 where 149 are left returned %v", err)
			}
			if st := s.State(); st.Err != nil {
				t.Errorf("a series that has numbers in hand says %v of itself", st.Err)
			}
			return none(t, ids, err)
		}},
		{"the store is away", func(t *testing.T, f *storetest.Faulty, s *sequence.Series) error {
			f.Away(errors.New("connection refused"))
			defer f.Away(nil)
			ids, err := s.Append(ctx, nil, 120)
			if out := (*sequence.OutageError)(nil); !errors.As(err, &out) || out.Left != 99 || out.Want != 120 {
				t.Errorf("Append of 120 with 99 in hand and the store away returned %v", err)
			}
			return none(t, ids, err)
		}},
		{"the caller gives up", func(t *testing.T, f *storetest.Faulty, s *sequence.Series) error {
			f.Away(errors.New("connection refused"))
			defer f.Away(nil)
			gone, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			ids, err := s.Append(gone, nil, 120)
			return none(t, ids, err)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				f := storetest.NewFaulty(st)
				s := begin(t, f, sequence.Options{Max: 150, Cache: 100, CacheFor: time.Second, Wait: 2 * time.Second})
				next(t, s)
				synctest.Wait()
				if err := tt.fail(t, f, s); err == nil {
					t.Error("it did not fail")
				}
				for want := firn.ID(2); want <= 10; want++ {
					if id := next(t, s); id != want {
						t.Errorf("after the call that failed came %d, want %d", id, want)
					}
				}
				closeSeries(t, s)
				if g := info(t, st).Granted; g != 10 {
					t.Errorf("the store says that %d are granted, and 10 were used", g)
				}
			})
		})
	}
}

// none reports numbers that came together with an error.
func none(t *testing.T, ids []firn.ID, err error) error {
	t.Helper()
	if err != nil && len(ids) > 0 {
		t.Errorf("%d numbers came with %v", len(ids), err)
	}
	return err
}

// A call that is given up while the store is asked leaves what was granted for it.
func TestAppendGivenUpWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memory.New())
		s := begin(t, f, sequence.Options{Cache: 100})
		next(t, s)
		synctest.Wait()
		f.Next(storetest.Delay(2*time.Second, 0))
		gone, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		ids, err := s.Append(gone, nil, 300)
		if none(t, ids, err) == nil {
			t.Error("it did not fail")
		}
		time.Sleep(2 * time.Second)
		for want := firn.ID(2); want <= 400; want++ {
			if id := next(t, s); id != want {
				t.Fatalf("%d, want %d", id, want)
			}
		}
		closeSeries(t, s)
	})
}

// Two calls at the end of a strict series: the one that has room gets its numbers, the
// other uses up none.
func TestStrictAppendAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memory.New())
		s := begin(t, f, sequence.Options{Strict: true, Max: 6})
		defer closeSeries(t, s)
		next(t, s)
		f.Next(storetest.Delay(time.Second, 0)) // while the store is busy, calls queue up
		var done sync.WaitGroup
		for i, n := range []int{1, 2, 3} { // of 2 to 6
			done.Go(func() {
				ids, err := s.Append(ctx, nil, n)
				if (none(t, ids, err) != nil) != (i == 2) {
					t.Errorf("Append of %d returned %v, %v", n, ids, err)
				}
			})
			synctest.Wait()
		}
		done.Wait()
		ids, err := s.Append(ctx, nil, 2)
		if err != nil || len(ids) != 2 || ids[0] != 5 || ids[1] != 6 {
			t.Errorf("the last two numbers are %v, %v", ids, err)
		}
	})
}

// Large and small calls at once, many of which fail: no number comes twice, and none is lost.
func TestAppendsThatFailBesideOthers(t *testing.T) {
	const last = 20_000
	s := begin(t, memory.New(), sequence.Options{Max: last, Cache: 50})
	defer closeSeries(t, s)
	var mu sync.Mutex
	seen := map[firn.ID]bool{}
	var done sync.WaitGroup
	for i := range 8 {
		done.Go(func() {
			n := []int{1, 7, 130, 900}[i%4]
			for n > 0 {
				ids, err := s.Append(ctx, nil, n)
				if none(t, ids, err) != nil {
					n /= 2
				}
				mu.Lock()
				for _, id := range ids {
					if seen[id] {
						t.Errorf("%d came twice", id)
					}
					seen[id] = true
				}
				mu.Unlock()
			}
		})
	}
	done.Wait()
	if len(seen) != last {
		t.Errorf("%d numbers of %d came", len(seen), last)
	}
}
