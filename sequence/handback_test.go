package sequence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

// What is in hand is handed back only by who was granted last, and not below
// what others were granted.
func TestHandBack(t *testing.T) {
	st := memory.New()
	a := begin(t, st, sequence.Options{Cache: 100})
	next(t, a) // 1 of 1-100
	b := begin(t, st, sequence.Options{})
	next(t, b) // 101 of 101-200
	closeSeries(t, a)
	if g := info(t, st).Granted; g != 200 {
		t.Errorf("granted %d after the first closed", g)
	}
	closeSeries(t, b)
	if g := info(t, st).Granted; g != 101 {
		t.Errorf("granted %d after the last closed", g)
	}
}

// A block that was used up is not handed back with the one after it, of which
// nothing was used.
func TestHandBackUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &slow{Store: memory.New(), trip: 100 * time.Millisecond}
		s := begin(t, st, sequence.Options{Cache: 10})
		for range 10 { // the next block comes when all of this one was used
			next(t, s)
		}
		time.Sleep(time.Second)
		if left := s.State().Left; left < 10 {
			t.Errorf("%d in hand", left)
		}
		closeSeries(t, s)
		if g := info(t, st).Granted; g != 10 {
			t.Errorf("granted %d after 10 were used", g)
		}
	})
}

// A range that was reserved is not handed back.
func TestHandBackAfterReserve(t *testing.T) {
	st := memory.New()
	s := begin(t, st, sequence.Options{Cache: 10})
	next(t, s)
	if _, err := s.Reserve(ctx, 100); err != nil { // 11-110
		t.Fatal(err)
	}
	closeSeries(t, s)
	if g := info(t, st).Granted; g != 110 {
		t.Errorf("granted %d", g)
	}
}

// A write that is under way when the series is closed is waited for a little, so
// that its numbers are handed back too. One that does not come is not waited for.
func TestHandBackWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memory.New())
		for round, late := range []time.Duration{200 * time.Millisecond, time.Hour} {
			s := begin(t, f, sequence.Options{Cache: 10})
			next(t, s)
			synctest.Wait()
			f.Next(func(ctx context.Context, p storetest.Put) (store.Record, error) {
				select {
				case <-time.After(late):
					return p.Send()
				case <-ctx.Done(): // it arrives nevertheless
					time.AfterFunc(late, func() { p.Send() })
					return p.Lost(ctx.Err())
				}
			})
			for range 5 {
				next(t, s)
			}
			synctest.Wait()
			began := time.Now()
			closeSeries(t, s)
			took := time.Since(began)
			switch w := s.State().Wasted; {
			case round == 0 && (w != 0 || took != late):
				t.Errorf("%d wasted, after %s", w, took)
			case round == 1 && (w == 0 || took > 2*time.Second):
				t.Errorf("%d wasted, after %s", w, took)
			}
			if in := info(t, f); int(in.Granted) != 6*(round+1) {
				t.Errorf("granted %d", in.Granted)
			}
		}
	})
}

// A store that does not answer keeps Close for 5 s, whatever is under way.
func TestCloseWhileTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, writing := range []bool{false, true} {
			f := storetest.NewFaulty(memory.New())
			s := begin(t, f, sequence.Options{Cache: 10})
			next(t, s)
			synctest.Wait()
			resume := f.Hang()
			if writing {
				for range 5 {
					next(t, s)
				}
				synctest.Wait()
			}
			began := time.Now()
			err := s.Close()
			if took := time.Since(began); err == nil || took > 5*time.Second {
				t.Errorf("closed after %s: %v", took, err)
			}
			resume()
		}
	})
}

// A hand-back whose outcome is unknown is left at that.
func TestHandBackUnknown(t *testing.T) {
	f := storetest.NewFaulty(memory.New())
	s := begin(t, f, sequence.Options{Cache: 10})
	next(t, s)
	later, release := storetest.Later()
	f.Next(later)
	if err := s.Close(); err == nil {
		t.Error("closed well")
	}
	b := begin(t, f, sequence.Options{})
	if id := next(t, b); id != 11 {
		t.Errorf("%d", id)
	}
	if _, err := release(); !errors.Is(err, store.ErrConflict) {
		t.Error(err)
	}
	if id := next(t, b); id != 12 {
		t.Errorf("%d", id)
	}
	closeSeries(t, b)
}
