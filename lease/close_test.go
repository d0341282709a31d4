package lease

import (
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

// onLog is a log handler that calls itself with the text of each line.
type onLog func(text string)

func (f onLog) Enabled(context.Context, slog.Level) bool { return true }

func (f onLog) Handle(_ context.Context, r slog.Record) error {
	f(r.Message)
	return nil
}

func (f onLog) WithAttrs([]slog.Attr) slog.Handler { return f }
func (f onLog) WithGroup(string) slog.Handler      { return f }

// A call that waits for another worker returns when the lease is closed at the very moment
// at which the term of the lost one ends.
func TestNextReturnsAfterCloseBetweenTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		var l *Lease
		next := make(chan error, 1)
		o.Logger = slog.New(onLog(func(text string) {
			if text != "lost the worker; leasing another" {
				return
			}
			go func() {
				_, err := l.Next(context.Background())
				next <- err
			}()
			time.Sleep(time.Second)
			go l.Close()
			time.Sleep(time.Second)
		}))
		l = open(t, s, o)
		time.Sleep(time.Minute)
		if err := pool.Release(t.Context(), s, pool.Default, l.State().Worker); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-next:
			if !errors.Is(err, firn.ErrClosed) {
				t.Errorf("Next returned %v", err)
			}
		case <-time.After(time.Hour):
			t.Error("Next still waits an hour after Close")
			l.change()
		}
	})
}

// Open returns soon after its context is done, also from a store that does not answer; and
// from one that does, the worker has been given back by then.
func TestOpenReturnsWithItsContext(t *testing.T) {
	const patience = 500 * time.Millisecond
	for _, c := range []struct {
		name  string
		hangs bool
	}{{"a store that hangs", true}, {"a store that answers", false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &away{Store: memory.New()}
				o, _ := options()
				first := open(t, s, o)
				ahead := first.State().Worker
				if _, err := s.Store.Put(t.Context(), term.KeyWorker(pool.Default, ahead+1),
					term.Past("nobody", o.Layout.Tick(time.Now().Add(3*time.Second))).Encode(), store.Condition{}); err != nil {
					t.Fatal(err)
				}
				o.Choice = Only(ahead + 1) // whose first id has to wait
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				time.AfterFunc(patience/2, func() { s.hang.Store(c.hangs) })
				if _, err := Open(ctx, s, o); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Open returned %v", err)
				}
				if took := time.Since(began); took > patience+200*time.Millisecond {
					t.Errorf("Open returned after %s with a context of %s", took, patience)
				}
				s.hang.Store(false)
				all, err := pool.Workers(t.Context(), s, pool.Default)
				if err != nil || len(all) != 2 || (all[1].State == pool.WorkerHeld) != c.hangs {
					t.Errorf("the pool has %+v, %v", all, err)
				}
				time.Sleep(10 * time.Second)
				closed(t, first)
			})
		})
	}
}

// What Open returns it does not log, too. What calls meet later is logged once.
func TestRefusalIsReturnedOrLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		created(t, s, &pool.Options{Layout: layout, Workers: 1})
		var mu sync.Mutex
		said := 0 // lines that say that no worker can be leased
		o.Logger = slog.New(onLog(func(text string) {
			mu.Lock()
			defer mu.Unlock()
			if text == "cannot lease a worker; trying again" {
				said++
			}
		}))
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return said
		}
		l := open(t, s, o)
		var full *term.FullError
		if _, err := Open(t.Context(), s, o); !errors.As(err, &full) {
			t.Fatal(err)
		}
		if n := count(); n != 0 {
			t.Errorf("a refused Open logged %d lines", n)
		}
		if _, err := pool.Recover(t.Context(), s, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := count(); n != 1 {
			t.Errorf("%d lines say that no worker can be leased, want 1", n)
		}
		closed(t, l)
	})
}

// stuck is a store that writes, but does not return, not even when its time is over.
type stuck struct {
	store.Store
	on   atomic.Bool
	free chan struct{}
}

func (s *stuck) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if s.on.Load() {
		<-s.free
	}
	return s.Store.Put(ctx, key, value, cond)
}

// A store that never returns holds up neither ids nor Close.
func TestCloseOverAStoreThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{Store: memory.New(), free: make(chan struct{})}
		defer close(s.free)
		o, _ := options()
		l := open(t, s, o)
		var last firn.ID
		time.Sleep(10 * time.Minute) // the ramp is over
		s.on.Store(true)
		for range 4 {
			time.Sleep(time.Minute)
			increasing(t, l, &last, 10)
		}
		if st := l.State(); !st.StoreAway || !st.Issuing {
			t.Errorf("the store has not returned for 4 minutes: %+v", st)
		}
		began := time.Now()
		err := l.Close()
		if d := time.Since(began); d > 5*time.Second+2*look {
			t.Errorf("Close took %s", d)
		}
		if err == nil || !strings.Contains(err.Error(), "was not given back, and falls free in 55s") {
			t.Errorf("Close returned %v", err)
		}
	})
}
