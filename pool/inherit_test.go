package pool_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// given is a store whose pool "a" had workers up to 1023, whose ids reach tick last, and has
// given those from 512 on up.
func given(t *testing.T, s *memory.Store) (last firn.Tick) {
	t.Helper()
	if _, err := pool.Create(t.Context(), s, "a", &pool.Options{Layout: early}); err != nil {
		t.Fatal(err)
	}
	last = early.Tick(time.Now())
	r := term.Record{V: 1, Term: 1, Horizon: last}
	if _, err := s.Put(t.Context(), term.KeyWorker("a", 900), r.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	if _, err := pool.SetWorkers(t.Context(), s, "a", 0, 511); err != nil {
		t.Fatal(err)
	}
	return last
}

// A pool that gets another one's workers starts above what they issued, whatever the
// store's clock says by then.
func TestInherit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back time.Duration
		s := memory.NewClock(func() time.Time { return time.Now().Add(-back) })
		last := given(t, s)
		back = 3 * time.Hour
		info, err := pool.Create(t.Context(), s, "b", &pool.Options{Layout: early, First: 512})
		if err != nil || early.Tick(info.StartsAt) <= last {
			t.Errorf("%+v, %v: starts at %d, and %d was issued", info, err, early.Tick(info.StartsAt), last)
		}
	})
}

// With another epoch the same bits are of another time, which may yet come: such a pool does
// not get the workers.
func TestInheritAnotherEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewClock(time.Now)
		given(t, s)
		later := firn.MustLayout("firn;epoch=1999-06-01T00:00:00Z")
		var overlap *pool.OverlapError
		if _, err := pool.Create(t.Context(), s, "b", &pool.Options{Layout: later, First: 512}); !errors.As(err, &overlap) || overlap.Same != "512-1023" {
			t.Error(err)
		}
	})
}

// A process that still holds a worker of a pool whose record was lost cannot extend when
// the pool has been created anew.
func TestEnsureFreesHolders(t *testing.T) {
	s := memory.New()
	r := term.Record{V: 1, Term: 3, Owner: "x", Name: "x", Horizon: firn.Default().Tick(time.Now()), TTL: 30_000}
	if _, err := s.Put(t.Context(), term.KeyWorker("web", 7), r.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Ensure(t.Context(), s, "web", &pool.Options{Workers: 4}); err != nil {
		t.Fatal(err)
	}
	rec, err := s.Get(t.Context(), term.KeyWorker("web", 7))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := term.ReadRecord(rec); err != nil || got.Owner != "" || got.Term != 4 || got.Horizon != r.Horizon {
		t.Errorf("%+v, %v", got, err)
	}
}
