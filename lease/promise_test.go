package lease

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// shifting is a store that promises now this and now that, or does not say; it
// counts what is asked of it. Handles share what is under them.
type shifting struct {
	store.Store
	durable                   atomic.Bool
	mute                      atomic.Bool
	gets, puts, lists, promis atomic.Int64
}

var errStandby = errors.New("this is a standby")

// newShifting is on the network as far as a lease can tell, and promises durable.
func newShifting(s store.Store) *shifting {
	x := &shifting{Store: s}
	x.durable.Store(true)
	return x
}

func (x *shifting) Get(ctx context.Context, key string) (store.Record, error) {
	x.gets.Add(1)
	return x.Store.Get(ctx, key)
}

func (x *shifting) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	x.puts.Add(1)
	return x.Store.Put(ctx, key, value, cond)
}

func (x *shifting) List(ctx context.Context, prefix string) ([]store.Record, error) {
	x.lists.Add(1)
	return x.Store.List(ctx, prefix)
}

func (x *shifting) Durability(context.Context) (store.Durability, error) {
	x.promis.Add(1)
	if x.mute.Load() {
		return store.Durability{}, errStandby
	}
	return store.Durability{Durable: x.durable.Load(), Why: "as the test has it"}, nil
}

// found makes the pool, so that nobody waits for its floor.
func found(t *testing.T, s store.Store, p term.Pool) {
	t.Helper()
	p.V, p.ID, p.Layout, p.Workers = 1, "founded", layout.String(), "0-1023"
	if _, err := s.Put(t.Context(), term.KeyPool(pool.Default), p.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
}

func readPool(t *testing.T, s store.Store) term.Pool {
	t.Helper()
	rec, err := s.Get(t.Context(), term.KeyPool(pool.Default))
	if err != nil {
		t.Fatal(err)
	}
	p, err := term.ReadPool(rec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A log is safe to read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A lease notices within a minute that its store has become lossy,
// and every process of the pool goes by that from then on, whatever it sees.
func TestStoreBecomesLossy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := memory.New()
		found(t, under, term.Pool{})
		s := newShifting(under)
		o, _ := options()
		var log safeBuffer
		o.Outage, o.Logger = 20*time.Second, slog.New(slog.NewTextHandler(&log, nil))
		l := open(t, s, o)
		defer closed(t, l)
		var last firn.ID
		increasing(t, l, &last, 10)
		if st := l.State(); !st.Durable || st.Why != "as the test has it" {
			t.Fatalf("%+v", st)
		}
		s.durable.Store(false)
		time.Sleep(61 * time.Second)
		st := l.State()
		if st.Durable || st.Why != "as the test has it" || st.StoreAway || st.Err != nil {
			t.Fatalf("%+v", st)
		}
		if p := readPool(t, under); !strings.Contains(p.Lossy, " test: as the test has it") || time.Duration(p.Outage)*time.Millisecond != 20*time.Second {
			t.Fatalf("%+v", p)
		}
		if text := log.String(); strings.Count(text, "the store can lose writes that it acknowledged") != 1 || !strings.Contains(text, `"wait at each start"=30s`) {
			t.Fatal(text)
		}
		increasing(t, l, &last, 10)

		// The other one is connected to what was promoted, and stands alone.
		alone := newShifting(under)
		began := time.Now()
		o2, _ := options()
		var waits safeBuffer
		o2.Logger = slog.New(slog.NewTextHandler(&waits, nil))
		o2.Outage = time.Minute // what it has itself does not matter
		time.AfterFunc(5*time.Second, func() {
			if !strings.Contains(waits.String(), `msg="waiting before the first id" pool=default for=30s`) {
				t.Errorf("nobody is told of the wait when it begins: %s", waits.String())
			}
		})
		m := open(t, alone, o2)
		defer closed(t, m)
		if d := time.Since(began); d < 29*time.Second || d > 31*time.Second {
			t.Fatalf("waited for %s, not 30s", d)
		}
		if st := m.State(); st.Budget != 20*time.Second || st.Durable || !strings.HasPrefix(st.Why, "seen by another process: ") {
			t.Fatalf("%+v", st)
		}
		time.Sleep(time.Hour)
		increasing(t, l, &last, 10)
		if text := log.String(); strings.Count(text, "the store can lose writes that it acknowledged") != 1 {
			t.Fatal(text)
		}
	})
}

