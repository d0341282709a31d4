package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// remote is a store that may have been there before.
type remote struct{ store.Store }

func (r remote) Promise(ctx context.Context) (store.Promise, error) {
	p, err := r.Store.Promise(ctx)
	p.Embedded, p.Class = false, store.Strict
	return p, err
}

// begins says whether a lease issues at once.
func begins(t *testing.T, s store.Store, o Options) bool {
	t.Helper()
	o.Wait = time.Nanosecond
	l, err := Open(t.Context(), s, "web", &o)
	if err != nil {
		var full *term.FullError
		if !errors.As(err, &full) || full.Floor.IsZero() {
			t.Fatal(err)
		}
		return false
	}
	if _, err := l.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return true
}

func TestFound(t *testing.T) {
	s := remote{memory.New()}
	if begins(t, s, Options{}) {
		t.Error("a pool on a store that may have forgotten begins at once")
	}
	for i, want := range []bool{true, false} {
		if wrote, err := Found(t.Context(), s, "web", nil); err != nil || wrote != want {
			t.Errorf("Found %d: %t, %v", i, wrote, err)
		}
	}
	if !begins(t, s, Options{}) {
		t.Error("a pool that was founded does not begin at once")
	}
	if wrote, err := Found(t.Context(), s, "web", nil); err != nil || wrote {
		t.Errorf("of a pool in use: %t, %v", wrote, err)
	}
	var other *term.LayoutError
	if _, err := Found(t.Context(), s, "web", &Options{Layout: firn.MustLayout("twitter")}); !errors.As(err, &other) {
		t.Errorf("with another layout: %v", err)
	}
	if _, err := Found(t.Context(), s, "a/b", nil); err == nil {
		t.Error("a name with a slash is accepted")
	}

	// What was restored was there before: its floor stays.
	if _, err := Restored(t.Context(), s, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := Found(t.Context(), s, "web", nil); !errors.Is(err, ErrUsed) {
		t.Errorf("after a restore: %v", err)
	}
	if wrote, err := Found(t.Context(), s, "another", nil); err != nil || !wrote {
		t.Errorf("another pool after a restore: %t, %v", wrote, err)
	}
	rec, err := s.Get(t.Context(), term.KeyPool("another"))
	if err != nil {
		t.Fatal(err)
	}
	if p, err := term.ReadPool(rec); err != nil || firn.Default.Time(p.Floor).Before(time.Now().Add(59*time.Minute)) {
		t.Errorf("another pool starts below the store's floor: %+v, %v", p, err)
	}
}

// A restored store may have forgotten the workers of a pool that it still has; and
// the pool's floor is above the store's where its members had a long outage budget.
func TestFoundAfterRestore(t *testing.T) {
	s := remote{memory.New()}
	found(t, s, term.Pool{Outage: time.Hour.Milliseconds()})
	if _, err := Restored(t.Context(), s, time.Minute); err != nil {
		t.Fatal(err)
	}
	floor := readPool(t, s).Floor
	o := Options{Layout: layout}
	if _, err := Found(t.Context(), s, "web", &o); !errors.Is(err, ErrUsed) || readPool(t, s).Floor != floor {
		t.Errorf("floor %d, was %d: %v", readPool(t, s).Floor, floor, err)
	}
}
