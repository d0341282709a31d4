package lease

import (
	"context"
	"errors"
	"log/slog"
	"strings"
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

// layout begins before the time of a synctest bubble, which is 2000.
var layout = firn.MustLayout("firn;epoch=1999-01-01T00:00:00Z")

// clocksFake follow the bubble's time; the wall may be stepped.
type clocksFake struct {
	start time.Time
	step  atomic.Int64
}

func (f *clocksFake) read() term.Now {
	return term.Now{Wall: time.Now().Add(time.Duration(f.step.Load())), Boot: time.Since(f.start)}
}

// options are those of a test in a bubble.
func options() (*Options, *clocksFake) {
	f := &clocksFake{start: time.Now()}
	return &Options{Layout: layout, Name: "test", Logger: slog.New(slog.DiscardHandler), clocks: f.read}, f
}

// away is a store that can be out of reach, hang, or have forgotten.
type away struct {
	store.Store
	refuse, hang, forgot atomic.Bool
}

var errAway = errors.New("connection refused")

func (a *away) fail(ctx context.Context) error {
	switch {
	case a.forgot.Load():
		return &store.ForgotError{Store: "test", What: "it was removed"}
	case a.hang.Load():
		<-ctx.Done()
		return ctx.Err()
	case a.refuse.Load():
		return errAway
	}
	return nil
}

func (a *away) Get(ctx context.Context, key string) (store.Record, error) {
	if err := a.fail(ctx); err != nil {
		return store.Record{}, err
	}
	return a.Store.Get(ctx, key)
}

func (a *away) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if err := a.fail(ctx); err != nil {
		return store.Record{}, err
	}
	return a.Store.Put(ctx, key, value, cond)
}

func (a *away) List(ctx context.Context, prefix string) ([]store.Record, error) {
	if err := a.fail(ctx); err != nil {
		return nil, err
	}
	return a.Store.List(ctx, prefix)
}

func (a *away) Durability(ctx context.Context) (store.Durability, error) {
	if err := a.fail(ctx); err != nil {
		return store.Durability{}, err
	}
	return a.Store.Durability(ctx)
}

func open(t *testing.T, s store.Store, o *Options) *Lease {
	t.Helper()
	l, err := Open(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closed(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// increasing takes n ids and checks that they rise from *last on.
func increasing(t *testing.T, l *Lease, last *firn.ID, n int) {
	t.Helper()
	for range n {
		id, err := l.Next(t.Context())
		if err != nil || id <= *last {
			t.Fatalf("%d after %d, %v", id, *last, err)
		}
		*last = id
	}
}

func TestIdsFromOpenToClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		l := open(t, s, o)
		var last firn.ID
		for range 60 {
			increasing(t, l, &last, 5000) // more than a tick has
			time.Sleep(10 * time.Second)
		}
		st := l.State()
		if st.phase != term.Holding || st.Left(time.Now()) < 4*time.Minute || st.Err != nil {
			t.Fatalf("%+v", st)
		}
		ids, err := l.Append(t.Context(), nil, 10_000)
		if err != nil || len(ids) != 10_000 || ids[0] <= last {
			t.Fatal(len(ids), err)
		}
		closed(t, l)
		if _, err := l.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
			t.Fatal(err)
		}
		list, err := pool.Workers(t.Context(), s, pool.Default)
		if err != nil || len(list) != 1 || list[0].State != pool.WorkerFree || list[0].Horizon.After(time.Now().Add(time.Second)) {
			t.Fatalf("%+v %v", list, err)
		}
	})
}

func TestStoreAwayAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, _ := options()
		o.Outage = time.Minute
		l := open(t, s, o)
		defer closed(t, l)
		var last firn.ID
		time.Sleep(5 * time.Minute) // the ramp is over
		s.refuse.Store(true)
		went := time.Now()
		for !l.State().StoreAway {
			time.Sleep(100 * time.Millisecond)
		}
		if d := time.Since(went); d > 11*time.Second {
			t.Fatalf("degraded after %s", d)
		}
		if left := l.State().Left(time.Now()); left < 45*time.Second || left > time.Minute {
			t.Fatalf("%s left", left)
		}
		for {
			id, err := l.Next(t.Context())
			var outage *OutageError
			if errors.As(err, &outage) {
				if !errors.Is(err, errAway) || outage.EndedAt.After(time.Now()) {
					t.Fatalf("%v at %s", err, time.Now())
				}
				break
			}
			if err != nil || id <= last {
				t.Fatal(id, last, err)
			}
			last = id
			time.Sleep(10 * time.Millisecond)
		}
		if d := time.Since(went); d < 50*time.Second || d > time.Minute {
			t.Fatalf("ids went on for %s of 1m", d)
		}
		time.Sleep(time.Hour)
		s.refuse.Store(false)
		back := time.Now()
		for l.State().StoreAway {
			time.Sleep(100 * time.Millisecond)
		}
		if d := time.Since(back); d > 5*time.Second {
			t.Fatalf("back after %s", d)
		}
		increasing(t, l, &last, 10)
	})
}

func TestCallersDoNotSeeALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		l := open(t, s, o)
		defer closed(t, l)
		was := l.State()
		for range 10 {
			if err := pool.Release(t.Context(), s, pool.Default, l.State().Worker); err != nil {
				t.Fatal(err)
			}
			for range 2000 {
				if _, err := l.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		if now := l.State(); now.Term <= was.Term && now.Worker == was.Worker {
			t.Fatalf("%+v", now)
		}
	})
}

func TestStoreForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, _ := options()
		l := open(t, s, o)
		defer l.Close()
		s.forgot.Store(true)
		time.Sleep(2 * look)
		for range 2 {
			var forgot *store.ForgotError
			if _, err := l.Next(t.Context()); !errors.As(err, &forgot) {
				t.Fatal(err)
			}
			s.forgot.Store(false) // it is final
			time.Sleep(time.Hour)
		}
	})
}

func TestPoolForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		empty := s.Snapshot()
		o, _ := options()
		l := open(t, s, o)
		defer l.Close()
		s.Restore(empty)
		time.Sleep(10 * time.Second)
		var forgot *store.ForgotError
		if _, err := l.Next(t.Context()); !errors.As(err, &forgot) {
			t.Fatal(err)
		}
		if list, err := s.List(t.Context(), ""); err != nil || len(list) != 0 {
			t.Fatalf("%v %v: something was created", list, err)
		}
	})
}

func TestFullPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		created(t, s, &pool.Options{Layout: layout, Workers: 2})
		a, b := open(t, s, o), open(t, s, o)
		defer closed(t, a)
		began := time.Now()
		_, err := Open(t.Context(), s, o)
		var full *term.FullError
		if !errors.As(err, &full) || len(full.Holders) != 2 || time.Since(began) > 6*time.Second {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
		if !strings.Contains(err.Error(), "held by test and falls free in ") {
			t.Fatal(err)
		}
		closed(t, b)
		closed(t, open(t, s, o))
	})
}

func TestLayoutGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		closed(t, open(t, s, o))
		o.Layout = firn.MustLayout("twitter;epoch=1999-01-01T00:00:00Z")
		_, err := Open(t.Context(), s, o)
		var other *term.LayoutError
		if !errors.As(err, &other) || other.Have != layout.String() {
			t.Fatal(err)
		}
	})
}

func TestCloseWhileTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, _ := options()
		l := open(t, s, o)
		s.hang.Store(true)
		began := time.Now()
		err := l.Close()
		if err == nil || !strings.Contains(err.Error(), "was not given back, and falls free in 10s") {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 6*time.Second {
			t.Fatal(d)
		}
		if again := l.Close(); again == nil || again.Error() != err.Error() {
			t.Fatal(again)
		}
	})
}

func TestOpenEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, _ := options()
		created(t, s, &pool.Options{Layout: layout, Workers: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		holder := open(t, s, o)
		defer closed(t, holder)
		if _, err := Open(ctx, s, o); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	})
}

func TestClockSteps(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, f := options()
				l := open(t, memory.New(), o)
				defer closed(t, l)
				var last firn.ID
				increasing(t, l, &last, 10)
				f.step.Store(int64(step))
				for range 1000 {
					time.Sleep(time.Second)
					increasing(t, l, &last, 2)
				}
				p, err := layout.Decode(last)
				if err != nil {
					t.Fatal(err)
				}
				off := time.Until(p.Time)
				if want := step / 72; off < min(want, 0) || off > max(want, 0) || l.State().Offset == 0 {
					t.Fatalf("ids are %s off, the state says %s", off, l.State().Offset)
				}
			})
		})
	}
}

func TestRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		o, _ := options()
		l := open(t, s, o)
		was := l.State()
		done, err := pool.Recover(t.Context(), s, 0)
		if err != nil || len(done) != 1 || done[0].Workers != 1 || done[0].StartsAt.Before(time.Now().Add(5*time.Minute)) {
			t.Fatalf("%+v %v", done, err)
		}
		time.Sleep(time.Minute) // the holder finds out, and no worker can be had
		var later *NotYetError
		if _, err := l.Next(t.Context()); !errors.As(err, &later) || !later.StartsAt.Equal(done[0].StartsAt) {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), s, o); !errors.As(err, &later) || !later.StartsAt.Equal(done[0].StartsAt) {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		id, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := layout.Decode(id); p.Time.Before(done[0].StartsAt) || l.State().Term <= was.Term {
			t.Fatalf("%+v, starts at %s", p, done[0].StartsAt)
		}
		closed(t, l)
	})
}

