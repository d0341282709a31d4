package storetest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
)

// updateHolds holds a store to what [store.Updater] says, if it is one.
func updateHolds(c *check) {
	handles := c.handles()
	var all []store.Updater
	for _, s := range handles {
		u := store.AsUpdater(s)
		if u == nil {
			c.Skip("not checked: the store cannot hold a record")
		}
		all = append(all, u)
	}
	s, u := handles[0], all[0]
	first := c.put(s, "a", "0", store.Condition{})

	// What f returns replaces what f was given, and what f refuses does not.
	calls := 0
	second, err := u.Update(c.Context(), "a", func(r store.Record) ([]byte, error) {
		if calls++; !same(r, first) {
			c.Errorf("f is given %s, not %s", show(r), show(first))
		}
		return []byte("1"), nil
	})
	if err != nil || calls != 1 || second.Version == first.Version || second.Version == "" {
		c.Fatalf("Update: %s, %v, after %d calls of f", show(second), err, calls)
	}
	c.is(s, second)
	c.conflicts(s, "a", "2", store.Condition{Version: first.Version})
	mine := errors.New("mine")
	r, err := u.Update(c.Context(), "a", func(store.Record) ([]byte, error) { return []byte("2"), mine })
	if !errors.Is(err, mine) || r.Version != "" {
		c.Errorf("Update of a f that fails: %s, %v", show(r), err)
	}
	c.is(s, second)

	c.updateNeverWritten(u)
	c.updateHeld(s, all)
	c.updateAtOnce(s, all)
	if c.backend.Shaky != nil {
		c.updateShaky(s)
	}
}

// updateShaky loses requests and replies of the only writer, who knows what it
// tries: whatever the record turns into must be that, and nothing of which it was
// said that it never will be.
func (c *check) updateShaky(s store.Store) {
	u := store.AsUpdater(c.backend.Shaky(c.TB))
	r := c.put(s, "k", "0", store.Condition{})
	tried := make(map[store.Version]string)
	lost := 0
	for i := range 100 {
		value := strconv.Itoa(i)
		ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
		put, err := u.Update(ctx, "k", func(store.Record) ([]byte, error) { return []byte(value), nil })
		cancel()
		got := c.get(s, "k")
		switch {
		case err == nil && !same(got, put):
			c.Fatalf("Update %d was acknowledged as %s, and the store has %s", i, show(put), show(got))
		case err == nil:
			clear(tried)
		default:
			if lost++; put.Version != "" {
				tried[put.Version] = value
			}
			if was, ok := tried[got.Version]; got.Version != r.Version && (!ok || was != string(got.Value)) {
				c.Fatalf("Update %d: tried %q, %v, and the store has %s", i, put.Version, err, show(got))
			}
		}
		r = got
	}
	if lost == 0 {
		c.Errorf("of 100 Updates on the shaky handle none failed")
	}
}

// updateNeverWritten: either the record is made, or it conflicts.
func (c *check) updateNeverWritten(u store.Updater) {
	r, err := u.Update(c.Context(), "new", func(r store.Record) ([]byte, error) {
		if r.Version != "" {
			c.Errorf("f is given %s, which was never written", show(r))
		}
		return []byte("1"), nil
	})
	if err != nil && !errors.Is(err, store.ErrConflict) || err == nil && r.Version == "" {
		c.Errorf("Update of a record never written: %s, %v", show(r), err)
	}
}

// updateHeld: while f runs nobody else writes, and who gives up waiting has not
// called f and does not.
func (c *check) updateHeld(s store.Store, all []store.Updater) {
	held, other := false, false
	_, err := all[0].Update(c.Context(), "a", func(store.Record) ([]byte, error) {
		held = true
		ctx, cancel := context.WithTimeout(c.Context(), 100*time.Millisecond)
		defer cancel()
		if r, err := all[1].Update(ctx, "a", func(store.Record) ([]byte, error) {
			other = true
			return []byte("9"), nil
		}); err == nil || errors.Is(err, store.ErrConflict) && r.Version != "" {
			c.Errorf("Update of a record that is held: %s, %v", show(r), err)
		}
		return []byte("10"), nil
	})
	if err != nil || !held || other {
		c.Errorf("Update: %v; f was called: %v; while it was held: %v", err, held, other)
	}
	time.Sleep(50 * time.Millisecond)
	if got := c.get(s, "a"); string(got.Value) != "10" || other {
		c.Errorf("the store has %s, not what was written last", show(got))
	}
}

// updateAtOnce lets everybody increment one record: none is lost, and none fails.
func (c *check) updateAtOnce(s store.Store, all []store.Updater) {
	const each = 5
	c.put(s, "n", "0", store.Condition{})
	var wg sync.WaitGroup
	for i := range contenders {
		u := all[i%shared]
		wg.Go(func() {
			for range each {
				_, err := u.Update(c.Context(), "n", func(r store.Record) ([]byte, error) {
					n, err := strconv.Atoi(string(r.Value))
					return []byte(strconv.Itoa(n + 1)), err
				})
				if err != nil {
					c.Errorf("Update: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if got := c.get(s, "n"); string(got.Value) != strconv.Itoa(contenders*each) {
		c.Errorf("%d increments made %s", contenders*each, got.Value)
	}
}
