package record

import (
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn/store"
)

// Skew is how far a clock may be off: that of any process, and the store's.
const Skew = 5 * time.Second

// A ClockError says that this host's clock and the store's are further apart than is safe. One
// of them is wrong, and nothing here can tell which: set that one.
type ClockError struct {
	Host, Store time.Time     // what both said at one instant
	Skew        time.Duration // how far apart they may be
}

func (e *ClockError) Error() string {
	return e.Reason() + "; set the one that is wrong, and call again"
}

// Reason is Error without what to do next.
func (e *ClockError) Reason() string {
	ahead, word := e.Ahead(), "ahead of"
	if ahead < 0 {
		ahead, word = -ahead, "behind"
	}
	unit := time.Second
	if ahead < time.Second {
		unit = time.Millisecond
	}
	return fmt.Sprintf("store: this host's clock (%s) is %s %s the store's (%s), and at most %s is safe: one of the two is wrong",
		e.Host.UTC().Format(time.RFC3339), ahead.Round(unit), word, e.Store.UTC().Format(time.RFC3339), e.Skew)
}

// Ahead is how far this host's clock is ahead of the store's; below zero it is behind.
func (e *ClockError) Ahead() time.Duration { return e.Host.Sub(e.Store) }

// CheckClock returns a [*ClockError] where the store's clock and this host's differ by more than
// [Skew]. It is asked before anything that reckons by the store's clock when ids start: by a clock
// that is behind they would start too early, and repeat; by one that is far ahead, never. It reads
// the record of key, and is nil where the store has no clock, or this host's.
func CheckClock(ctx context.Context, st store.Store, key string) error {
	p, err := st.Durability(ctx)
	if err != nil || p.LocalClock {
		return err
	}
	now := hostClock(ctx)
	asked := now()
	rec, err := st.Get(ctx, key)
	answered := now()
	switch {
	case err != nil || rec.Read.IsZero():
		return err
	case asked.Sub(rec.Read) > Skew:
		return &ClockError{asked, rec.Read, Skew}
	case rec.Read.Sub(answered) > Skew:
		return &ClockError{answered, rec.Read, Skew}
	}
	return nil
}

type clockKey struct{}

// WithClock returns a context in which this host's clock is now: for a host that is simulated.
func WithClock(ctx context.Context, now func() time.Time) context.Context {
	return context.WithValue(ctx, clockKey{}, now)
}

// hostClock returns the clock of this host.
func hostClock(ctx context.Context) func() time.Time {
	if now, ok := ctx.Value(clockKey{}).(func() time.Time); ok {
		return now
	}
	return time.Now
}
