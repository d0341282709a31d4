package pool_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

func TestCreate(t *testing.T) {
	s := remote{memory.New(), "here"}
	info, err := pool.Create(t.Context(), s, "web", &pool.Options{Layout: firn.MustLayout("twitter"), First: 512, MayRepeat: []string{"b", "a", "b"}})
	if err != nil || info.Layout != firn.MustLayout("twitter") || info.First != 512 || info.Last != 1023 || !info.StartsAt.IsZero() ||
		info.OutageLimit != 5*time.Minute || info.Store != "here" || fmt.Sprint(info.MayRepeat) != "[a b]" {
		t.Errorf("%+v, %v", info, err)
	}
	var exists *pool.ExistsError
	if _, err := pool.Create(t.Context(), s, "web", nil); !errors.As(err, &exists) || exists.Info.ID != info.ID {
		t.Errorf("once more: %v", err)
	}
	l, err := lease.Open(t.Context(), s, &lease.Options{Pool: "web"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Next(t.Context()); err != nil || l.State().Worker != 512 {
		t.Errorf("%v, %+v", err, l.State())
	}
	if all, err := pool.List(t.Context(), s); err != nil || len(all) != 1 || all[0].ID != info.ID {
		t.Errorf("%+v, %v", all, err)
	}
}

// Ids of a pool that may have had a predecessor start above all that this one may have
// issued: by the longest outage budget and the error of the clocks.
func TestEnsure(t *testing.T) {
	for name, c := range map[string]struct {
		store store.Store
		o     *pool.Options
		least time.Duration
	}{
		"default":           {remote{memory.New(), ""}, nil, 310 * time.Second},
		"a longer budget":   {remote{memory.New(), ""}, &pool.Options{Outage: time.Hour}, time.Hour + 10*time.Second},
		"a store in a file": {memory.New(), nil, 310 * time.Second},
	} {
		began := time.Now()
		info, err := pool.Ensure(t.Context(), c.store, "web", c.o)
		if err != nil || info.StartsAt.Before(began.Add(c.least)) || info.StartsAt.After(time.Now().Add(c.least+time.Second)) {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		var later *lease.NotYetError
		if _, err := lease.Open(t.Context(), c.store, &lease.Options{Pool: "web", Wait: time.Nanosecond}); !errors.As(err, &later) || !later.StartsAt.Equal(info.StartsAt) {
			t.Errorf("%s: %v", name, err)
		}
		again, err := pool.Ensure(t.Context(), c.store, "web", c.o)
		if err != nil || again.ID != info.ID || !again.StartsAt.Equal(info.StartsAt) {
			t.Errorf("%s: once more: %+v, %v", name, again, err)
		}
		var exists *pool.ExistsError
		if _, err := pool.Create(t.Context(), c.store, "web", c.o); !errors.As(err, &exists) {
			t.Errorf("%s: a pool that waits is made to start at once: %v", name, err)
		}
	}

	// A pool that is there keeps what it has.
	s := with(t, memory.New(), &pool.Options{Workers: 16})
	if info, err := pool.Ensure(t.Context(), s, pool.Default, nil); err != nil || !info.StartsAt.IsZero() {
		t.Errorf("%+v, %v", info, err)
	}
	var layout *term.LayoutError
	if _, err := pool.Ensure(t.Context(), s, pool.Default, &pool.Options{Layout: firn.MustLayout("twitter")}); !errors.As(err, &layout) {
		t.Errorf("another layout: %v", err)
	}
	for option, o := range map[string]*pool.Options{"workers": {Workers: 17}, "outage": {Outage: time.Hour}} {
		var other *pool.OptionError
		if _, err := pool.Ensure(t.Context(), s, pool.Default, o); !errors.As(err, &other) || other.Option != option {
			t.Errorf("%s: %v", option, err)
		}
	}
	// A shorter budget than an earlier pool may have had is not believed.
	var short *pool.OptionError
	if _, err := pool.Ensure(t.Context(), s, "new", &pool.Options{Outage: time.Minute}); !errors.As(err, &short) {
		t.Error(err)
	}
}

// Where records of an earlier pool are left, creating it at once is refused, and creating
// it carefully goes above them.
func TestRemains(t *testing.T) {
	for _, left := range []string{"worker/7", "fresh"} {
		s := memory.New()
		horizon := firn.Default().Tick(time.Now().Add(time.Hour))
		r := term.Record{V: 1, Term: 1, Horizon: horizon}
		if _, err := s.Put(t.Context(), "pool/web/"+left, r.Encode(), store.Condition{}); err != nil {
			t.Fatal(err)
		}
		var remains *pool.RemainsError
		if _, err := pool.Create(t.Context(), s, "web", nil); !errors.As(err, &remains) || remains.Workers != 1 {
			t.Errorf("%s: %v", left, err)
		}
		if rec, err := s.Get(t.Context(), term.KeyPool("web")); err != nil || rec.Version != "" {
			t.Errorf("%s: something was written: %s, %v", left, rec.Value, err)
		}
		if _, err := pool.Ensure(t.Context(), s, "web", nil); err != nil {
			t.Fatal(err)
		}
		if p := record(t, s, "web"); left == "worker/7" && p.Floor < horizon {
			t.Errorf("%s: starts at %d, below %d", left, p.Floor, horizon)
		}
	}
}

// A joined has a pool be created, and a worker of it taken, before the first list of workers.
type joined struct {
	remote
	join func()
}

func (s *joined) List(ctx context.Context, prefix string) ([]store.Record, error) {
	if join := s.join; join != nil && prefix == term.KeyPool("web")+"/" {
		s.join = nil
		join()
	}
	return s.remote.List(ctx, prefix)
}

// TestCreatedMeanwhile: the workers of a pool that somebody else creates at the same time are not those of
// one that was lost, and the store is not taken for one that has lost counters.
func TestCreatedMeanwhile(t *testing.T) {
	for name, create := range map[string]func(store.Store) error{
		"create": func(s store.Store) error {
			_, err := pool.Create(t.Context(), s, "web", nil)
			if errors.As(err, new(*pool.ExistsError)) {
				return nil
			}
			return fmt.Errorf("no ExistsError: %w", err)
		},
		"ensure": func(s store.Store) error {
			info, err := pool.Ensure(t.Context(), s, "web", nil)
			if err == nil && (info.Created || !info.StartsAt.IsZero()) {
				err = fmt.Errorf("%+v", info)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := remote{memory.New(), "here"}
			err := create(&joined{s, func() {
				if _, err := pool.Create(t.Context(), s, "web", nil); err != nil {
					t.Fatal(err)
				}
				l, err := lease.Open(t.Context(), s, &lease.Options{Pool: "web"})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
			}})
			if err != nil {
				t.Error(err)
			}
			before, err := s.List(t.Context(), "")
			if err != nil || len(before) != 2 {
				t.Errorf("%d records, want the pool and a worker; %v", len(before), err)
			}
		})
	}
}

// A pool that is created after its store was recovered starts above the store's floor.
func TestCreateAfterRecover(t *testing.T) {
	s := memory.New()
	if _, err := pool.Recover(t.Context(), s, time.Hour); err != nil {
		t.Fatal(err)
	}
	if info, err := pool.Create(t.Context(), s, "web", nil); err != nil || info.StartsAt.Before(time.Now().Add(59*time.Minute)) {
		t.Errorf("%+v, %v", info, err)
	}
}

// Two pools get the same ids only if that was asked for.
func TestOverlap(t *testing.T) {
	epoch := firn.MustLayout("firn;epoch=2026-01-01T00:00:00Z")
	shifted := firn.MustLayout("time:41@1ms,worker:5,seq:17;epoch=2025-01-01T00:00:00Z")
	for name, c := range map[string]struct {
		a, b pool.Options
		same string // empty: no overlap; "?": the layouts differ
	}{
		"all workers":                {pool.Options{}, pool.Options{}, "0-1023"},
		"one worker":                 {pool.Options{Workers: 512}, pool.Options{First: 511}, "511-511"},
		"disjoint":                   {pool.Options{Workers: 512}, pool.Options{First: 512}, ""},
		"another epoch":              {pool.Options{}, pool.Options{Layout: epoch}, "0-1023"},
		"another epoch, disjoint":    {pool.Options{Workers: 512}, pool.Options{Layout: epoch, First: 512}, ""},
		"the same bits by two names": {pool.Options{Workers: 32}, pool.Options{Layout: firn.MustLayout("twitter"), First: 32}, ""},
		"other bits, disjoint":       {pool.Options{Workers: 16}, pool.Options{Layout: shifted, First: 16}, "?"},
		"asked for":                  {pool.Options{}, pool.Options{MayRepeat: []string{"a"}}, ""},
		"asked for by the other":     {pool.Options{MayRepeat: []string{"b"}}, pool.Options{}, ""},
		"asked for of another":       {pool.Options{}, pool.Options{MayRepeat: []string{"c"}}, "0-1023"},
	} {
		s := memory.New()
		if _, err := pool.Create(t.Context(), s, "a", &c.a); err != nil {
			t.Fatal(err)
		}
		for verb, create := range map[string]func() (pool.Info, error){
			"Create": func() (pool.Info, error) { return pool.Create(t.Context(), s, "b", &c.b) },
			"Ensure": func() (pool.Info, error) { return pool.Ensure(t.Context(), s, "b", &c.b) },
		} {
			_, err := create()
			var overlap *pool.OverlapError
			var exists *pool.ExistsError
			switch {
			case c.same == "" && err != nil && !errors.As(err, &exists):
				t.Errorf("%s: %s: %v", name, verb, err)
			case c.same != "" && (!errors.As(err, &overlap) || overlap.Other.Name != "a" || overlap.Same != c.same && c.same != "?"):
				t.Errorf("%s: %s: %v", name, verb, err)
			}
		}
		if rec, err := s.Get(t.Context(), term.KeyPool("b")); err != nil || (rec.Version != "") != (c.same == "") {
			t.Errorf("%s: afterwards: %s, %v", name, rec.Value, err)
		}
	}
}

// Two pools with the same workers are created at once, each request of one between any two
// of the other: never both.
func TestRace(t *testing.T) {
	for at := 1; ; at++ {
		s := memory.New()
		var other error
		calls := 0
		a := &scripted{Store: s, before: func(n int, _, _ string) error {
			if calls = n; n == at {
				_, other = pool.Create(t.Context(), s, "b", nil)
			}
			return nil
		}}
		_, err := pool.Create(t.Context(), a, "a", nil)
		if calls < at {
			break
		}
		all, listErr := pool.List(t.Context(), s)
		if listErr != nil || len(all) != 1 || (err == nil) == (other == nil) {
			t.Errorf("at %d: %d pools: a: %v, b: %v, %v", at, len(all), err, other, listErr)
		}
	}

	// And of one name: one pool, whichever way each of the two makes it.
	type making func(context.Context, store.Store, string, *pool.Options) (pool.Info, error)
	for name, both := range map[string][2]making{
		"ensure, ensure": {pool.Ensure, pool.Ensure}, "create, ensure": {pool.Create, pool.Ensure}, "ensure, create": {pool.Ensure, pool.Create}, "create, create": {pool.Create, pool.Create},
	} {
		for at := 1; ; at++ {
			s := memory.New()
			var other pool.Info
			var otherErr error
			calls := 0
			a := &scripted{Store: s, before: func(n int, _, _ string) error {
				if calls = n; n == at {
					other, otherErr = both[1](t.Context(), s, "a", nil)
				}
				return nil
			}}
			info, err := both[0](t.Context(), a, "a", nil)
			if calls < at {
				break
			}
			there, showErr := pool.Show(t.Context(), s, "a")
			fits := func(one pool.Info, err error) bool {
				if err != nil { // only who creates is refused, and only because the pool is there
					return errors.As(err, new(*pool.ExistsError))
				}
				return one.ID == there.ID
			}
			if showErr != nil || err != nil && otherErr != nil || !fits(info, err) || !fits(other, otherErr) {
				t.Errorf("%s, at %d: %+v, %v; %+v, %v; %v", name, at, info, err, other, otherErr, showErr)
			}
		}
	}
}

// A creation that breaks off at any request leaves nothing that can be leased from, nor
// anything in the way of another pool or of the next try.
func TestBrokenOff(t *testing.T) {
	for at := 1; ; at++ {
		s := memory.New()
		broken := &scripted{Store: s, before: func(n int, _, _ string) error {
			if n >= at {
				return errLost
			}
			return nil
		}}
		if _, err := pool.Create(t.Context(), broken, "a", nil); err == nil {
			break
		}
		if _, err := lease.Open(t.Context(), remote{s, ""}, &lease.Options{Pool: "a"}); err == nil {
			t.Errorf("at %d: leased", at)
		}
		if _, err := pool.Create(t.Context(), s, "b", nil); err != nil {
			t.Errorf("at %d: %v", at, err)
		}
		var overlap *pool.OverlapError
		if _, err := pool.Create(t.Context(), s, "a", nil); !errors.As(err, &overlap) {
			t.Errorf("at %d: %v", at, err)
		}
		if _, err := pool.Create(t.Context(), s, "a", &pool.Options{MayRepeat: []string{"b"}}); err != nil {
			t.Errorf("at %d: %v", at, err)
		}
	}
}

// A write whose reply was lost counts if it is in the store.
func TestCreateInDoubt(t *testing.T) {
	s := &interposed{memory.New(), func(store.Store, string, []byte) {}}
	if _, err := pool.Create(t.Context(), s, "web", nil); err != nil {
		t.Error(err)
	}
	if info, err := pool.Show(t.Context(), s, "web"); err != nil || info.Last != 1023 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestOptions(t *testing.T) {
	s := memory.New()
	for want, o := range map[string]*pool.Options{
		`pool: workers 1000-1099: layout firn has 0-1023`:     {First: 1000, Workers: 100},
		`pool: workers begin at 1024: layout firn has 0-1023`: {First: 1024},
		`pool: workers begin at -1: layout firn has 0-1023`:   {First: -1},
		`pool: -1 workers: there are 1 to 1024, or 0 for all`: {Workers: -1},
		`pool: outage 1ms is under 1s`:                        {Outage: time.Millisecond},
		`pool: pool "a/b": a name has no slash`:               {MayRepeat: []string{"a/b"}},
	} {
		if _, err := pool.Create(t.Context(), s, "web", o); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	for _, name := range []string{"", "a/b", "a b", "é", string(make([]byte, 300))} {
		var bad *pool.OptionError
		if _, err := pool.Create(t.Context(), s, name, nil); !errors.As(err, &bad) {
			t.Errorf("%q: %v", name, err)
		}
	}
	var ended *firn.EndError
	over := firn.MustLayout("time:30@1s,worker:10,seq:12;epoch=1980-01-01T00:00:00Z")
	if _, err := pool.Create(t.Context(), s, "web", &pool.Options{Layout: over}); !errors.As(err, &ended) {
		t.Errorf("a layout that has ended: %v", err)
	}
}
