package open_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// TestIdleDead: a connection that died while nobody used it, because its server was
// started again, is noticed before a Put is sent on it, so that its outcome is known.
func TestIdleDead(t *testing.T) {
	for _, start := range []func(testing.TB, ...string) *testserver.Server{testserver.Postgres, testserver.MariaDB} {
		srv := start(t)
		s, err := open.URL(t.Context(), srv.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i := range 2 {
			if _, err := s.Put(t.Context(), fmt.Sprint(i), []byte(`1`), store.Condition{}); err != nil {
				t.Errorf("%s: started again: %v", srv.URL(), err)
			}
			if i == 0 {
				srv.Kill(t)
				srv.Start(t)
				time.Sleep(time.Second) // what is used all the time is not looked at
			}
		}
	}
}
