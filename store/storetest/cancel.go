package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn/store"
)

// cancelledBefore calls with a ctx that has ended: that is an error, which is
// not a conflict, and the handle is none the worse.
func cancelledBefore(c *check) {
	s := c.open()
	r := c.put(s, "k", `1`, store.Condition{})
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	for range 10 {
		if _, err := s.Get(ctx, "k"); !errors.Is(err, context.Canceled) {
			c.Errorf("Get with a ctx that was cancelled: %v", err)
		}
		if _, err := s.List(ctx, ""); !errors.Is(err, context.Canceled) {
			c.Errorf("List with a ctx that was cancelled: %v", err)
		}
		if _, err := s.Promise(ctx); !errors.Is(err, context.Canceled) {
			c.Errorf("Promise with a ctx that was cancelled: %v", err)
		}
		tried, err := s.Put(ctx, "k", []byte(`2`), store.Condition{Version: r.Version})
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrConflict) {
			c.Errorf("Put with a ctx that was cancelled: %v", err)
		}
		got := c.get(s, "k")
		if !same(got, r) && (tried.Version == "" || got.Version != tried.Version) {
			c.Errorf("a cancelled Put that tried %q changed %s to %s", tried.Version, show(r), show(got))
		}
		r = got
	}
	c.put(s, "k", `3`, store.Condition{Version: r.Version})
}

// cancelledDuring lets the ctx of Puts end at any instant of them.
func cancelledDuring(c *check) {
	s := c.open()
	r := c.put(s, "k", `0`, store.Condition{})
	start := time.Now()
	for i := range 10 {
		r = c.put(s, "k", fmt.Sprint(i), store.Condition{Version: r.Version})
	}
	usual := time.Since(start) / 10
	c.alone(s, s, r, 200, func() time.Duration { return rand.N(2*usual + 1) })
}

// shaky loses requests and replies.
func shaky(c *check) {
	s := c.open()
	r := c.put(s, "k", `0`, store.Condition{})
	if landed := c.alone(c.backend.Shaky(c.TB), s, r, 100, func() time.Duration { return time.Minute }); landed == 0 {
		c.Errorf("of 100 Puts on the shaky handle none was carried out whose reply was lost")
	}
}

// alone is the only writer of r and knows what it tries: whatever the record
// turns into must be that. It writes to one handle and reads from another, and
// returns how many Puts were carried out without an acknowledgement.
func (c *check) alone(to, from store.Store, r store.Record, times int, timeout func() time.Duration) (landed int) {
	// tried are the Puts of unknown outcome on top of the record as it was last
	// seen: none of the earlier ones can be carried out any more.
	tried := make(map[store.Version]string)
	var done, unknown int
	for i := range times {
		ctx, cancel := context.WithTimeout(c.Context(), timeout())
		value := fmt.Sprintf(`{"try":%d}`, i)
		put, err := to.Put(ctx, "k", []byte(value), store.Condition{Version: r.Version})
		cancel()
		conflict := errors.Is(err, store.ErrConflict)
		switch {
		case err == nil:
			done++
		case !conflict:
			unknown++
			if put.Version != "" {
				tried[put.Version] = value
			}
		}
		got := c.get(from, "k")
		switch was, ok := tried[got.Version]; {
		case err == nil:
			if !same(got, put) {
				c.Fatalf("try %d was acknowledged as %s, and the store has %s", i, show(put), show(got))
			}
			clear(tried)
		case got.Version == r.Version:
			if conflict {
				c.Fatalf("try %d conflicts, and the record is as it was: %s", i, show(got))
			}
		case ok && was == string(got.Value):
			landed++
			clear(tried)
		default:
			c.Fatalf("try %d: %v, and the store has %s; nothing of the kind was tried", i, err, show(got))
		}
		r = got
	}
	c.Logf("of %d Puts %d were acknowledged, %d had an unknown outcome, of those %d were carried out", times, done, unknown, landed)
	c.put(from, "k", `1`, store.Condition{Version: r.Version})
	return landed
}
