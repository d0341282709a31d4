package zookeeper

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// What is read when the session has ended in the middle is read again, because the
// next session may be with a server that lags; and what is missing there is not
// forgotten.
func TestSessionEndsWhileReading(t *testing.T) {
	t.Parallel()
	p := testserver.NewProxy(t, server(t).Addr())
	conn, _, err := zk.Connect([]string{p.Addr()}, 500*time.Millisecond, zk.WithLogger(silent{}))
	must(t, err)
	t.Cleanup(conn.Close)
	s := New(conn, &Options{Root: newRoot()})
	want, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	must(t, err)
	for what, stale := range map[string]error{"an old record": nil, "none": errGone} {
		var got store.Record
		calls, err := 0, error(nil)
		for try := 0; try == 0 || err != nil && try < 10; try++ { // so short a session may end by itself on a busy machine
			calls = 0
			got, err = steady(t.Context(), s, func(home string) (store.Record, error) {
				if calls++; calls > 1 {
					return s.read(t.Context(), home, "k")
				}
				expire(t, p, conn)
				return store.Record{Key: "k"}, stale
			})
		}
		if err != nil || got.Version != want.Version || calls != 2 {
			t.Errorf("%s: %+v, %v, read %d times", what, got, err, calls)
		}
	}
}
