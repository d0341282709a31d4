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
	l := c.lone(s)
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	for range 10 {
		if _, err := s.Get(ctx, "k"); !errors.Is(err, context.Canceled) {
			c.Errorf("Get with a ctx that was cancelled: %v", err)
		}
		if _, err := s.List(ctx, ""); !errors.Is(err, context.Canceled) {
			c.Errorf("List with a ctx that was cancelled: %v", err)
		}
		if _, err := s.Durability(ctx); !errors.Is(err, context.Canceled) {
			c.Errorf("Durability with a ctx that was cancelled: %v", err)
		}
		if err := l.try(ctx, s); !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrConflict) {
			c.Errorf("Put with a ctx that was cancelled: %v", err)
		}
	}
	l.end()
}

// cancelledDuring lets the ctx of Puts end at any instant of them.
func cancelledDuring(c *check) {
	s := c.open()
	l := c.lone(s)
	start := time.Now()
	for i := range 10 {
		l.r = c.put(s, "k", fmt.Sprint(i), store.Condition{Version: l.r.Version})
	}
	usual := time.Since(start) / 10
	for range 200 {
		ctx, cancel := context.WithTimeout(c.Context(), rand.N(2*usual+1))
		l.try(ctx, s)
		cancel()
	}
	l.end()
}

// shaky loses requests and replies.
func shaky(c *check) {
	l := c.lone(c.open())
	s := c.backend.Shaky(c.TB)
	for n := 0; n < 100 || n < 1000 && l.landed == 0; n++ {
		ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
		l.try(ctx, s)
		cancel()
	}
	l.end()
	if l.landed == 0 {
		c.Errorf("of 1,000 Puts on the shaky handle none was carried out whose reply was lost")
	}
}

// A lone is the only writer of the record "k" and knows what it tries: whatever
// the record turns into must be that.
type lone struct {
	*check
	from store.Store  // reads
	r    store.Record // as it was last seen

	// tried are the Puts of unknown outcome on r: each may be carried out at any
	// later time, after any number of calls, until another one is. Those on what r
	// was before cannot be any more.
	tried map[store.Version]string

	done, unknown, landed int // Puts; landed are those of unknown outcome that were carried out
}

func (c *check) lone(from store.Store) *lone {
	r := c.put(from, "k", `0`, store.Condition{})
	return &lone{check: c, from: from, r: r, tried: make(map[store.Version]string)}
}

// try writes to a handle and looks at what became of that.
func (l *lone) try(ctx context.Context, to store.Store) error {
	l.Helper()
	value := fmt.Sprintf(`{"try":%d}`, l.done+l.unknown)
	put, err := to.Put(ctx, "k", []byte(value), store.Condition{Version: l.r.Version})
	switch {
	case err == nil:
		l.done++
		if got := l.get(l.from, "k"); !same(got, put) {
			l.Fatalf("%s was acknowledged, and the store has %s", show(put), show(got))
		}
		l.r = put
		clear(l.tried)
	case errors.Is(err, store.ErrConflict):
		l.conflict()
	default:
		l.unknown++
		if put.Version != "" {
			l.tried[put.Version] = value
		}
		l.look()
	}
	return err
}

// look reads the record, which is as it was or what was tried.
func (l *lone) look() {
	l.Helper()
	got := l.get(l.from, "k")
	if same(got, l.r) {
		return
	}
	if value, ok := l.tried[got.Version]; !ok || value != string(got.Value) {
		l.Fatalf("the store has %s, not %s; nothing of the kind was tried", show(got), show(l.r))
	}
	l.landed++
	l.r = got
	clear(l.tried)
}

// conflict looks at the record, which cannot be as it was.
func (l *lone) conflict() {
	l.Helper()
	was := l.r.Version
	if l.look(); l.r.Version == was {
		l.Fatalf("a Put conflicts, and the record is as it was: %s", show(l.r))
	}
}

// end requires that the record can be written. What was tried last may be carried
// out after it was last read: that is a conflict, and what is there then is written
// over. As nothing was tried on top of that, there is no second one.
func (l *lone) end() {
	l.Helper()
	l.Logf("%d Puts were acknowledged, %d had an unknown outcome, of those %d were carried out", l.done, l.unknown, l.landed)
	_, err := l.from.Put(l.Context(), "k", []byte(`1`), store.Condition{Version: l.r.Version})
	if errors.Is(err, store.ErrConflict) {
		l.conflict()
		_, err = l.from.Put(l.Context(), "k", []byte(`1`), store.Condition{Version: l.r.Version})
	}
	if err != nil {
		l.Fatalf("Put on top of %s: %v", show(l.r), err)
	}
}