func TestOptionsSayAllThatIsWrong(t *testing.T) {
	_, err := Open(t.Context(), memory.New(), &Options{
		Pool: "a/b", Layout: layout, Shard: 1, Choice: Only(1024), Outage: time.Millisecond, TTL: time.Second, MaxAhead: time.Minute, Wait: -1,
	})
	for _, want := range []string{"slash", "outage", "ttl", "max-ahead", "wait"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// created creates the pool that these tests lease from.
func created(t *testing.T, s store.Store, o *pool.Options) {
	t.Helper()
	if _, err := pool.Create(t.Context(), s, pool.Default, o); err != nil {
		t.Fatal(err)
	}
}

// remote is a store that other hosts can reach.
type remote struct{ store.Store }

func (r remote) Durability(ctx context.Context) (store.Durability, error) {
	p, err := r.Store.Durability(ctx)
	p.LocalClock, p.NoticesLoss, p.Durable = false, false, true
	return p, err
}

// Opening a pool never creates it on a store that other hosts can reach, nor beside
// another one on a store in a file.
func TestMissingPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := remote{memory.New()}
		o, _ := options()
		var missing *MissingPoolError
		if _, err := Open(t.Context(), s, o); !errors.As(err, &missing) || missing.Pool != pool.Default || len(missing.Pools) != 0 {
			t.Fatal(err)
		}
		created(t, s, &pool.Options{Layout: layout})
		o.Pool = "mail"
		for _, s := range []store.Store{s, s.Store} {
			if _, err := Open(t.Context(), s, o); !errors.As(err, &missing) || missing.Pool != "mail" || len(missing.Pools) != 1 {
				t.Fatal(err)
			}
		}
		o.Pool = ""
		closed(t, open(t, s, o))
	})
}

// The layout is the pool's. One that is given is only compared.
func TestThePoolsLayout(t *testing.T) {
	s := memory.New()
	created(t, s, &pool.Options{Layout: firn.MustLayout("twitter")})
	l, err := Open(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, l)
	if l.State().Layout != firn.MustLayout("twitter") {
		t.Error(l.State().Layout)
	}
	var other *LayoutError
	if _, err := Open(t.Context(), s, &Options{Layout: firn.MustLayout("leaf")}); !errors.As(err, &other) || other.Have != firn.MustLayout("twitter").String() {
		t.Error(err)
	}
}

// A worker that the pool does not have cannot be asked for or preferred, nor a longer outage budget than the pool's
// limit, nor more lanes than it has workers.
func TestThePoolsLimits(t *testing.T) {
	s := memory.New()
	created(t, s, &pool.Options{First: 512, Workers: 3, Outage: time.Minute})
	for _, choice := range []Choice{Only(511), Prefer(511)} {
		var worker *WorkerError
		l, err := Open(t.Context(), s, &Options{Choice: choice})
		if !errors.As(err, &worker) || worker.First != 512 || worker.Last != 514 {
			t.Errorf("choice %d: %v", choice, err)
		}
		if err == nil {
			closed(t, l)
		}
	}
	for name, o := range map[string]*Options{"outage": {Outage: time.Hour}, "lanes": {Lanes: 4}} {
		var bad *OptionError
		if _, err := Open(t.Context(), s, o); !errors.As(err, &bad) || bad.Option != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// setBack is a store whose clock was set back.
type setBack struct {
	store.Store
	by atomic.Int64
}

func (b *setBack) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := b.Store.Get(ctx, key)
	rec.Read = rec.Read.Add(-time.Duration(b.by.Load()))
	return rec, err
}

// Who loses a worker while its own clock is too far ahead of the store's has another one
// once it has followed the system's, which is right.
func TestClockFollowsBetweenTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, f := options()
		m := memory.New()
		closed(t, open(t, m, o)) // founds the pool
		s := &setBack{Store: remote{m}}
		f.step.Store(int64(4900 * time.Millisecond))
		l := open(t, s, o)
		defer l.Close()
		s.by.Store(int64(4 * time.Second))
		f.step.Store(0)
		if err := pool.Release(t.Context(), s, pool.Default, l.State().Worker); err != nil {
			t.Fatal(err)
		}
		for range 300 {
			time.Sleep(time.Second)
			var clock *term.ClockError
			if _, err := l.Next(t.Context()); err == nil {
				continue
			} else if !errors.As(err, &clock) {
				t.Fatal(err)
			}
		}
		if _, err := l.Next(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
