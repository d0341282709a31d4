package open_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store/open"
)

// An etcd server that is away is tried again every two seconds or so, however long it
// has been away: gRPC's own rule would have come to ten seconds by then.
func TestEtcdIsTriedAgain(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var tried atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tried.Add(1)
			c.Close()
		}
	}()
	s, err := open.URL(t.Context(), "etcd://"+l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithTimeout(t.Context(), 12*time.Second)
	defer stop()
	for ctx.Err() == nil {
		if rec, err := s.Get(ctx, "pool/web"); err == nil {
			t.Fatalf("nobody answers, and there is %v", rec)
		}
	}
	if n := tried.Load(); n < 7 {
		t.Errorf("it was tried %d times in 12 s", n)
	}
}
