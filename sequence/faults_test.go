package sequence_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

// The store is away: what is in hand is served, the state says how long it
// lasts, then calls fail with an error of their own, and come back by themselves.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memory.New())
		s := begin(t, f, sequence.Options{Cache: 100, CacheFor: time.Second, Wait: 2 * time.Second})
		defer closeSeries(t, s)
		for range 1000 { // 100/s
			next(t, s)
			time.Sleep(10 * time.Millisecond)
		}
		f.Away(errors.New("connection refused"))
		var last firn.ID
		var err error
		served := 0
		for ; ; served++ {
			var id firn.ID
			if id, err = s.Next(ctx); err != nil {
				break
			}
			last = id
			time.Sleep(10 * time.Millisecond)
			if st := s.State(); st.Degraded && (st.Lasts <= 0 && st.Left > 0 || st.Lasts > 3*time.Second || st.Err == nil) {
				t.Fatalf("%+v", st)
			}
		}
		var outage *sequence.OutageError
		if !errors.As(err, &outage) || !strings.Contains(err.Error(), "connection refused") || served < 40 {
			t.Errorf("%v after %d", err, served)
		}
		began := time.Now()
		if _, err := s.Next(ctx); !errors.As(err, &outage) || time.Since(began) > 0 {
			t.Errorf("%v after %s, with the store away for long", err, time.Since(began))
		}
		f.Away(nil)
		time.Sleep(4 * time.Second)
		if id := next(t, s); id <= last {
			t.Errorf("%d after %d", id, last)
		}
		if s.State().Degraded {
			t.Error("degraded")
		}
	})
}

// A write whose outcome is unknown is settled by reading: granted if the record
// bears its version, else thrown away.
func TestUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := storetest.NewFaulty(st)
		s := begin(t, f, sequence.Options{Cache: 2, MaxUnused: 2, Strict: true})
		if _, err := sequence.Create(ctx, f, "orders", nil); !errors.As(err, new(*sequence.ExistsError)) {
			t.Error(err)
		}
		if id := next(t, s); id != 1 {
			t.Fatal(id)
		}
		f.Next(storetest.LoseReply())
		if id := next(t, s); id != 2 { // read back
			t.Errorf("%d after a reply was lost", id)
		}
		f.Next(storetest.LoseRequest())
		if id := next(t, s); id != 3 {
			t.Errorf("%d after a request was lost", id)
		}
		later, release := storetest.Later()
		f.Next(later)
		if id := next(t, s); id != 4 {
			t.Errorf("%d while a request was late", id)
		}
		if _, err := release(); !errors.Is(err, store.ErrConflict) {
			t.Error(err)
		}
		if id := next(t, s); id != 5 {
			t.Errorf("%d after it came", id)
		}
		// Another's write of the same value is another's.
		other := begin(t, f.Handle(), sequence.Options{})
		f.Next(func(_ context.Context, p storetest.Put) (store.Record, error) {
			if id := next(t, other); id != 6 {
				t.Errorf("%d", id)
			}
			return p.Lost(storetest.ErrLost)
		})
		if id := next(t, s); id != 7 {
			t.Errorf("%d after another's write", id)
		}
		if w := s.State().Wasted; w != 3 {
			t.Errorf("%d wasted", w)
		}
		closeSeries(t, other)
		closeSeries(t, s)
	})
}

// forgets are the ways of a store to have forgotten a series.
var forgets = map[string]func(*memory.Store, memory.Snapshot){
	"the record is gone": func(st *memory.Store, _ memory.Snapshot) { st.Restore(memory.Snapshot{}) },
	"it went back":       func(st *memory.Store, was memory.Snapshot) { st.Restore(was) },
	"it was made anew": func(st *memory.Store, _ memory.Snapshot) {
		st.Restore(memory.Snapshot{})
		if _, err := sequence.Create(ctx, st, "orders", &sequence.Options{First: 1_000_000}); err != nil {
			panic(err)
		}
	},
}

func TestForgotten(t *testing.T) {
	for name, forget := range forgets {
		t.Run(name, func(t *testing.T) {
			st := memory.New()
			first := begin(t, st, sequence.Options{Cache: 10})
			was := st.Snapshot()
			closeSeries(t, first)
			s := begin(t, st, sequence.Options{})
			defer s.Close()
			next(t, s)
			wait(t, func() bool { return s.State().Left == 9 })
			forget(st, was)
			// The next block is due after half of this one.
			var err error
			for range 10 {
				if _, err = s.Next(ctx); err != nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			wait(t, func() bool { _, err = s.Next(ctx); return err != nil })
			var forgot *store.ForgotError
			if !errors.As(err, &forgot) {
				t.Fatal(err)
			}
			if st := s.State(); !errors.As(st.Err, &forgot) || st.Left != 0 {
				t.Errorf("%+v", st)
			}
			if _, err := s.Append(ctx, nil, 3); !errors.As(err, &forgot) {
				t.Error(err)
			}
		})
	}
}

// remote is a store that neither lies in this process nor says what it forgot,
// and that can be replaced by another instance.
type remote struct {
	*memory.Store
	mu      sync.Mutex
	promise store.Durability
}

func (r *remote) Durability(context.Context) (store.Durability, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.promise, nil
}

func (r *remote) become(instance string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promise.Instance = instance
}

func (r *remote) set(d store.Durability) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promise = d
}

