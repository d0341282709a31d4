package lease

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// While the store is away the log says until when ids continue, again in the last minute,
// at the moment when they end, and when they resume: each once.
func TestLogOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Store: memory.New()}
		o, _ := options()
		var log safeBuffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		l := open(t, s, o)
		defer closed(t, l)
		time.Sleep(10 * time.Minute)
		lines := func(after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			var got []string
			for line := range strings.Lines(log.String()) {
				if !strings.Contains(line, "does not say whether it can lose writes") { // asked first, perhaps
					got = append(got, line)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%d lines, want %d:\n%s", len(got), len(want), log.String())
			}
			for i, w := range want {
				if !strings.Contains(got[i], w) {
					t.Errorf("line %d lacks %q: %s", i, w, got[i])
				}
			}
		}
		lines(0)
		s.refuse.Store(true)
		said := []string{`level=WARN msg="store does not answer; ids continue until 2000-01-01T00:1`}
		lines(3*time.Minute, said...)
		said = append(said, `level=WARN msg="store does not answer; ids continue until 2000-01-01T00:1`)
		lines(100*time.Second, said...)
		if !strings.Contains(log.String(), "left=1m0s") {
			t.Error(log.String())
		}
		said = append(said, `level=ERROR msg="ids ended: store has not answered since 2000-01-01T00:1`)
		lines(10*time.Minute, said...)
		s.refuse.Store(false)
		lines(time.Hour, append(said, `level=INFO msg="ids resumed after 9m`)...)
	})
}

// unsaid is a store that may answer everything but what it promises.
type unsaid struct {
	*away
	silent atomic.Bool
}

func (u *unsaid) Durability(ctx context.Context) (store.Durability, error) {
	if u.silent.Load() {
		return store.Durability{}, errAway
	}
	return u.away.Durability(ctx)
}

// While ids have ended, no line says that they continue: also where the store answers all but what it promises.
func TestLogOfUnseenDurability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unsaid{away: &away{Store: memory.New()}}
		o, _ := options()
		var log safeBuffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		l := open(t, s, o)
		defer closed(t, l)
		s.silent.Store(true)
		time.Sleep(10 * time.Minute)
		if !strings.Contains(log.String(), "does not say whether it can lose writes; ids continue") {
			t.Errorf("nothing is said of a store that does not say what it promises:\n%s", log.String())
		}
		s.refuse.Store(true)
		time.Sleep(10 * time.Minute)
		s.refuse.Store(false)
		time.Sleep(time.Minute)
		_, after, _ := strings.Cut(log.String(), "ids ended")
		before, _, resumed := strings.Cut(after, "ids resumed after")
		if !resumed || strings.Contains(before, "ids continue") {
			t.Errorf("after the end:\n%s", after)
		}
	})
}

// resumption returns how long the first id from now takes, and when and how the log says that ids resumed.
func resumption(t *testing.T, l *Lease, log *safeBuffer, last *firn.ID) (first, said time.Duration, text string) {
	t.Helper()
	began := time.Now()
	var issued atomic.Int64
	go func() {
		for id, err := l.Next(t.Context()); ; id, err = l.Next(t.Context()) { // it fails while the store is away
			if err == nil {
				*last = id
				break
			}
			time.Sleep(time.Millisecond)
		}
		issued.Store(int64(time.Since(began)))
	}()
	for time.Since(began) < time.Minute {
		time.Sleep(time.Millisecond)
		if _, after, ok := strings.Cut(log.String(), "ids resumed after "); ok {
			text, _, _ = strings.Cut(after, `"`)
			break
		}
	}
	said = time.Since(began)
	time.Sleep(time.Minute)
	return time.Duration(issued.Load()), said, text
}

// After an outage that was longer than the lease, on a store that can lose writes, another worker is
// leased and its first id waited for: ids have resumed when that is over, and not when the store
// answers.
func TestLogOfAnOutageThatLosesTheWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := memory.New()
		found(t, under, term.Pool{})
		s := newShifting(under)
		s.durable.Store(false)
		gone := &away{Store: s}
		o, _ := options()
		var log safeBuffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		l := open(t, gone, o)
		defer closed(t, l)
		var last firn.ID
		increasing(t, l, &last, 10)
		gone.refuse.Store(true)
		time.Sleep(20 * time.Second)
		if strings.Contains(log.String(), "resumed") || !strings.Contains(log.String(), "ids ended") {
			t.Fatal(log.String())
		}
		gone.refuse.Store(false)
		first, said, after := resumption(t, l, &log, &last)
		if wait := said - first; first < 10*time.Second || wait < 0 || wait > time.Second {
			t.Errorf("the first id came after %s, and the log said after %s that ids resumed: %s", first, said, log.String())
		}
		total := 20*time.Second + said // since the store was away; the budget is 3s
		if d, err := time.ParseDuration(after); err != nil || d > total || d < total-4*time.Second {
			t.Errorf("resumed after %s, and the store was away %s ago", after, total)
		}
		if text := log.String(); strings.Count(text, "ids resumed") != 1 {
			t.Error(text)
		}
	})
}

// A lease that lost its worker without an outage says that it waits, and when ids resume.
func TestLogOfIdsAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := options()
		var log safeBuffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		l, last := losing(t, o)
		defer closed(t, l)
		for !strings.Contains(log.String(), "waiting before ids resume") {
			time.Sleep(time.Millisecond)
		}
		first, said, after := resumption(t, l, &log, &last)
		if wait := said - first; first < 10*time.Second || wait < 0 || wait > time.Second || after != "13s" {
			t.Errorf("the first id came after %s, and the log said after %s that ids resumed, after %s: %s", first, said, after, log.String())
		}
	})
}
