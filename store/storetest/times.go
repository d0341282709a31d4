package storetest

import (
	"errors"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	// apart is how long the checks let pass to see a clock move.
	apart = 60 * time.Millisecond

	// slack is what a store's clock may differ from ours over that time: less
	// than apart, so that one that stands still or counts seconds is found.
	slack = 20 * time.Millisecond

	// zone is less than two time zones are apart. A store under test runs on
	// this host, or one whose clock is kept.
	zone = 10 * time.Minute
)

// A reading is the store's clock as a Get showed it, and ours around it.
type reading struct {
	theirs        time.Time
	before, after time.Time
}

func (c *check) readClock(s store.Store) reading {
	c.Helper()
	before := time.Now()
	r := c.get(s, "clock")
	return reading{r.Read, before, time.Now()}
}

// pass waits until the store's clock is d ahead of t.
func (c *check) pass(s store.Store, t time.Time, d time.Duration) {
	c.Helper()
	c.eventually("the store's clock goes on", func() bool { return c.readClock(s).theirs.Sub(t) > d })
}

func times(c *check) {
	s := c.open()
	first := c.readClock(s)
	if first.theirs.IsZero() {
		c.Fatalf("Read is zero, and a clock is declared")
	}
	if off := first.theirs.Sub(first.before); off > zone || off < -zone {
		c.Errorf("the store's clock is %v off; a time zone?", off)
	}
	r := c.put(s, "k", `1`, store.Condition{})
	if r.Written.IsZero() || r.Read.IsZero() {
		c.Errorf("written %v, read %v", r.Written, r.Read)
	}
	if r.Written.Before(first.theirs) || r.Read.Before(r.Written) {
		c.Errorf("read %v, then written %v and read %v", first.theirs, r.Written, r.Read)
	}
	put := time.Now() // the first Put of a store may take its time
	c.eventually("the clock of this process goes on", func() bool { return time.Since(put) > apart })
	last := c.readClock(s)
	passed := last.theirs.Sub(first.theirs)
	if least, most := last.before.Sub(first.after)-slack, last.after.Sub(first.before)+slack; passed < least || passed > most {
		c.Errorf("%v passed on the store's clock, between %v and %v on ours", passed, least, most)
	}

	got := c.get(s, "k")
	if !got.Written.Equal(r.Written) {
		c.Errorf("written %v, later %v", r.Written, got.Written)
	}
	if got.Read.Before(last.theirs) {
		c.Errorf("read %v, then %v", last.theirs, got.Read)
	}
	if l := c.list(s, "k"); len(l) != 1 || !l[0].Written.Equal(r.Written) || l[0].Read.Before(got.Read) {
		c.Errorf("read %s at %v, then listed %v", show(got), got.Read, l)
	}
	if again := c.put(s, "k", `1`, store.Condition{Version: r.Version}); again.Written.Sub(r.Written) < apart-slack {
		c.Errorf("written %v, %v later %v", r.Written, apart, again.Written)
	}
}

func within(c *check) {
	s, other := c.open(), c.open()
	cond := func(r store.Record, d time.Duration) store.Condition {
		return store.Condition{Version: r.Version, Within: d}
	}
	r := c.put(s, "k", `1`, store.Condition{})
	r = c.put(s, "k", `2`, cond(r, time.Hour))
	r = c.put(other, "k", `3`, cond(r, time.Hour))
	c.pass(s, r.Written, apart)
	for _, d := range []time.Duration{1, time.Microsecond, slack, apart, -1, -time.Hour} {
		c.conflicts(s, "k", `4`, cond(r, d))
		c.conflicts(other, "k", `4`, cond(r, d))
	}
	// A wrong Version is wrong however fresh the record, and no record is fresh
	// that was never written.
	c.conflicts(s, "k", `4`, store.Condition{Version: store.NewVersion(), Within: time.Hour})
	c.conflicts(s, "k", `4`, store.Condition{Within: time.Hour})
	c.conflicts(s, "none", `4`, store.Condition{Within: time.Hour})
	// Each write counts from itself. A slow machine gets several tries, every
	// one of which a store must fail that counts from the first write.
	r = c.put(s, "k", `4`, cond(r, time.Hour))
	for range 20 {
		r = c.put(s, "k", `5`, cond(r, 0))
		switch _, err := s.Put(c.Context(), "k", []byte(`6`), cond(r, apart)); {
		case err == nil:
			return
		case !errors.Is(err, store.ErrConflict):
			c.Fatalf("Put: %v", err)
		}
	}
	c.Errorf("just written, and never within %v: %s", apart, show(r))
}

func withinTheirs(c *check) {
	s := c.open()
	r := c.put(s, "k", `1`, store.Condition{})
	c.backend.Advance(c.TB, time.Hour)
	c.conflicts(s, "k", `2`, store.Condition{Version: r.Version, Within: 50 * time.Minute})
	if got := c.get(s, "k"); got.Read.Sub(got.Written) < time.Hour {
		c.Errorf("an hour later, written %v, read %v", got.Written, got.Read)
	}
	next := c.put(s, "k", `2`, store.Condition{Version: r.Version, Within: 70 * time.Minute})
	if next.Written.Sub(r.Written) < time.Hour {
		c.Errorf("written %v, an hour later %v", r.Written, next.Written)
	}
}

func noClock(c *check) {
	s := c.open()
	check := func(r store.Record) store.Record {
		c.Helper()
		if !r.Written.IsZero() || !r.Read.IsZero() {
			c.Errorf("no clock is declared, and it is written %v, read %v", r.Written, r.Read)
		}
		return r
	}
	check(c.get(s, "k"))
	r := check(c.put(s, "k", `1`, store.Condition{Within: 1}))
	r = check(c.put(s, "k", `2`, store.Condition{Version: r.Version, Within: 1}))
	check(c.get(s, "k"))
	for _, r := range c.list(s, "") {
		check(r)
	}
	c.conflicts(s, "k", `3`, store.Condition{Version: store.NewVersion(), Within: time.Hour})
	check(c.put(s, "k", `3`, store.Condition{Version: r.Version}))
}
