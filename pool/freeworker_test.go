package pool_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// The free worker is the highest that a new job gets: where the store cannot know who had a
// worker, it is none.
func TestFreeWorker(t *testing.T) {
	lost := func(s store.Store) store.Store {
		if _, err := s.Put(t.Context(), term.KeyWorker("lost", 1022), term.Past("past:import", 1).Encode(), store.Condition{}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	used := with(t, memory.New(), nil)
	if err := pool.ReserveBackfill(t.Context(), used, pool.Default, 1023, "import", time.Now()); err != nil {
		t.Fatal(err)
	}
	ensured := memory.New()
	if _, err := pool.Ensure(t.Context(), ensured, pool.Default, nil); err != nil {
		t.Fatal(err)
	}
	recovered := with(t, memory.New(), nil)
	if _, err := pool.Recover(t.Context(), recovered, 0); err != nil {
		t.Fatal(err)
	}
	full := with(t, memory.New(), &pool.Options{Workers: 1})
	if err := pool.ReserveBackfill(t.Context(), full, pool.Default, 0, "import", time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		s    store.Store
		want int64 // -1: none
	}{
		"new": {with(t, memory.New(), nil), 1023}, "used": {used, 1022}, "remains of a lost pool": {lost(with(t, memory.New(), nil)), -1},
		"ensured": {ensured, -1}, "recovered": {recovered, -1}, "lossy": {forgetful{with(t, memory.New(), nil)}, -1}, "full": {full, -1},
	} {
		n, ok, err := pool.FreeWorker(t.Context(), c.s, pool.Default)
		if err != nil || ok != (c.want >= 0) || ok && n != c.want {
			t.Errorf("%s: %d, %t, %v; want %d", name, n, ok, err, c.want)
		}
		if !ok {
			continue
		}
		if err := pool.ReserveBackfill(t.Context(), c.s, pool.Default, n, "another", time.Now()); err != nil {
			t.Errorf("%s: the free worker is refused: %v", name, err)
		}
	}
}