// A store that turns out to be a standby, or for which rights are missing, makes
// a lease degraded, and not lost.
func TestDurabilityFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShifting(memory.New())
		found(t, s, term.Pool{})
		o, _ := options()
		l := open(t, s, o)
		defer closed(t, l)
		was := l.State()
		s.mute.Store(true)
		var last firn.ID
		for range 600 {
			time.Sleep(time.Second)
			increasing(t, l, &last, 5)
		}
		st := l.State()
		if !st.StoreAway || !errors.Is(st.Err, errStandby) || st.Term != was.Term || st.Left(time.Now()) < 4*time.Minute {
			t.Fatalf("%+v", st)
		}
		if _, err := Open(t.Context(), s, o); !errors.Is(err, errStandby) {
			t.Fatal(err)
		}
		s.mute.Store(false)
		time.Sleep(61 * time.Second)
		if st := l.State(); st.StoreAway || st.Err != nil || st.Term != was.Term {
			t.Fatalf("%+v", st)
		}
	})
}

// An extension is one round trip, and a look at the promise comes once a minute.
// A free worker is taken in six.
func TestRoundTrips(t *testing.T) {
	for _, durable := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newShifting(memory.New())
			found(t, s, term.Pool{Outage: 20_000})
			s.durable.Store(durable)
			o, _ := options()
			closed(t, open(t, s, o)) // a lossy store's pool is marked
			count := func(do func()) (calls, asked int64) {
				calls, asked = -(s.gets.Load() + s.puts.Load() + s.lists.Load()), -s.promis.Load()
				do()
				return calls + s.gets.Load() + s.puts.Load() + s.lists.Load(), asked + s.promis.Load()
			}
			var l *Lease
			defer func() { closed(t, l) }()
			// On a lossy store Open lasts, and the worker is extended meanwhile.
			if calls, asked := count(func() { l = open(t, s, o) }); durable && (calls > 6 || asked != 1) {
				t.Errorf("taking a worker: %d calls, asked %d times", calls, asked)
			}
			time.Sleep(10 * time.Minute) // the ramp is over
			gets, puts := s.gets.Load(), s.puts.Load()
			calls, asked := count(func() { time.Sleep(time.Hour) })
			gets, puts = s.gets.Load()-gets, s.puts.Load()-puts
			if calls != puts || gets != 0 || asked > 61 || puts < 360 {
				t.Errorf("durable %t: in an hour: %d extensions, %d calls, asked %d times", durable, puts, calls, asked)
			}
			t.Logf("durable %t: in an hour: %d extensions in %d calls, asked %d times", durable, puts, calls, asked)
		})
	}
}

// A restore clears what the pool has said, above all that was granted by it.
func TestRecoverClearsThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShifting(memory.New())
		found(t, s, term.Pool{Outage: 600_000, Limit: 600_000, Lossy: "long ago"})
		done, err := pool.Recover(t.Context(), s, time.Minute)
		if err != nil || len(done) != 1 || done[0].StartsAt.Before(time.Now().Add(10*time.Minute+term.Skew)) {
			t.Fatalf("%+v %v", done, err)
		}
		if p := readPool(t, s); p.Lossy != "" || p.Outage != 0 {
			t.Fatalf("%+v", p)
		}
		time.Sleep(11 * time.Minute)
		o, _ := options()
		began := time.Now()
		l := open(t, s, o)
		defer closed(t, l)
		if st := l.State(); !st.Durable || time.Since(began) > time.Second {
			t.Fatalf("%+v after %s", st, time.Since(began))
		}
	})
}
