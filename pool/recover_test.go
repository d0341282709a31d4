package pool_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

var condition store.Condition // of a record that was never written

// All pools start above what their processes may have been granted: 5 min, what the
// operator says, or what the pool allows, whichever is longest.
func TestRecover(t *testing.T) {
	s := memory.New()
	for name, o := range map[string]*pool.Options{
		"short": {Workers: 100, Outage: time.Minute}, "default": {First: 100, Workers: 100}, "long": {First: 200, Outage: time.Hour},
	} {
		if _, err := pool.Create(t.Context(), s, name, o); err != nil {
			t.Fatal(err)
		}
	}
	for outage, want := range map[time.Duration][3]time.Duration{ // default, long, short
		0:               {5 * time.Minute, time.Hour, 5 * time.Minute},
		2 * time.Hour:   {2 * time.Hour, 2 * time.Hour, 2 * time.Hour},
		2 * time.Second: {5 * time.Minute, time.Hour, time.Minute},
	} {
		copied := memory.New()
		copied.Restore(s.Snapshot())
		all, err := pool.Recover(t.Context(), copied, outage)
		if err != nil || len(all) != 3 {
			t.Fatalf("%+v, %v", all, err)
		}
		for i, r := range all {
			if in := time.Until(r.StartsAt); in < want[i] || in > want[i]+11*time.Second {
				t.Errorf("outage %s: %s starts in %s, not %s", outage, r.Pool, in, want[i])
			}
		}
	}
}

// A copy of a store is refused until an operator says what it is.
func TestMoved(t *testing.T) {
	old := memory.New()
	with(t, remote{old, "here"}, nil)
	for name, accept := range map[string]func(store.Store) error{
		"recovered": func(s store.Store) error { _, err := pool.Recover(t.Context(), s, 0); return err },
		"moved":     func(s store.Store) error { _, err := pool.AcceptMove(t.Context(), s); return err },
	} {
		copied := memory.New()
		copied.Restore(old.Snapshot())
		s := remote{copied, "there"}
		var other *store.OtherStoreError
		if _, err := lease.Open(t.Context(), s, nil); !errors.As(err, &other) || other.Want != "here" || other.Have != "there" {
			t.Fatalf("%s: %v", name, err)
		}
		for what, refused := range map[string]func() error{
			"Ensure":          func() error { _, err := pool.Ensure(t.Context(), s, pool.Default, nil); return err },
			"Ensure, another": func() error { _, err := pool.Ensure(t.Context(), s, "web", mayRepeat(pool.Default)); return err },
			"Create, another": func() error { _, err := pool.Create(t.Context(), s, "web", mayRepeat(pool.Default)); return err },
			"SetWorkers":      func() error { _, err := pool.SetWorkers(t.Context(), s, pool.Default, 0, 7); return err },
			"Release":         func() error { return pool.Release(t.Context(), s, pool.Default, 0) },
			"ReserveBackfill": func() error {
				return pool.ReserveBackfill(t.Context(), s, pool.Default, 7, "job", time.Now().Add(-time.Hour))
			},
			"CheckStore": func() error { return pool.CheckStore(t.Context(), s) },
		} {
			if err := refused(); !errors.As(err, &other) || other.Want != "here" || other.Have != "there" {
				t.Errorf("%s, not yet %s: %v", what, name, err)
			}
		}
		if err := accept(s); err != nil {
			t.Fatal(err)
		}
		if err := pool.CheckStore(t.Context(), s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		l, err := lease.Open(t.Context(), s, &lease.Options{Wait: time.Nanosecond})
		var later *lease.NotYetError
		switch {
		case name == "moved" && err != nil, name == "recovered" && !errors.As(err, &later):
			t.Errorf("%s: %v", name, err)
		case err == nil:
			l.Close()
		}
		if moved, err := pool.AcceptMove(t.Context(), s); err != nil || len(moved) != 0 {
			t.Errorf("%s: once more: %+v, %v", name, moved, err)
		}
	}
}

// A pool that is created while the store is recovered starts above the floor, or not at all.
func TestRecoverWhileCreating(t *testing.T) {
	for at := 1; ; at++ {
		s := memory.New()
		calls := 0
		a := &scripted{Store: s, before: func(n int, _, _ string) error {
			if calls = n; n == at {
				if _, err := pool.Recover(t.Context(), s, time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			return nil
		}}
		_, err := pool.Create(t.Context(), a, pool.Default, nil)
		if calls < at {
			break
		}
		if err != nil {
			t.Errorf("at %d: %v", at, err)
			continue
		}
		var later *lease.NotYetError
		if _, err := lease.Open(t.Context(), s, &lease.Options{Wait: time.Nanosecond}); !errors.As(err, &later) {
			t.Errorf("at %d: %v, %+v", at, err, record(t, s, pool.Default))
		}
	}
}

// A record of another format is left alone.
func TestFormat(t *testing.T) {
	s := memory.New()
	if _, err := s.Put(t.Context(), term.KeyPool("web"), []byte(`{"v":9}`), condition); err != nil {
		t.Fatal(err)
	}
	var format *store.FormatError
	if _, err := pool.Show(t.Context(), s, "web"); !errors.As(err, &format) {
		t.Error(err)
	}
	if _, err := pool.Ensure(t.Context(), s, "web", nil); !errors.As(err, &format) {
		t.Error(err)
	}
}

func mayRepeat(names ...string) *pool.Options { return &pool.Options{MayRepeat: names} }
