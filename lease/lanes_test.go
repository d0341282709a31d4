package lease

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

// small has a ceiling of 16,000 ids per second and worker.
var small = firn.MustLayout("time:41@1ms,worker:4,seq:4;epoch=1999-01-01T00:00:00Z")

func TestLanesAddUp(t *testing.T) {
	for _, lanes := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			o, _ := options()
			o.Layout, o.Lanes = small, lanes
			l := open(t, memory.New(), o)
			defer closed(t, l)
			seen := map[firn.ID]bool{}
			last := map[int64]firn.ID{}
			end := time.Now().Add(time.Second)
			for i := 0; time.Now().Before(end); i++ {
				var ids []firn.ID
				var err error
				if i%10 == 0 {
					ids, err = l.Append(t.Context(), nil, 7)
				} else {
					var id firn.ID
					id, err = l.Next(t.Context())
					ids = []firn.ID{id}
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range ids {
					p, err := small.Decode(id)
					if err != nil || seen[id] || id <= last[p.Worker] {
						t.Fatal(id, p, err)
					}
					seen[id], last[p.Worker] = true, id
				}
			}
			ceiling := int(small.Rate()) * lanes
			if n := len(seen); n < ceiling*95/100 || n > ceiling*103/100 || len(last) != lanes {
				t.Errorf("%d lanes: %d ids of %d workers in a second, the ceiling is %d", lanes, n, len(last), ceiling)
			}
		})
	}
}

func TestLanesGoOnWithoutOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		o.Layout, o.Lanes = small, 2
		created(t, s, &pool.Options{Layout: small, Workers: 2})
		l := open(t, s, o)
		defer closed(t, l)
		gone := l.Lanes()[0].Worker
		if err := pool.Release(t.Context(), s, pool.Default, gone); err != nil {
			t.Fatal(err)
		}
		for range 20_000 {
			if _, err := l.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestLanesAllStopWhenTheStoreForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, _ := options()
		o.Lanes = 4
		l := open(t, s, o)
		defer l.Close()
		s.forgot.Store(true)
		time.Sleep(2 * look)
		var forgot *store.ForgotError
		for range 10 {
			if _, err := l.Next(t.Context()); !errors.As(err, &forgot) {
				t.Fatal(err)
			}
		}
	})
}

// What one lane finds out holds for all: a store that went back may have given their
// workers to others, too.
func TestLanesAllStopWhenOneFindsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := remote{memory.New()}
		o, _ := options()
		o.Lanes = 4
		created(t, s, &pool.Options{Layout: layout})
		l := open(t, s, o)
		defer l.Close()
		first := l.Lanes()[0].Worker
		rec, err := s.Get(t.Context(), term.KeyWorker(pool.Default, first))
		if err != nil {
			t.Fatal(err)
		}
		r, err := term.ReadRecord(rec)
		if err != nil {
			t.Fatal(err)
		}
		r.Horizon-- // it is of an earlier state
		if _, err := s.Put(t.Context(), rec.Key, r.Encode(), store.Condition{Version: rec.Version}); err != nil {
			t.Fatal(err)
		}
		for l.Lanes()[0].phase != term.Forgotten {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * look)
		var forgot *store.ForgotError
		if id, err := l.Next(t.Context()); !errors.As(err, &forgot) {
			t.Errorf("%d, %v", id, err)
		}
		for i, st := range l.Lanes() {
			if st.phase != term.Forgotten || !errors.As(st.Err, &forgot) {
				t.Errorf("lane %d: %s, %v", i, st.phase, st.Err)
			}
		}
	})
}
