package document_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

// A call that asks for more texts than it can get uses up none: the next calls get those
// that were in hand, or they go back to the store.
func TestAppendThatFailsUsesNothing(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		away bool
		n    int
	}{
		{"more than the pattern has room for", t.Context(), false, 99},
		{"the store is away", t.Context(), true, 20},
		{"the caller gives up", gone, false, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := memory.New()
			f := storetest.NewFaulty(st)
			s := opened(t, f, "{2}", document.Options{Cache: 10})
			wantNext(t, s, "01", "02")
			if tt.away {
				f.Away(errors.New("connection refused"))
			}
			got, err := s.Append(tt.ctx, nil, tt.n)
			if err == nil || len(got) > 0 {
				t.Errorf("%d texts came with the error %v", len(got), err)
			}
			if over := (*document.EndError)(nil); errors.As(err, &over) && over.Left != 97 {
				t.Errorf("%v: it says that %d are left, and 97 are", err, over.Left)
			}
			f.Away(nil)
			wantNext(t, s, "03", "04")
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			wantNext(t, opened(t, st, "{2}", document.Options{Cache: 10}), "05")
		})
	}
}

// A call for more than one write grants uses up nothing of the first write where the
// second fails.
func TestAppendThatFailsHalfWay(t *testing.T) {
	st := memory.New()
	f := storetest.NewFaulty(st)
	s := opened(t, f, "{6}", document.Options{})
	wantNext(t, s, "000001")
	f.Next(storetest.Delay(0, 0), storetest.Refuse(errors.New("connection refused")))
	if got, err := s.Append(t.Context(), nil, 100_000); err == nil || len(got) > 0 {
		t.Errorf("%d texts, %v", len(got), err)
	}
	wantNext(t, s, "000002", "000003")
}

// A large call that has no room does not end the small ones that came with it.
func TestSmallBesideTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memory.New())
		s := opened(t, f, "{2}", document.Options{})
		wantNext(t, s, "01")
		f.Next(storetest.Delay(time.Second, 0)) // while the store is busy, calls queue up
		first := make(chan error, 3)
		for _, n := range []int{1, 200, 3} {
			go func() {
				_, err := s.Append(t.Context(), nil, n)
				first <- err
			}()
			synctest.Wait()
		}
		failed := 0
		for range 3 {
			if <-first != nil {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("%d of three calls failed", failed)
		}
		wantNext(t, s, "06")
	})
}

// What a call leaves that fails because the store was restored is not given to anybody:
// it may have been given out since.
func TestLeftOverARestoration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := storetest.NewFaulty(st)
		s := opened(t, f, "{4}", document.Options{Cache: 10})
		wantNext(t, s, "0001")
		if _, err := document.Recover(t.Context(), st, 100, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // the definition is read again
		f.Next(storetest.Refuse(errors.New("connection refused")))
		if got, err := s.Append(t.Context(), nil, 20); err == nil || len(got) > 0 {
			t.Errorf("%d texts, %v", len(got), err)
		}
		if got, err := s.Next(t.Context()); err != nil || got.Count <= 100 {
			t.Errorf("%v, %v: numbers up to 110 may have been given out before the restoration", got, err)
		}
	})
}
