package storetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// counter is a protocol in small: it knows what it holds, and settles what it
// does not know with a Get.
type counter struct {
	t *testing.T
	s store.Store
	r store.Record
}

func (c *counter) put(value string) error {
	r, err := c.s.Put(c.t.Context(), "k", []byte(value), store.Condition{Version: c.r.Version})
	if err == nil {
		c.r = r
	}
	return err
}

func (c *counter) is(value string) {
	c.t.Helper()
	r, err := c.s.Get(c.t.Context(), "k")
	if err != nil || string(r.Value) != value {
		c.t.Errorf("the store has %q, %v, not %q", r.Value, err, value)
	}
}

func TestFaultyOutcomes(t *testing.T) {
	f := NewFaulty(memory.New())
	c := &counter{t: t, s: f}
	if err := c.put("0"); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	f.Next(Refuse(refused), LoseRequest(), nil)
	f.NextOf("other", LoseRequest())

	if r, err := f.Put(t.Context(), "k", []byte("1"), store.Condition{}); !errors.Is(err, refused) || r.Version != "" {
		t.Errorf("refused: %+v, %v", r, err)
	}
	r, err := f.Put(t.Context(), "k", []byte("2"), store.Condition{Version: c.r.Version})
	if !errors.Is(err, ErrLost) || r.Version == "" {
		t.Errorf("request lost: %+v, %v", r, err)
	}
	c.is("0")
	if err := c.put("3"); err != nil {
		t.Error(err)
	}
	c.is("3")
	if n := f.Pending(); n != 1 {
		t.Errorf("%d faults are left, not 1", n)
	}

	f.Next(LoseReply())
	r, err = f.Put(t.Context(), "k", []byte("4"), store.Condition{Version: c.r.Version})
	if !errors.Is(err, ErrLost) || r.Version == "" {
		t.Errorf("reply lost: %+v, %v", r, err)
	}
	c.is("4")
	if g, _ := f.Get(t.Context(), "k"); g.Version != r.Version {
		t.Errorf("read %q, tried %q", g.Version, r.Version)
	}
	// The Version that was tried is one to go on from, on every handle.
	c = &counter{t: t, s: f.Handle(), r: r}
	if err := c.put("5"); err != nil {
		t.Error(err)
	}
	f.Next(LoseReply())
	if _, err := f.Put(t.Context(), "k", []byte("6"), store.Condition{}); !errors.Is(err, ErrLost) {
		t.Errorf("a conflict nobody hears of: %v", err)
	}
	c.is("5")
}

func TestFaultyLater(t *testing.T) {
	m := memory.New()
	f := NewFaulty(m)
	c := &counter{t: t, s: f}
	first, releaseFirst := Later()
	second, releaseSecond := Later()
	f.Next(first, second)
	a, errA := f.Put(t.Context(), "k", []byte("a"), store.Condition{})
	b, errB := f.Put(t.Context(), "k", []byte("b"), store.Condition{})
	if !errors.Is(errA, ErrLost) || !errors.Is(errB, ErrLost) {
		t.Fatal(errA, errB)
	}
	c.is("")
	for range 2 {
		if r, err := releaseSecond(); err != nil || r.Version != b.Version {
			t.Errorf("released: %+v, %v", r, err)
		}
	}
	c.is("b")
	if _, err := releaseFirst(); !errors.Is(err, store.ErrConflict) {
		t.Errorf("released after another: %v", err)
	}
	if l, err := f.List(t.Context(), ""); err != nil || len(l) != 1 || l[0].Version != b.Version || l[0].Version == a.Version {
		t.Errorf("%+v, %v", l, err)
	}

	// A copy of a request that comes again finds its condition gone, unless the
	// store went back in between.
	snap := m.Snapshot()
	twice, again := Twice()
	f.Next(twice)
	r, err := f.Put(t.Context(), "k", []byte("c"), store.Condition{Version: b.Version})
	if err != nil {
		t.Fatal(err)
	}
	m.Restore(snap)
	if _, err := again(); err != nil {
		t.Error(err)
	}
	c.is("c")
	if g, _ := f.Get(t.Context(), "k"); g.Version != r.Version {
		t.Errorf("read %q, put %q", g.Version, r.Version)
	}
}

func TestFaultyInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFaulty(memory.New())
		c := &counter{t: t, s: f}

		// A frozen request outlives the call that sent it.
		freeze, thaw := Freeze()
		f.Next(freeze)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := f.Put(ctx, "k", []byte("1"), store.Condition{})
		if !errors.Is(err, context.DeadlineExceeded) || r.Version == "" {
			t.Errorf("frozen: %+v, %v", r, err)
		}
		c.is("")
		thaw()
		c.is("1")
		c.r = r

		// One that is thawed in time gets its answer.
		freeze, thaw = Freeze()
		f.Next(freeze)
		go func() {
			time.Sleep(time.Minute)
			thaw()
		}()
		start := time.Now()
		if err := c.put("2"); err != nil || time.Since(start) != time.Minute {
			t.Errorf("thawed: %v after %v", err, time.Since(start))
		}

		// A frozen reply does not hold up what others see.
		freeze, release := FreezeReply()
		f.Next(freeze)
		done := make(chan error)
		go func() { done <- c.put("3") }()
		synctest.Wait()
		c.is("3")
		release()
		if err := <-done; err != nil {
			t.Error(err)
		}

		f.Next(Delay(time.Second, time.Minute))
		start = time.Now()
		if err := c.put("4"); err != nil || time.Since(start) != time.Minute+time.Second {
			t.Errorf("delayed: %v after %v", err, time.Since(start))
		}
		f.Next(Delay(time.Minute, 0), Delay(0, time.Minute))
		for _, want := range []string{"4", "5"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := f.Put(ctx, "k", []byte("5"), store.Condition{Version: c.r.Version}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("delayed for longer than the ctx: %v", err)
			}
			c.is(want)
		}
	})
}

func TestFaultyAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFaulty(memory.New())
		c := &counter{t: t, s: f}
		if err := c.put("5"); err != nil {
			t.Fatal(err)
		}
		resume := f.Hang()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.Get(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("hung: %v", err)
		}
		resume()
		away := errors.New("away")
		f.Away(away)
		if _, err := f.List(t.Context(), ""); !errors.Is(err, away) {
			t.Errorf("away: %v", err)
		}
		if r, err := f.Put(t.Context(), "k", nil, store.Condition{}); !errors.Is(err, away) || r.Version != "" {
			t.Errorf("away: %+v, %v", r, err)
		}
		f.Away(nil)
		if _, err := f.Durability(t.Context()); err != nil {
			t.Error(err)
		}
		c.is("5")
	})
}
