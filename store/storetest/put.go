package storetest

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
)

func show(r store.Record) string {
	return fmt.Sprintf("{%q %.60q version %q written %v}", r.Key, r.Value, r.Version, r.Written)
}

func neverWritten(c *check) {
	s := c.open()
	c.put(s, "a/b", `1`, store.Condition{})
	for _, key := range []string{"a", "a/", "a/b/", "A/B", "none"} {
		r := c.get(s, key)
		if r.Version != "" || len(r.Value) != 0 || !r.Written.IsZero() {
			c.Errorf("never written, but %s", show(r))
		}
	}
}

func create(c *check) {
	s := c.open()
	r := c.put(s, "k", `{"v":1}`, store.Condition{})
	c.is(s, r)
	c.is(c.open(), r)
	// What a Put returns it as, a List does too.
	if l := c.list(s, ""); len(l) != 1 || !same(l[0], r) {
		c.Errorf("a store with one record lists %v", l)
	}
}

func createOnce(c *check) {
	s := c.open()
	c.put(s, "k", `1`, store.Condition{})
	c.conflicts(s, "k", `2`, store.Condition{})
	c.conflicts(s, "k", `1`, store.Condition{})
}

func replace(c *check) {
	s, other := c.open(), c.open()
	r := c.put(s, "k", `0`, store.Condition{})
	for i := range 20 {
		next := c.put(s, "k", fmt.Sprint(i), store.Condition{Version: r.Version})
		c.is(s, next)
		c.is(other, next)
		if !c.backend.NoClock && next.Written.Before(r.Written) {
			c.Errorf("written at %v over a record of %v", next.Written, r.Written)
		}
		r = next
		s, other = other, s
	}
}

func wrongVersion(c *check) {
	s := c.open()
	// Of a record that is not there, every Version is wrong.
	c.conflicts(s, "none", `1`, store.Condition{Version: store.NewVersion()})
	r := c.put(s, "k", `1`, store.Condition{})
	v := string(r.Version)
	c.conflicts(s, "none", `1`, store.Condition{Version: r.Version})
	for _, wrong := range []string{
		string(store.NewVersion()), "0", "-1", "1", "%", "*", v + " ", " " + v, v + "0", v[:len(v)-1], v[1:],
		v + "\x00", flipCase(v), strings.Repeat("%", len(v)), strings.Repeat("_", len(v)),
	} {
		c.conflicts(s, "k", `2`, store.Condition{Version: store.Version(wrong)})
	}
	c.put(s, "k", `2`, store.Condition{Version: r.Version})
}

// flipCase returns v with the case of its first letter changed; something else
// if it has none.
func flipCase(v string) string {
	for i, b := range []byte(v) {
		if b |= 0x20; b >= 'a' && b <= 'z' {
			return v[:i] + string(v[i]^0x20) + v[i+1:]
		}
	}
	return v + "a"
}

func oldVersion(c *check) {
	s, other := c.open(), c.open()
	var old []store.Version
	var r store.Record
	for i := range 10 {
		// The same two values over and over: only the Version tells writes apart.
		r = c.put(s, "k", fmt.Sprint(i%2), store.Condition{Version: r.Version})
		for _, v := range old {
			c.conflicts(s, "k", `9`, store.Condition{Version: v})
			c.conflicts(other, "k", `9`, store.Condition{Version: v})
		}
		old = append(old, r.Version)
	}
	c.is(s, r)
}

func versionsDiffer(c *check) {
	s, other := c.open(), c.open()
	seen := make(map[store.Version]string)
	for _, key := range []string{"a", "b", "c"} {
		var r store.Record
		for i := range 10 {
			r = c.put(s, key, `0`, store.Condition{Version: r.Version})
			write := fmt.Sprintf("write %d of %q", i, key)
			if first, ok := seen[r.Version]; ok {
				c.Errorf("%s has Version %q, as %s had", write, r.Version, first)
			}
			seen[r.Version] = write
			s, other = other, s
		}
	}
}

// rolledBack is why a Version must not be a count: after the store went back, a
// count comes to the old numbers again, and an old holder's word counts as that
// of the new one.
func rolledBack(c *check) {
	s, other := c.open(), c.open()
	first := c.put(s, "k", `1`, store.Condition{})
	restore := c.backend.Checkpoint(c.TB)
	lost := c.put(s, "k", `2`, store.Condition{Version: first.Version})
	created := c.put(s, "created", `1`, store.Condition{})

	restore()
	for _, s := range []store.Store{s, other} {
		c.is(s, first)
		if r := c.get(s, "created"); r.Version != "" {
			c.Errorf("created after the state that was brought back: %s", show(r))
		}
		c.conflicts(s, "k", `3`, store.Condition{Version: lost.Version})
		c.conflicts(s, "created", `3`, store.Condition{Version: created.Version})
	}

	// The same writes again are other writes, to everybody.
	again := c.put(other, "k", `2`, store.Condition{Version: first.Version})
	c.put(other, "created", `1`, store.Condition{})
	if again.Version == lost.Version {
		c.Errorf("two writes have Version %q, one before and one after the store went back", again.Version)
	}
	for _, s := range []store.Store{s, other} {
		c.conflicts(s, "k", `3`, store.Condition{Version: lost.Version})
		c.conflicts(s, "created", `3`, store.Condition{Version: created.Version})
		c.is(s, again)
	}
	c.put(s, "k", `3`, store.Condition{Version: again.Version})
}

func handlesAgree(c *check) {
	s, other := c.open(), c.open()
	var r store.Record
	for i := range 50 {
		r = c.put(s, "k", fmt.Sprint(i), store.Condition{Version: r.Version})
		c.is(other, r)
		if l := c.list(other, "k"); len(l) != 1 || !same(l[0], r) {
			c.Errorf("written on one handle: %s, listed on another: %v", show(r), l)
		}
		s, other = other, s
	}
}

func durability(c *check) {
	s := c.open()
	for range 2 {
		p, err := s.Durability(c.Context())
		if err != nil {
			c.Fatalf("Durability: %v", err)
		}
		if b := c.backend; p.Durable != b.Durable || p.LocalClock != b.LocalClock || p.NoticesLoss != b.NoticesLoss {
			c.Errorf("Durable %t, LocalClock %t, NoticesLoss %t; the backend declares %t, %t, %t",
				p.Durable, p.LocalClock, p.NoticesLoss, b.Durable, b.LocalClock, b.NoticesLoss)
		}
		if p.Why == "" {
			c.Errorf("the store is %v and does not say why", p)
		}
	}
}
