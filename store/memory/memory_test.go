package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

func TestWithinIsInclusive(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	s := memory.NewClock(func() time.Time { return now })
	r, err := s.Put(t.Context(), "k", []byte("1"), store.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if _, err := s.Put(t.Context(), "k", []byte("2"), store.Condition{Version: r.Version, Within: time.Minute - 1}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("written a minute ago, within 1 ns less: %v", err)
	}
	if _, err := s.Put(t.Context(), "k", []byte("2"), store.Condition{Version: r.Version, Within: -1}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a negative Within: %v", err)
	}
	w, err := s.Put(t.Context(), "k", []byte("2"), store.Condition{Version: r.Version, Within: time.Minute})
	if err != nil {
		t.Fatalf("written a minute ago, within a minute: %v", err)
	}
	if !w.Written.Equal(now) || !w.Read.Equal(now) {
		t.Errorf("written %v, read %v at %v", w.Written, w.Read, now)
	}
}

func TestRestore(t *testing.T) {
	var s memory.Store
	empty := s.Snapshot()
	a, err := s.Put(t.Context(), "k", []byte("1"), store.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	snap := s.Snapshot()
	b, err := s.Put(t.Context(), "k", []byte("2"), store.Condition{Version: a.Version})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.Restore(snap)
		r, err := s.Get(t.Context(), "k")
		if err != nil || r.Version != a.Version || string(r.Value) != "1" || !r.Written.Equal(a.Written) {
			t.Errorf("restored: %+v, %v", r, err)
		}
		if _, err := s.Put(t.Context(), "k", []byte("3"), store.Condition{Version: b.Version}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("a Version that was forgotten: %v", err)
		}
		if _, err := s.Put(t.Context(), "k", []byte("3"), store.Condition{Version: a.Version}); err != nil {
			t.Error(err)
		}
	}
	s.Restore(empty)
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 0 {
		t.Errorf("restored to nothing: %v, %v", l, err)
	}
}
