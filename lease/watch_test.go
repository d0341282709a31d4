package lease

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// With the longest grace a holder of a store that answers is never told to stop, from its
// first grant on; more than that is refused at once, and not when the grant is extended.
func TestWatchTakesAGraceThatFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := held(t, &away{Store: memory.New()})
		defer h.Close()
		most := MostGrace(h.State().Budget)
		var option *OptionError
		began := time.Now()
		soon, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := h.Watch(soon, most+1); !errors.As(err, &option) || option.Option != "grace" || !strings.Contains(err.Error(), most.String()) {
			t.Errorf("a grace above %s: Watch returned %v after %s", most, err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := h.Watch(ctx, most); err != nil {
			t.Errorf("a grace of %s: Watch returned %v after %s", most, err, time.Since(began))
		}
	})
}

// A grant that ended while the host slept is no outage of the store.
func TestWatchAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, f := options()
		var slept atomic.Int64
		o.clocks = func() term.Now {
			now, pause := f.read(), time.Duration(slept.Load())
			return term.Now{Wall: now.Wall.Add(pause), Boot: now.Boot + pause}
		}
		h, err := Hold(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		time.Sleep(time.Minute)
		slept.Store(int64(time.Hour))
		err = h.Watch(t.Context(), time.Second)
		var late *LateError
		var outage *OutageError
		if errors.As(err, &outage) || !errors.As(err, &late) || late.Horizon.After(o.clocks().Wall) {
			t.Errorf("after a pause Watch returned %v", err)
		}
	})
}

// timeless is a store without a clock, as etcd and ZooKeeper are.
type timeless struct{ store.Store }

func (s timeless) List(ctx context.Context, prefix string) ([]store.Record, error) {
	list, err := s.Store.List(ctx, prefix)
	for i := range list {
		list[i].Read, list[i].Written = time.Time{}, time.Time{}
	}
	return list, err
}

// Only a store with a clock knows whether a holder that gave nothing back is alive.
func TestStatesOfWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, _ := options()
		l := open(t, s, o)
		want := func(s store.Store, state pool.WorkerState, least, most time.Duration) {
			t.Helper()
			all, err := pool.Workers(t.Context(), s, pool.Default)
			if err != nil || len(all) != 1 || all[0].State != state || all[0].Free < least || all[0].Free > most {
				t.Errorf("the store has %+v, %v, want %s, free in %s to %s", all, err, state, least, most)
			}
		}
		time.Sleep(5 * time.Minute)
		want(s, pool.WorkerHeld, 15*time.Second, 30*time.Second)
		want(timeless{s}, pool.WorkerUnknown, 0, 0)
		s.refuse.Store(true)
		time.Sleep(time.Hour) // as good as dead
		want(s.Store, pool.WorkerFree, 0, 0)
		want(timeless{s.Store}, pool.WorkerUnknown, 0, 0)
		s.refuse.Store(false)
		time.Sleep(time.Minute)
		closed(t, l)
		want(s, pool.WorkerFree, 0, 0)
		want(timeless{s}, pool.WorkerFree, 0, 0)
	})
}

// On a store that can forget others wait longer, and that is said.
func TestStateOfAWorkerOnAStoreThatForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		l := open(t, forgetful{s}, o)
		defer closed(t, l)
		all, err := pool.Workers(t.Context(), s, pool.Default)
		ttl := l.State().Outage
		if err != nil || len(all) != 1 || all[0].State != pool.WorkerHeld || all[0].Free < 10*time.Second+ttl/2 {
			t.Errorf("the store has %+v, %v, want a worker that falls free no sooner than 10s and its time to live", all, err)
		}
	})
}

// forgetful is a store that can forget.
type forgetful struct{ store.Store }

func (f forgetful) Durability(ctx context.Context) (store.Durability, error) {
	p, err := f.Store.Durability(ctx)
	p.Durable = false
	return p, err
}
