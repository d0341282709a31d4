// Package storetest is the test of the store contract, for whoever writes an
// adapter, and [Faulty], a store with a bad connection, for whoever writes a
// protocol on top of one.
//
// An adapter's test calls [Run]:
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, func(tb testing.TB) storetest.Backend {
//			name := newTable(tb)
//			return storetest.Backend{
//				Open: func(tb testing.TB) store.Store { return connect(tb, name) },
//			}
//		})
//	}
package storetest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

// A Backend is a store under test. Each check gets its own, which is empty.
//
// What a backend cannot do is left out or declared here. A declaration weakens
// nothing: the opposite of what is usual is then required, and a check that
// cannot be made is skipped with the reason.
type Backend struct {
	// Open returns a handle on the records, as a process of its own would have
	// it: with a connection of its own, if there are connections. It is called
	// several times, and its handles are used at once; what they need closed
	// goes to tb.Cleanup. Required.
	Open func(tb testing.TB) store.Store

	// Durable, LocalClock and NoticesLoss are what Durability must return.
	Durable, LocalClock, NoticesLoss bool

	// NoClock: the store has no clock. Written and Read must be zero, and a
	// Within must be as good as none.
	NoClock bool

	// Checkpoint remembers the state of the store, and returns what brings it
	// back, as a restored backup would. Handles stay open over it. Nil: the
	// store cannot be brought back under open handles.
	Checkpoint func(tb testing.TB) (restore func())

	// Advance moves the clock of the store, but not that of this process, d
	// ahead. Nil: it cannot be moved.
	Advance func(tb testing.TB, d time.Duration)

	// Shaky returns a handle whose connection loses requests and replies of Puts
	// now and then, about one in three, such as one through a proxy that cuts
	// it, with the client's own retries as the adapter leaves them: a client at
	// its defaults. It is used by 16 goroutines at once. A lost Put is to fail
	// within seconds. A handle that loses no reply of 1,000 Puts fails the check.
	// Nil: there is no connection that could be lost.
	Shaky func(tb testing.TB) store.Store

	// Remove takes the store away, so that it has forgotten everything, with
	// handles open. Open must not fail afterwards: a handle that could not be
	// opened returns the error from its methods. Nil: an embedded store that
	// ends with its process, or one that is not embedded.
	Remove func(tb testing.TB)
}

// Run holds a store to the whole contract, one subtest for each check. open is
// called once for each, with that subtest, and returns an empty store.
func Run(t *testing.T, open func(tb testing.TB) Backend) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			b := open(t)
			if c.skip != nil {
				if why := c.skip(b); why != "" {
					t.Skip("not checked: " + why)
				}
			}
			c.run(&check{TB: t, backend: b})
		})
	}
}

// checks are all there are. They see nothing but a testing.TB, so that a test
// of the checks themselves can watch them fail.
var checks = []struct {
	name string
	skip func(Backend) string // why the check cannot be made, or ""
	run  func(*check)
}{
	{"never written", nil, neverWritten},
	{"create", nil, create},
	{"create only once", nil, createOnce},
	{"replace", nil, replace},
	{"wrong version", nil, wrongVersion},
	{"old version", nil, oldVersion},
	{"versions differ", nil, versionsDiffer},
	{"rolled back", needs("the store cannot be brought back to an earlier state", hasCheckpoint), rolledBack},
	{"keys apart", nil, keysApart},
	{"bad keys", nil, badKeys},
	{"values exact", nil, valuesExact},
	{"value sizes", nil, valueSizes},
	{"values owned", nil, valuesOwned},
	{"list", nil, listPrefixes},
	{"list order", nil, listOrder},
	{"list many", nil, listMany},
	{"handles agree", nil, handlesAgree},
	{"times", needs("the store has no clock", hasClock), times},
	{"within", needs("the store has no clock", hasClock), within},
	{"within is the store's", needs("the store's clock cannot be moved", hasAdvance), withinTheirs},
	{"no clock", needs("the store has a clock", hasNoClock), noClock},
	{"cancelled before", nil, cancelledBefore},
	{"cancelled during", nil, cancelledDuring},
	{"shaky", needs("there is no connection that could be lost", hasShaky), shaky},
	{"created at once", nil, createdAtOnce},
	{"contention", nil, contention},
	{"linearizable", nil, linearizable},
	{"list while writing", nil, listWhileWriting},
	{"update", nil, updateHolds},
	{"durability", nil, durability},
	{"removed", needs("the store cannot be removed under an open handle", hasRemove), removed},
}