// Elsewhere than on an embedded store, a series has to be created.
func TestNotThere(t *testing.T) {
	st := &remote{Store: memory.New(), promise: store.Durability{Durable: true}}
	var none *sequence.MissingError
	if _, err := sequence.Open(ctx, st, "orders", nil); !errors.As(err, &none) {
		t.Error(err)
	}
	if _, err := sequence.Create(ctx, st, "orders", nil); err != nil {
		t.Fatal(err)
	}
	s := begin(t, st, sequence.Options{})
	if id := next(t, s); id != 1 {
		t.Error(id)
	}
	closeSeries(t, s)
}

func TestLossy(t *testing.T) {
	st := &remote{Store: memory.New(), promise: store.Durability{Durable: false, Why: "appendfsync=everysec", Instance: "a"}}
	var lossy *sequence.LossyError
	if _, err := sequence.Create(ctx, st, "orders", nil); !errors.As(err, &lossy) || !strings.Contains(err.Error(), "everysec") {
		t.Fatal(err)
	}
	if _, err := sequence.Create(ctx, st, "orders", &sequence.Options{MayRepeat: true, Cache: 10}); err != nil {
		t.Fatal(err)
	}
	if _, err := sequence.Open(ctx, st, "orders", &sequence.Options{Logger: quiet}); !errors.As(err, &lossy) || lossy.Since {
		t.Fatalf("opened by a program that accepts no repeats: %v", err)
	}
	s := begin(t, st, sequence.Options{MayRepeat: true})
	if id := next(t, s); id != 1 || !s.State().Lossy {
		t.Errorf("%d, %+v", id, s.State())
	}
	was := st.Snapshot()
	for range 100 {
		next(t, s)
	}
	// Another instance answers, and lacks the last grants.
	st.Restore(was)
	st.become("b")
	var forgot *store.ForgotError
	_, err := sequence.Open(ctx, st, "orders", &sequence.Options{MayRepeat: true, Logger: quiet})
	if !errors.As(err, &forgot) {
		t.Fatal(err)
	}
	wait(t, func() bool { _, err = s.Next(ctx); return err != nil })
	if !errors.As(err, &forgot) {
		t.Error(err)
	}
	s.Close()
	infos, err := sequence.Recover(ctx, st, 1000, nil)
	if err != nil || len(infos) != 1 || infos[0].Info.Granted < 1000 || infos[0].Info.Instance != "b" {
		t.Fatal(infos, err)
	}
	s = begin(t, st, sequence.Options{MayRepeat: true})
	if id := next(t, s); id <= 1000 {
		t.Error(id)
	}
	closeSeries(t, s)
}

// A series that an embedded store has forgotten does not begin again by itself,
// be there anything else left in the store or not.
func TestForgottenAltogether(t *testing.T) {
	st := memory.New()
	empty := st.Snapshot()
	s := begin(t, st, sequence.Options{})
	if id := next(t, s); id != 1 {
		t.Error(id)
	}
	closeSeries(t, s)
	st.Restore(empty)
	for range 2 {
		if done, err := sequence.Recover(ctx, st, 1, nil); err != nil || len(done) != 0 {
			t.Error(done, err)
		}
	}
	var none *sequence.MissingError
	if _, err := sequence.Open(ctx, st, "orders", &sequence.Options{Logger: quiet}); !errors.As(err, &none) {
		t.Errorf("it has begun again: %v", err)
	}
	if _, err := sequence.Create(ctx, st, "orders", &sequence.Options{First: 1000}); err != nil {
		t.Fatal(err)
	}
	s = begin(t, st, sequence.Options{First: 1000})
	if id := next(t, s); id != 1000 {
		t.Error(id)
	}
	closeSeries(t, s)
}

