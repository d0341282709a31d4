package lease

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// endsIn returns a layout that ends d from now.
func endsIn(t *testing.T, d time.Duration) firn.Layout {
	t.Helper()
	const life = 1 << 39 * time.Millisecond // 17 years
	l, err := firn.ParseLayout("time:39@1ms,worker:10,seq:12;epoch=" + time.Now().Add(d-life).UTC().Format(time.RFC3339Nano))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A layout that ends while a worker is held, and then the worker is lost: calls get the
// layout's error, nothing else is taken, and the program lives.
func TestLayoutEndsUnderALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		o.Layout = endsIn(t, 10*time.Minute)
		l := open(t, s, o)
		defer closed(t, l)
		var last firn.ID
		increasing(t, l, &last, 10)
		time.Sleep(11 * time.Minute)
		var ended *firn.EndError
		if _, err := l.Next(t.Context()); !errors.As(err, &ended) {
			t.Fatalf("after the layout's end Next returned %v", err)
		}
		was := l.State()
		if err := pool.Release(t.Context(), s, pool.Default, was.Worker); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if _, err := l.Next(t.Context()); !errors.As(err, &ended) {
			t.Errorf("after the worker was lost too Next returned %v", err)
		}
		if now := l.State(); now.Phase == term.Holding || !errors.As(now.Err, &ended) {
			t.Errorf("the state is %s with error %v", now.Phase, now.Err)
		}
		if _, err := Open(t.Context(), s, o); !errors.As(err, &ended) {
			t.Errorf("after the layout's end Open returned %v", err)
		}
		all, err := pool.Workers(t.Context(), s, pool.Default)
		if err != nil || len(all) != 1 || all[0].Name != "test" || all[0].Term != was.Term+1 {
			t.Errorf("the pool has %+v, %v: somebody took a worker after the layout's end", all, err)
		}
	})
}

// The keeper's own clock decides, and not what the system's says at the moment when a
// generator is made.
func TestSystemClockOutsideTheLayoutAtANewTerm(t *testing.T) {
	for _, now := range []string{"1970-01-01", "2300-01-01"} { // in the bubble time.Now is in 2000
		t.Run(now, func(t *testing.T) {
			// In the bubble no time passes while a goroutine runs: this is of the clock outside.
			spins := time.AfterFunc(time.Minute, func() { panic("the lease asks for a term again and again, and never sleeps") })
			defer spins.Stop()
			synctest.Test(t, func(t *testing.T) {
				wall, err := time.Parse(time.DateOnly, "2026-06-01")
				if err != nil {
					t.Fatal(err)
				}
				wrong, err := time.Parse(time.DateOnly, now)
				if err != nil {
					t.Fatal(err)
				}
				s := memory.New()
				o, f := options()
				o.Layout = firn.Default() // begins in 2025
				p := term.Pool{V: 1, ID: "one", Layout: o.Layout.String(), Workers: "0-1023", Limit: term.OutageDurable.Milliseconds()}
				if _, err := s.Put(t.Context(), term.KeyPool(pool.Default), p.Encode(), store.Condition{}); err != nil {
					t.Fatal(err)
				}
				f.step.Store(int64(time.Until(wall)))
				l := open(t, s, o)
				defer closed(t, l)
				var last firn.ID
				increasing(t, l, &last, 10)
				f.step.Store(int64(time.Until(wrong)))
				if err := pool.Release(t.Context(), s, pool.Default, l.State().Worker); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				increasing(t, l, &last, 10)
				if p, err := o.Layout.Decode(last); err != nil || p.Time.Sub(wall).Abs() > 10*time.Minute {
					t.Errorf("an id of %s, %v: the clock said %s before it was set to %s", p.Time, err, wall, wrong)
				}
			})
		})
	}
}

// slow is a store in which a worker's record takes 3 s to be written.
type slow struct{ store.Store }

func (s slow) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if strings.Contains(key, "/worker/") {
		time.Sleep(3 * time.Second)
	}
	return s.Store.Put(ctx, key, value, cond)
}

// A layout that ends between the taking of a worker and its first id is an error of Open,
// and the worker is given back.
func TestLayoutEndsWhileAWorkerIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		o.Layout = endsIn(t, 2*time.Second)
		var ended *firn.EndError
		if _, err := Open(t.Context(), slow{s}, o); !errors.As(err, &ended) {
			t.Fatalf("Open returned %v", err)
		}
		all, err := pool.Workers(t.Context(), s, pool.Default)
		if err != nil || len(all) != 1 || all[0].State != pool.WorkerFree || !all[0].Horizon.Before(time.Now().Add(-time.Hour)) {
			t.Errorf("the pool has %+v, %v: the worker was not given back as it was", all, err)
		}
	})
}

// Who operates it is told years before a layout ends, and not decades.
func TestLayoutThatEndsSoonIsLogged(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		left time.Duration
		want int
	}{{9 * year, 1}, {11 * year, 0}} {
		synctest.Test(t, func(t *testing.T) {
			o, _ := options()
			o.Layout = endsIn(t, c.left)
			n := 0
			o.Logger = slog.New(onLog(func(text string) {
				if text == "the layout ends soon" {
					n++
				}
			}))
			l := open(t, memory.New(), o)
			defer closed(t, l)
			time.Sleep(time.Hour)
			if n != c.want {
				t.Errorf("a layout that ends in %d years: %d warnings, want %d", c.left/year, n, c.want)
			}
		})
	}
}

// While no worker can be had the store is asked every few seconds, and not all the time.
func TestStoreIsNotAskedAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShifting(memory.New())
		o, _ := options()
		created(t, s, &pool.Options{Layout: layout})
		l := open(t, s, o)
		if _, err := pool.Recover(t.Context(), s, time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		var later *NotYetError
		if _, err := l.Next(t.Context()); !errors.As(err, &later) {
			t.Fatal(err)
		}
		before := s.gets.Load()
		const minutes = 20
		time.Sleep(minutes * time.Minute)
		if n := s.gets.Load() - before; n < minutes || n > 60*minutes {
			t.Errorf("%d reads in %d minutes, want one every few seconds", n, minutes)
		}
		l.Close()
	})
}
