package storetest_test

import (
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

// The test of an adapter holds it to the contract.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestContract(t *testing.T)
		storetest.Run(t, func(tb testing.TB) storetest.Backend {
			s := memory.New()
			return storetest.Backend{
				Open:    func(testing.TB) store.Store { return s },
				Durable: true, LocalClock: true, NoticesLoss: true,
			}
		})
	}
}
