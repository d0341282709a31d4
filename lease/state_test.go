package lease

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// late is a store whose clock is behind by a second.
type late struct{ store.Store }

func (s late) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := s.Store.Get(ctx, key)
	return behind(rec), err
}

func (s late) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	rec, err := s.Store.Put(ctx, key, value, cond)
	return behind(rec), err
}

func behind(rec store.Record) store.Record {
	rec.Read = time.Now().Add(-time.Second)
	return rec
}

// The state says how old the lease is, when it was extended, how far the store's
// clock is behind, and what it costs to ask for more than there is.
func TestStateMeasures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := options()
		began := time.Now()
		l := open(t, late{memory.New()}, o)
		defer closed(t, l)
		time.Sleep(10 * time.Minute)
		st := l.State()
		if age := time.Since(st.Since); age < 9*time.Minute || st.Since.Before(began) {
			t.Errorf("taken %s ago", age)
		}
		if age := time.Since(st.Renewed); age < 0 || age > 11*time.Second {
			t.Errorf("extended %s ago", age)
		}
		if st.Ahead < 900*time.Millisecond || st.Ahead > 1100*time.Millisecond {
			t.Errorf("ahead of the store by %s", st.Ahead)
		}
		if st.Waits != 0 || st.Borrowed != 0 {
			t.Errorf("nothing was drawn: waits %d, borrowed %s", st.Waits, st.Borrowed)
		}
		for range 20 * 4096 { // more than the borrow has
			if _, err := l.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		g := l.lanes[0].gen.Load()
		if b := g.Borrowed(); b < 9*time.Millisecond || b > firn.DefaultBorrow {
			t.Errorf("borrowed %s of %s", b, firn.DefaultBorrow)
		}
		time.Sleep(time.Second)
		if st := l.State(); st.Waits < 5 || st.Borrowed != 0 {
			t.Errorf("a second later: waits %d, borrowed %s", st.Waits, st.Borrowed)
		}
	})
}

// Waits go on counting when a worker was lost and another taken.
func TestStateWaitsOverTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		l := open(t, s, o)
		defer closed(t, l)
		if _, err := l.Append(t.Context(), nil, 20*4096); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		was := l.State()
		if err := pool.Release(t.Context(), s, pool.Default, was.Worker); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		now := l.State()
		if now.Term == was.Term && now.Worker == was.Worker {
			t.Fatalf("it has kept the worker: %+v", now)
		}
		if was.Waits == 0 || now.Waits < was.Waits || !now.Since.After(was.Since) {
			t.Errorf("waits %d, then %d; since %s, then %s", was.Waits, now.Waits, was.Since, now.Since)
		}
	})
}
