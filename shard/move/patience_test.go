package move

import (
	"net"
	"testing"
	"time"
)

// TestPatience: the patience with a server begins when it fails, however long it answered before.
func TestPatience(t *testing.T) {
	gone := &net.OpError{Op: "read", Err: net.ErrClosed}
	calls := 0
	err := patiently(t.Context(), 100*time.Millisecond, func() error {
		if calls++; calls == 1 {
			time.Sleep(200 * time.Millisecond)
			return gone
		}
		return nil
	})
	if err != nil || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if err := patiently(t.Context(), 100*time.Millisecond, func() error { return gone }); err == nil {
		t.Error("it does not end")
	}
}