// Who restores a store has to know what was forgotten of what it says, and not
// what processes have handed back since it went back.
func TestRestoredAfterHandBack(t *testing.T) {
	st := &remote{Store: memory.New(), promise: store.Durability{Durable: false, Instance: "a"}}
	if _, err := sequence.Create(ctx, st, "orders", &sequence.Options{MayRepeat: true, Cache: 10}); err != nil {
		t.Fatal(err)
	}
	one := begin(t, st, sequence.Options{MayRepeat: true})
	next(t, one)
	wait(t, func() bool { return one.State().Left == 9 })
	was := st.Snapshot() // granted are 1 to 10
	two := begin(t, st, sequence.Options{MayRepeat: true})
	if r, err := two.Reserve(ctx, 20); err != nil || r.First != 11 && r.First != 21 {
		t.Fatal(r, err)
	}
	last := info(t, st).Granted
	st.Restore(was)
	st.become("b")
	two.Close()
	closeSeries(t, one) // what it has in hand
	if g := info(t, st).Granted; g != 1 {
		t.Fatalf("granted %d", g)
	}
	if _, err := sequence.Recover(ctx, st, int64(last-10), nil); err != nil {
		t.Fatal(err)
	}
	s := begin(t, st, sequence.Options{MayRepeat: true})
	defer closeSeries(t, s)
	if id := next(t, s); id <= last {
		t.Errorf("%d, and numbers up to %d had been granted", id, last)
	}
}

// A series of a store that never forgot is refused when the store can.
func TestBecomesLossy(t *testing.T) {
	st := &remote{Store: memory.New(), promise: store.Durability{Durable: true}}
	if _, err := sequence.Create(ctx, st, "orders", nil); err != nil {
		t.Fatal(err)
	}
	st.promise = store.Durability{Durable: false, Why: "fsync=off"}
	var lossy *sequence.LossyError
	if _, err := sequence.Open(ctx, st, "orders", &sequence.Options{Logger: quiet}); !errors.As(err, &lossy) {
		t.Fatal(err)
	}
	s := begin(t, st, sequence.Options{MayRepeat: true}) // the store cannot tell its instance
	next(t, s)
	closeSeries(t, s)
}

// A series refuses while the store can lose writes, and continues when the store cannot any more:
// nothing was lost, so that no recovery and no restart is needed.
func TestLossyForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &remote{Store: memory.New(), promise: store.Durability{Durable: true}}
		if _, err := sequence.Create(ctx, st, "orders", &sequence.Options{Cache: 1}); err != nil {
			t.Fatal(err)
		}
		s := begin(t, st, sequence.Options{})
		defer closeSeries(t, s)
		last := next(t, s)
		st.set(store.Durability{Durable: false, Why: "a standby that is away", Instance: "a"})
		time.Sleep(2 * time.Minute) // until the store is asked again
		var lossy *sequence.LossyError
		for refused := 0; refused < 2; {
			switch id, err := s.Next(ctx); {
			case err == nil && refused == 0 && id < last+100: // one that was in hand
				last = id
			case errors.As(err, &lossy) && lossy.Since:
				refused++
			default:
				t.Fatalf("on a lossy store: %d, %v", id, err)
			}
		}
		st.set(store.Durability{Durable: true})
		if id := next(t, s); id <= last {
			t.Errorf("%d after %d", id, last)
		}
	})
}

// Strict: a call that begins after another has returned gets a larger number.
func TestStrict(t *testing.T) {
	st := memory.New()
	var all []*sequence.Series
	for range 4 {
		all = append(all, begin(t, st, sequence.Options{Strict: true}))
	}
	var mu sync.Mutex // makes calls begin one after another, in any process
	var last firn.ID
	var done sync.WaitGroup
	for _, s := range all {
		for range 4 {
			done.Go(func() {
				for range 200 {
					mu.Lock()
					before := last
					mu.Unlock()
					id, err := s.Next(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if id <= before {
						t.Errorf("%d was given after %d had been", id, before)
					}
					last = max(last, id)
					mu.Unlock()
				}
			})
		}
	}
	done.Wait()
	for _, s := range all {
		closeSeries(t, s)
	}
	if g := info(t, st).Granted; g != 4*4*200 {
		t.Errorf("granted %d", g)
	}
}

// A strict number granted to a call that was given up is not given to a later
// one, which may know of a larger one.
func TestStrictGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memory.New())
		a := begin(t, f, sequence.Options{Strict: true})
		b := begin(t, f.Handle(), sequence.Options{})
		next(t, a)
		hold, thaw := storetest.FreezeReply()
		f.Next(hold)
		gone, cancel := context.WithCancel(ctx)
		go func() {
			time.Sleep(time.Second)
			cancel()
		}()
		if _, err := a.Next(gone); !errors.Is(err, context.Canceled) { // 2
			t.Error(err)
		}
		if id := next(t, b); id != 3 {
			t.Error(id)
		}
		go func() {
			time.Sleep(time.Second)
			thaw()
		}()
		if id := next(t, a); id != 4 {
			t.Errorf("%d after 3", id)
		}
		if id := next(t, a); id != 5 {
			t.Errorf("%d after 4", id)
		}
		closeSeries(t, a)
		closeSeries(t, b)
	})
}
