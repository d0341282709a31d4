package lease

import (
	"context"
	"encoding/json"
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
		if age := time.Since(st.LeasedAt); age < 9*time.Minute || st.LeasedAt.Before(began) {
			t.Errorf("taken %s ago", age)
		}
		if age := time.Since(st.RenewedAt); age < 0 || age > 11*time.Second {
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
		if was.Waits == 0 || now.Waits < was.Waits || !now.LeasedAt.After(was.LeasedAt) {
			t.Errorf("waits %d, then %d; since %s, then %s", was.Waits, now.Waits, was.LeasedAt, now.LeasedAt)
		}
	})
}

// The JSON of a state has durations in seconds, and leaves out what there is not.
func TestStateJSON(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for want, st := range map[string]State{
		`{"pool":"web","layout":"` + layout.String() + `","durable":false,"issuing":false,"worker":0,"term":0,"store_away":false,"waits":0}`: {Pool: "web", Layout: layout},
		`{"pool":"web","pool_id":"x","layout":"` + layout.String() + `","durable":true,"why":"seen","issuing":true,"worker":7,"term":3,` +
			`"leased_at":"2026-03-01T12:00:00Z","ends_at":"2026-03-01T12:05:00Z","store_away":true,"waits":2,` +
			`"outage_seconds":300,"ahead_seconds":-0.5,"error":"connection refused"}`: {
			Pool: "web", PoolID: "x", Layout: layout, Durable: true, Why: "seen", Issuing: true, Worker: 7, Term: 3, LeasedAt: at,
			EndsAt: at.Add(5 * time.Minute), StoreAway: true, Waits: 2, Outage: 5 * time.Minute, Ahead: -time.Second / 2, Err: errAway,
		},
	} {
		got, err := json.Marshal(st)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
}
