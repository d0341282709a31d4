package pool_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// What reckons when ids start refuses a store whose clock is not this host's, and changes nothing.
// By one that is behind, the ids would start before those end that others still make.
func TestClocks(t *testing.T) {
	for ahead, refused := range map[time.Duration]bool{
		0: false, 4 * time.Second: false, -4 * time.Second: false, 6 * time.Second: true, -6 * time.Second: true, -10 * time.Minute: true, 24 * time.Hour: true,
	} {
		for name, act := range map[string]func(store.Store) error{
			"Ensure": func(s store.Store) error {
				_, err := pool.Ensure(t.Context(), s, "web", mayRepeat(pool.Default))
				return err
			},
			"Recover":    func(s store.Store) error { _, err := pool.Recover(t.Context(), s, 0); return err },
			"CheckClock": func(s store.Store) error { return pool.CheckClock(t.Context(), s) },
		} {
			m := memory.NewClock(func() time.Time { return time.Now().Add(ahead) })
			with(t, m, nil)
			before := record(t, m, pool.Default)
			var clock *pool.ClockError
			err := act(remote{m, ""})
			if errors.As(err, &clock) != refused || !refused && err != nil {
				t.Errorf("%s, the store's clock is %s ahead: %v", name, ahead, err)
			}
			if !refused {
				continue
			}
			if off := clock.Ahead() + ahead; off.Abs() > time.Second {
				t.Errorf("%s: %v, not %s", name, err, -ahead)
			}
			if recs, err := m.List(t.Context(), ""); err != nil || len(recs) != 1 || record(t, m, pool.Default) != before {
				t.Errorf("%s changed the store: %v, %v", name, recs, err)
			}
		}
	}
	// The clock of a file is this host's.
	if _, err := pool.Recover(t.Context(), memory.NewClock(func() time.Time { return time.Now().Add(-time.Hour) }), 0); err != nil {
		t.Error(err)
	}
}
