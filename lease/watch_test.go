package lease

import (
	"context"
	"errors"
	"maps"
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

// With the longest grace a holder of a store that answers is never told to stop, from its
// first grant on; more than that is refused at once, and not when the grant is extended.
func TestGraceThatFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		refused := func(s store.Store, grace, most time.Duration) {
			t.Helper()
			o, _ := options()
			o.Grace = grace
			_, err := Hold(t.Context(), s, o)
			var option *OptionError
			if !errors.As(err, &option) || option.Option != "grace" || !strings.Contains(err.Error(), "at most "+most.String()) {
				t.Errorf("a grace of %s, and at most %s: %v", grace, most, err)
			}
		}
		most := MostGrace(term.OutageDurable)
		refused(s, most+1, most)
		h, _ := held(t, s, most)
		time.Sleep(time.Hour)
		if err := h.Err(); err != nil || h.Grace() != most {
			t.Errorf("a grace of %s: %s, ended by %v", most, h.Grace(), err)
		}
		closed(t, h.lease)
		lossy := forgetful{memory.New()} // whose budget is known when the pool is open
		refused(lossy, 2*time.Second, MostGrace(term.OutageLossy))
		list, err := pool.Workers(t.Context(), lossy, pool.Default)
		if err != nil || len(list) != 1 || list[0].State != pool.WorkerFree {
			t.Errorf("a refused grace left %+v, %v, want a worker that was given back", list, err)
		}
	})
}

// Without a grace there is one that fits the budget.
func TestGraceByDefault(t *testing.T) {
	for _, tt := range []struct {
		store store.Store
		want  time.Duration
	}{
		{memory.New(), defaultGrace},
		{forgetful{memory.New()}, term.OutageLossy / 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			o, _ := options()
			h, err := Hold(t.Context(), tt.store, o)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			time.Sleep(time.Minute)
			if h.Grace() != tt.want || h.Err() != nil {
				t.Errorf("the grace is %s, %v, want %s", h.Grace(), h.Err(), tt.want)
			}
		})
	}
}

// Done is closed by Close, for all who wait, and by nothing else while all is well.
func TestDoneByManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := held(t, &away{Store: memory.New()}, 0)
		var told atomic.Int64
		for range 20 {
			go func() {
				if err := h.Err(); err != nil {
					t.Errorf("Done is open, and Err returns %v", err)
				}
				<-h.Done()
				if h.Err() == firn.ErrClosed && h.State().Worker == h.Number() {
					told.Add(1)
				}
			}()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := told.Load(); n != 0 {
			t.Fatalf("%d were told to stop while all was well: %v", n, h.Err())
		}
		var closing sync.WaitGroup
		for range 4 {
			closing.Go(func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closing.Wait()
		synctest.Wait()
		if n := told.Load(); n != 20 {
			t.Fatalf("%d of 20 were told that the worker is closed: %v", n, h.Err())
		}
	})
}

// The first reason stays, though Close comes later.
func TestErrIsTheFirstReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		h, _ := held(t, s, 0)
		if err := pool.Release(t.Context(), s, pool.Default, h.Number()); err != nil {
			t.Fatal(err)
		}
		var lost *LostError
		if err := ended(t, h); !errors.As(err, &lost) {
			t.Fatal(err)
		}
		h.Close()
		if err := h.Err(); !errors.As(err, &lost) {
			t.Fatalf("after Close: %v", err)
		}
	})
}

// A first grant that is nearly used up when Hold has it is extended before Hold returns.
func TestHoldAwaitsItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		h, _ := held(t, s, 5*time.Second)
		defer h.Close()
		if left := h.State().Left(h.clocks().Wall); left <= h.Grace() {
			t.Errorf("Hold returned %s before the end of the grant, with a grace of %s", left, h.Grace())
		}
	})
}

// The fields of a worker are those of the ids that have its number.
func TestFieldsOfAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := options()
		o.Layout, o.Choice = firn.MustLayout("time:41@1ms,datacenter:5,worker:5,seq:12;epoch=1999-01-01T00:00:00Z"), Only(37)
		h, err := Hold(t.Context(), memory.New(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if want := map[string]int64{"datacenter": 1, "worker": 5}; h.Number() != 37 || !maps.Equal(h.Fields(), want) {
			t.Errorf("worker %d is %v, want %v", h.Number(), h.Fields(), want)
		}
	})
}

// What only a lease can have is refused, and not left out without a word.
func TestHoldRefusesOptionsOfALease(t *testing.T) {
	for option, o := range map[string]*Options{"lanes": {Lanes: 2}, "grant-file": {GrantFile: "/tmp/grant"}, "grace": {Grace: -1}} {
		_, err := Hold(t.Context(), memory.New(), o)
		var e *OptionError
		if !errors.As(err, &e) || e.Option != option || !strings.HasPrefix(e.Reason, option) {
			t.Errorf("%s: %v", option, err)
		}
	}
}

// A grant that ended while the host slept is no outage of the store.
func TestLookAfterAPause(t *testing.T) {
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
		synctest.Wait() // nobody looks, and nobody extends the grant, before the next line but one
		slept.Store(int64(time.Hour))
		err = h.look()
		var late *LateError
		var outage *OutageError
		if errors.As(err, &outage) || !errors.As(err, &late) || late.EndsAt.After(o.clocks().Wall) {
			t.Errorf("after a pause the program has to stop because of %v", err)
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
		want(s, pool.WorkerHeld, 4*time.Minute, 5*time.Minute) // its grant is longer than its time to live
		want(timeless{s}, pool.WorkerUnknown, 0, 0)
		s.refuse.Store(true)
		time.Sleep(time.Minute)
		want(s.Store, pool.WorkerUnusable, 3*time.Minute, 4*time.Minute)
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

// On a lossy store others wait longer, and that is said.
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

// forgetful is a lossy store.
type forgetful struct{ store.Store }

func (f forgetful) Durability(ctx context.Context) (store.Durability, error) {
	p, err := f.Store.Durability(ctx)
	p.Durable = false
	return p, err
}