func needs(why string, has func(Backend) bool) func(Backend) string {
	return func(b Backend) string {
		if has(b) {
			return ""
		}
		return why
	}
}

func hasCheckpoint(b Backend) bool { return b.Checkpoint != nil }
func hasClock(b Backend) bool      { return !b.NoClock }
func hasNoClock(b Backend) bool    { return b.NoClock }
func hasAdvance(b Backend) bool    { return b.Advance != nil && !b.NoClock }
func hasShaky(b Backend) bool      { return b.Shaky != nil }
func hasRemove(b Backend) bool     { return b.Remove != nil }

// A check is one check under way.
type check struct {
	testing.TB
	backend Backend
}

func (c *check) open() store.Store { return c.backend.Open(c.TB) }

// put writes what must be written.
func (c *check) put(s store.Store, key, value string, cond store.Condition) store.Record {
	c.Helper()
	r, err := s.Put(c.Context(), key, []byte(value), cond)
	if err != nil {
		c.Fatalf("Put %q with %+v: %v", key, cond, err)
	}
	if r.Version == "" {
		c.Fatalf("Put %q returns the zero Version", key)
	}
	if r.Key != key || string(r.Value) != value {
		c.Errorf("Put %q %.60q returns %s", key, value, show(r))
	}
	return r
}

// get reads.
func (c *check) get(s store.Store, key string) store.Record {
	c.Helper()
	r, err := s.Get(c.Context(), key)
	if err != nil {
		c.Fatalf("Get %q: %v", key, err)
	}
	if r.Key != key {
		c.Errorf("Get %q returns the record of %q", key, r.Key)
	}
	return r
}

// is requires that the store has want.
func (c *check) is(s store.Store, want store.Record) {
	c.Helper()
	if got := c.get(s, want.Key); !same(got, want) {
		c.Errorf("the store has %s, not %s", show(got), show(want))
	}
}

// conflicts requires that a Put conflicts and changes nothing.
func (c *check) conflicts(s store.Store, key, value string, cond store.Condition) {
	c.Helper()
	before := c.get(s, key)
	r, err := s.Put(c.Context(), key, []byte(value), cond)
	if !errors.Is(err, store.ErrConflict) {
		c.Errorf("Put %q with %+v over %s: %v, not ErrConflict", key, cond, show(before), err)
	}
	after := c.get(s, key)
	if !same(before, after) {
		c.Errorf("a Put of %q that conflicted changed %s to %s", key, show(before), show(after))
	}
	if r.Version != "" && r.Version == after.Version {
		c.Errorf("a Put of %q that conflicted was written", key)
	}
}

// refused requires an error that is not a conflict, from a Put of which nothing
// was sent.
func (c *check) refused(s store.Store, key string, value []byte, what string) {
	c.Helper()
	r, err := s.Put(c.Context(), key, value, store.Condition{})
	switch {
	case err == nil:
		c.Errorf("Put accepts %s", what)
	case errors.Is(err, store.ErrConflict):
		c.Errorf("Put calls %s a conflict", what)
	case r.Version != "":
		c.Errorf("Put refuses %s and returns a Version", what)
	}
}

// list reads a list and requires its records to be in order.
func (c *check) list(s store.Store, prefix string) []store.Record {
	c.Helper()
	l, err := s.List(c.Context(), prefix)
	if err != nil {
		c.Fatalf("List %q: %v", prefix, err)
	}
	for i := range l {
		if i > 0 && l[i-1].Key >= l[i].Key {
			c.Errorf("List %q has %q before %q", prefix, l[i-1].Key, l[i].Key)
		}
	}
	return l
}

// eventually waits until ok, at most a minute.
func (c *check) eventually(what string, ok func() bool) {
	c.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.Fatalf("not within a minute: %s", what)
		}
	}
}

// same says whether two records are one write. A record never written has a
// Value of no bytes, nil or not.
func same(a, b store.Record) bool {
	return a.Key == b.Key && bytes.Equal(a.Value, b.Value) && a.Version == b.Version && a.Written.Equal(b.Written)
}
