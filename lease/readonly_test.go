package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// readOnly is a store that can be read and, after patience, not written: it is
// locked, or its disk is full.
type readOnly struct {
	store.Store
	on atomic.Bool
}

func (r *readOnly) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if !r.on.Load() {
		return r.Store.Put(ctx, key, value, cond)
	}
	<-ctx.Done()
	return store.Record{}, ctx.Err()
}

// That its record can be read does not make a lease well that cannot extend.
func TestDegradedWhileTheStoreCanOnlyBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &readOnly{Store: memory.New()}
		o, _ := options()
		o.Outage = time.Minute
		l := open(t, s, o)
		defer closed(t, l)
		time.Sleep(5 * time.Minute) // the ramp is over
		s.on.Store(true)
		for !l.State().StoreAway {
			time.Sleep(100 * time.Millisecond)
		}
		horizon := l.State().EndsAt
		for time.Now().Before(horizon) {
			if st := l.State(); !st.StoreAway || st.Err == nil {
				t.Fatalf("%s before its horizon the lease believes that it is well: %+v", time.Until(horizon), st)
			}
			time.Sleep(100 * time.Millisecond)
		}
		begun := time.Now()
		var outage *OutageError
		if _, err := l.Next(t.Context()); !errors.As(err, &outage) || time.Since(begun) > 0 {
			t.Fatalf("after %s: %v", time.Since(begun), err)
		}
		s.on.Store(false)
		for l.State().StoreAway {
			time.Sleep(100 * time.Millisecond)
		}
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// With a short budget, a store that hangs is known for that in time.
func TestDegradedBeforeAShortHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &readOnly{Store: memory.New()}
		o, _ := options()
		o.Outage = 2 * time.Second
		l := open(t, s, o)
		defer closed(t, l)
		time.Sleep(time.Minute)
		s.on.Store(true)
		for !l.State().StoreAway {
			if st := l.State(); time.Now().After(st.EndsAt) {
				t.Fatalf("not known at the horizon: %+v", st)
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		begun := time.Now()
		var outage *OutageError
		if _, err := l.Next(t.Context()); !errors.As(err, &outage) || time.Since(begun) > 0 {
			t.Fatalf("after %s: %v", time.Since(begun), err)
		}
		s.on.Store(false)
	})
}
