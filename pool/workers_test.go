package pool_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// early is a layout that has begun by the clock that synctest starts with.
var early = firn.MustLayout("firn;epoch=1999-01-01T00:00:00Z")

// open leases a worker.
func open(t *testing.T, s *memory.Store, worker int64) *lease.Lease {
	t.Helper()
	l, err := lease.Open(t.Context(), s, &lease.Options{Choice: lease.Only(worker), Name: "p", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestWiden(t *testing.T) {
	s := memory.New()
	with(t, s, &pool.Options{Workers: 256})
	if _, err := pool.Create(t.Context(), s, "mail", &pool.Options{First: 768}); err != nil {
		t.Fatal(err)
	}
	var overlap *pool.OverlapError
	if info, err := pool.SetWorkers(t.Context(), s, pool.Default, 0, 768); !errors.As(err, &overlap) || overlap.Other.Name != "mail" || overlap.Same != "768-768" || info.Last != 255 {
		t.Errorf("%+v, %v", info, err)
	}
	if p := record(t, s, pool.Default); p.Workers != "0-255" || p.Reserved != "" {
		t.Errorf("%+v", p)
	}
	for range 2 {
		if info, err := pool.SetWorkers(t.Context(), s, pool.Default, 0, 767); err != nil || info.Last != 767 || info.GivingUp != "" {
			t.Errorf("%+v, %v", info, err)
		}
	}
	open(t, s, 767).Close()
}

// Workers are given up when no process has them, and the clock has passed what they issued.
func TestNarrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewClock(time.Now)
		if _, err := pool.Create(t.Context(), s, pool.Default, &pool.Options{Layout: early}); err != nil {
			t.Fatal(err)
		}
		write := func(r term.Record) {
			t.Helper()
			rec, err := s.Get(t.Context(), term.KeyWorker(pool.Default, 900))
			if err != nil {
				t.Fatal(err)
			}
			r.V, r.Name, r.Horizon = 1, "p", early.Tick(time.Now().Add(5*time.Minute))
			if _, err := s.Put(t.Context(), rec.Key, r.Encode(), store.Condition{Version: rec.Version}); err != nil {
				t.Fatal(err)
			}
		}
		write(term.Record{Term: 1, Owner: "x", TTL: 30_000})
		var used *pool.InUseError
		narrow := func() error {
			t.Helper()
			_, err := pool.SetWorkers(t.Context(), s, pool.Default, 0, 511)
			return err
		}
		taken := func() {
			t.Helper()
			var overlap *pool.OverlapError
			if _, err := pool.Create(t.Context(), s, "mail", &pool.Options{Layout: early}); !errors.As(err, &overlap) || overlap.Same != "0-1023" {
				t.Errorf("workers that are not given up: %v", err)
			}
		}
		if err := narrow(); !errors.As(err, &used) || used.Worker != 900 || used.Name != "p" {
			t.Fatal(err)
		}
		taken()
		// From now on no process takes one of those.
		var worker *lease.WorkerError
		if _, err := lease.Open(t.Context(), s, &lease.Options{Choice: lease.Only(901)}); !errors.As(err, &worker) || worker.Last != 511 {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		write(term.Record{Term: 1, Owner: "x", TTL: 30_000})
		if err := narrow(); !errors.As(err, &used) || used.Name != "p" {
			t.Fatalf("its holder lives: %v", err)
		}
		write(term.Record{Term: 1})
		if err := narrow(); !errors.As(err, &used) || used.Name != "" || used.Until.Before(time.Now()) {
			t.Fatalf("just released: %v", err)
		}
		taken()
		time.Sleep(time.Until(used.Until))
		if err := narrow(); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Create(t.Context(), s, "mail", &pool.Options{Layout: early, First: 512}); err != nil {
			t.Error(err)
		}
	})
}

// A holder that is taken for dead cannot extend after its worker was given up.
func TestNarrowFreesTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewClock(time.Now)
		if _, err := pool.Create(t.Context(), s, pool.Default, &pool.Options{Layout: early}); err != nil {
			t.Fatal(err)
		}
		dead := term.Record{V: 1, Term: 3, Owner: "x", Name: "x", Horizon: 1, TTL: 30_000}
		if _, err := s.Put(t.Context(), term.KeyWorker(pool.Default, 900), dead.Encode(), condition); err != nil {
			t.Fatal(err)
		}
		var used *pool.InUseError
		if _, err := pool.SetWorkers(t.Context(), s, pool.Default, 0, 511); !errors.As(err, &used) {
			t.Fatal(err)
		}
		time.Sleep(31 * time.Second)
		if _, err := pool.SetWorkers(t.Context(), s, pool.Default, 0, 511); err != nil {
			t.Fatal(err)
		}
		rec, err := s.Get(t.Context(), term.KeyWorker(pool.Default, 900))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := term.ReadRecord(rec); err != nil || r.Owner != "" || r.Term != 4 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestSetWorkersRefuses(t *testing.T) {
	s := with(t, memory.New(), &pool.Options{First: 100, Workers: 100})
	for _, r := range [][2]int64{{-1, 5}, {5, 4}, {0, 1024}, {0, 99}, {200, 300}} {
		var bad *pool.OptionError
		if _, err := pool.SetWorkers(t.Context(), s, pool.Default, r[0], r[1]); !errors.As(err, &bad) || bad.Option != "workers" {
			t.Errorf("%v: %v", r, err)
		}
	}
	var missing *term.MissingPoolError
	if _, err := pool.SetWorkers(t.Context(), s, "other", 0, 5); !errors.As(err, &missing) || len(missing.Pools) != 1 {
		t.Error(err)
	}
}

// A change of the range and the creation of a pool that wants the same workers, each
// request of one between any two of the other: never both.
func TestSetWorkersRace(t *testing.T) {
	for at := 1; ; at++ {
		s := memory.New()
		if _, err := pool.Create(t.Context(), s, pool.Default, &pool.Options{Workers: 512}); err != nil {
			t.Fatal(err)
		}
		var other error
		calls := 0
		a := &scripted{Store: s, before: func(n int, _, _ string) error {
			if calls = n; n == at {
				_, other = pool.Create(t.Context(), s, "b", &pool.Options{First: 512})
			}
			return nil
		}}
		_, err := pool.SetWorkers(t.Context(), a, pool.Default, 0, 1023)
		if calls < at {
			break
		}
		if (err == nil) == (other == nil) {
			t.Errorf("at %d: widen: %v, create: %v", at, err, other)
		}
	}
}

// A worker whose ids may be in use until later is unusable in the list of workers, as it is in the
// count of the pool.
func TestUnusableWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		if _, err := pool.Create(t.Context(), s, "default", &pool.Options{Layout: early}); err != nil {
			t.Fatal(err)
		}
		l := open(t, s, 3)
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := pool.Release(t.Context(), s, "default", 3); err != nil { // its horizon stays
			t.Fatal(err)
		}
		workers, err := pool.Workers(t.Context(), s, "default")
		_, used, failed := pool.Use(t.Context(), s, "default", time.Now())
		if err != nil || failed != nil || len(workers) != 1 || workers[0].State != pool.WorkerUnusable || used.Unusable != 1 {
			t.Errorf("%+v, %+v, %v, %v", workers, used, err, failed)
		}
		l.Close()
	})
}
