package recovery_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/recovery"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// named is a store with a name of its own.
type named struct {
	*memory.Store
	name string
}

func (n named) Durability(ctx context.Context) (store.Durability, error) {
	p, err := n.Store.Durability(ctx)
	p.Identity = n.name
	return p, err
}

// filled returns a store with a pool and three series.
func filled(t *testing.T) named {
	t.Helper()
	s := named{memory.New(), "one"}
	_, err := pool.Create(t.Context(), s, "web", nil)
	_, err2 := sequence.Create(t.Context(), s, "orders", &sequence.Options{Max: 50})
	_, err3 := sequence.Create(t.Context(), s, "users", nil)
	_, err4 := document.Create(t.Context(), s, "invoice", &document.Options{Pattern: "R{3}"})
	if err := errors.Join(err, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return s
}

func contents(t *testing.T, s store.Store) *recovery.Contents {
	t.Helper()
	c, err := recovery.Read(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Nobody but a person knows how many numbers a series leaves out.
func TestNumbers(t *testing.T) {
	c := contents(t, filled(t))
	var none *recovery.NumbersError
	if _, err := c.Plan(t.Context(), nil); !errors.As(err, &none) || !slices.Equal(none.Series, []string{"orders", "users", "invoice"}) {
		t.Error(err)
	}
	each := map[string]int64{"users": 5, "orders": 100}
	if _, err := c.Plan(t.Context(), &recovery.Options{Each: each}); !errors.As(err, &none) || !slices.Equal(none.Series, []string{"invoice"}) {
		t.Error(err)
	}
	var unknown *recovery.UnknownSeriesError
	if _, err := c.Plan(t.Context(), &recovery.Options{Numbers: 1, Each: map[string]int64{"user": 1}}); !errors.As(err, &unknown) || unknown.Series != "user" {
		t.Error(err)
	}
	var full *recovery.UsedUpError
	if _, err := c.Plan(t.Context(), &recovery.Options{Numbers: 100}); !errors.As(err, &full) || len(full.UsedUp) != 1 || full.UsedUp[0] != (recovery.UsedUp{Series: "orders", Max: 50}) {
		t.Error(err)
	}
	p, err := c.Plan(t.Context(), &recovery.Options{Numbers: 1000, Each: map[string]int64{"orders": 1000, "invoice": 1000}})
	if err != nil || len(p.UsedUp) != 2 || p.UsedUp[1] != (recovery.UsedUp{Series: "invoice", Pattern: "R{3}", Max: 999}) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, err := range []error{none, unknown, full} {
		if r, ok := err.(interface{ Retryable() bool }); !ok || r.Retryable() || err.Error() == "" {
			t.Errorf("%v", err)
		}
	}
}

// All pools and all series are raised at once, and a lost pool is named.
func TestRun(t *testing.T) {
	s := filled(t)
	if _, err := s.Put(t.Context(), term.KeyWorker("gone", 1), term.Record{V: 1, Term: 1}.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	c := contents(t, s)
	if !slices.Equal(c.LostPools, []string{"gone"}) || !c.HasPools() || c.CopyOf != nil {
		t.Errorf("%+v", c)
	}
	p, err := c.Plan(t.Context(), &recovery.Options{Outage: time.Hour, Numbers: 10})
	if err != nil || p.Pause != time.Hour+10*time.Second {
		t.Fatalf("%+v, %v", p, err)
	}
	begun := time.Now()
	done, err := p.Run(t.Context())
	if err != nil || len(done.Pools) != 1 || len(done.Sequences) != 2 || len(done.Documents) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if wait := done.StartsAt.Sub(begun); wait < time.Hour || wait > time.Hour+time.Minute {
		t.Errorf("ids start in %s", wait)
	}
	if info, err := sequence.Show(t.Context(), s, "users"); err != nil || info.Granted != 10 {
		t.Errorf("%+v, %v", info, err)
	}
	// A store that has nothing knows afterwards that it may have lost something.
	empty := memory.New()
	if p, err = contents(t, empty).Plan(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if done, err := p.Run(t.Context()); err != nil || done.StartsAt.Before(time.Now().Add(4*time.Minute)) {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := sequence.Create(t.Context(), empty, "orders", nil); !errors.As(err, new(*sequence.LostError)) {
		t.Error(err)
	}
}

// A copy names the store that it is a copy of, until somebody says that it was moved.
func TestAcceptMove(t *testing.T) {
	s := filled(t)
	s.name = "two"
	if c := contents(t, s); c.CopyOf == nil || c.CopyOf.Want != "one" || c.CopyOf.What != `pool "web"` {
		t.Errorf("%+v", c.CopyOf)
	}
	m, err := recovery.AcceptMove(t.Context(), s)
	if err != nil || len(m.Pools) != 1 || len(m.Sequences) != 2 || len(m.Documents) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if c := contents(t, s); c.CopyOf != nil {
		t.Error(c.CopyOf)
	}
}
