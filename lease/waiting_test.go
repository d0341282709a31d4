package lease

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store/memory"
)

// lossy opens a lease on a store that can lose writes, where each first id of a worker is waited
// for.
func lossy(t *testing.T, o *Options) (*Lease, *shifting) {
	t.Helper()
	under := memory.New()
	found(t, under, term.Pool{})
	s := newShifting(under)
	s.durable.Store(false)
	return open(t, s, o), s
}

// losing returns a lease on a lossy store whose worker was just released, and the last id that it gave.
func losing(t *testing.T, o *Options) (l *Lease, last firn.ID) {
	l, s := lossy(t, o)
	increasing(t, l, &last, 10)
	if err := pool.Release(t.Context(), s, pool.Default, l.State().Worker); err != nil {
		t.Fatal(err)
	}
	return l, last
}

// A lease that has lost its worker on a store that can lose writes logs once that it waits before
// ids resume, for how long and why. Its calls wait as long.
func TestLogOfAWaitForAnotherWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := options()
		var log safeBuffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		l, last := losing(t, o)
		defer closed(t, l)
		const said = `level=WARN msg="waiting before ids resume" pool=default worker=1 for=13s why="the store can lose writes: as the test has it"`
		time.AfterFunc(time.Second, func() {
			if !strings.Contains(log.String(), said) {
				t.Errorf("nobody is told of the wait when it begins: %s", log.String())
			}
		})
		time.Sleep(time.Second)
		began := time.Now()
		increasing(t, l, &last, 10)
		if took := time.Since(began); took < 11*time.Second {
			t.Errorf("ids resumed after %s", took)
		}
		time.Sleep(time.Hour)
		if text := log.String(); strings.Count(text, "waiting before") != 2 { // at the start too
			t.Error(text)
		}
	})
}

// Where a worker has no ids yet because of an earlier holder, or of the pool, the reason has the time until which it has none: the log shows the reason without the time at which ids start.
func TestWaitReasonHasItsTime(t *testing.T) {
	at := time.Date(2026, 11, 28, 19, 30, 0, 500, time.FixedZone("", 3600))
	held, recovered := new(term.State), new(term.State)
	held.Base, held.Pool.Floor = 7, 6
	recovered.Base, recovered.Pool.Floor = 7, 7
	for s, want := range map[*term.State]string{
		held:      "an earlier holder of the worker may have issued ids up to 2026-11-28T18:30:00Z",
		recovered: "no worker of the pool has ids before 2026-11-28T18:30:00Z: the pool was created not long ago, or its store was recovered",
	} {
		if got := waitReason(s, at); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// With NextWait, calls do not wait for ids that start later: those that wait already fail when it
// is known, and new ones at once.
func TestNextWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := options()
		o.NextWait = time.Second
		l, last := losing(t, o)
		defer closed(t, l)
		var refused, startsAt time.Time
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			began := time.Now()
			ids, err := l.Append(t.Context(), nil, 3)
			if took := time.Since(began); took > 2*time.Second {
				t.Fatalf("a call has waited for %s", took)
			}
			if err == nil {
				increasing(t, l, &last, 1)
				continue
			}
			var early *NotYetError
			if !errors.As(err, &early) || len(ids) > 0 || early.Why != "the store can lose writes: as the test has it" {
				t.Fatalf("%d ids, %v", len(ids), err)
			}
			if _, err := l.Next(t.Context()); !errors.As(err, new(*NotYetError)) {
				t.Fatal(err)
			}
			refused, startsAt = time.Now(), early.StartsAt
		}
		if left := startsAt.Sub(refused); left < 900*time.Millisecond || left > 1100*time.Millisecond {
			t.Errorf("calls were refused until %s, and ids started at %s", refused, startsAt)
		}
	})
}

// A lease of two lanes issues from the lane that has ids, and its State is that lane's, while the other
// lane waits.
func TestLaneThatWaitsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := options()
		o.Lanes, o.MaxAhead = 2, -1
		l, s := lossy(t, o)
		defer closed(t, l)
		if err := pool.Release(t.Context(), s, pool.Default, l.Lanes()[0].Worker); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			began := time.Now()
			if _, err := l.Append(t.Context(), nil, 10000); err != nil { // more than two ticks have
				t.Fatal(err)
			}
			if took := time.Since(began); took > time.Second {
				t.Fatalf("a call has waited for %s", took)
			}
			if st := l.State(); st.StartsAt.After(time.Now().Add(time.Second)) {
				t.Fatalf("the state is that of the lane which waits: %+v", st)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}
