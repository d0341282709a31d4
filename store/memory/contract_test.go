package memory_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(testing.TB) storetest.Backend {
		var ahead atomic.Int64
		s := memory.NewClock(func() time.Time {
			return time.Now().Add(time.Duration(ahead.Load()))
		})
		net := storetest.NewFaulty(s)
		return storetest.Backend{
			Open:       func(testing.TB) store.Store { return net.Handle() },
			Durable:    true,
			LocalClock: true, NoticesLoss: true,
			Checkpoint: func(testing.TB) func() {
				snap := s.Snapshot()
				return func() { s.Restore(snap) }
			},
			Advance: func(_ testing.TB, d time.Duration) { ahead.Add(int64(d)) },
			Shaky:   func(testing.TB) store.Store { return shaky(net.Handle()) },
		}
	})
}

// shaky scripts more faults than a check has Puts.
func shaky(f *storetest.Faulty) store.Store {
	var last func() (store.Record, error)
	for range 200 {
		switch rand.N(5) {
		case 0:
			f.Next(storetest.LoseRequest())
		case 1:
			f.Next(storetest.LoseReply())
		case 2:
			var late storetest.Fault
			late, last = storetest.Later()
			f.Next(late)
		case 3:
			// The one before arrives just ahead of this one.
			if release := last; release != nil {
				f.Next(func(_ context.Context, p storetest.Put) (store.Record, error) {
					release()
					return p.Send()
				})
				last = nil
			}
		default:
			f.Next(nil)
		}
	}
	return f
}

func TestZeroStore(t *testing.T) {
	storetest.Run(t, func(testing.TB) storetest.Backend {
		var s memory.Store
		return storetest.Backend{
			Open:       func(testing.TB) store.Store { return &s },
			Durable:    true,
			LocalClock: true, NoticesLoss: true,
		}
	})
}
