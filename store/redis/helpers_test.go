package redis

import (
	"testing"
	"time"
)

// eventually waits until ok, at most 20 seconds.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not within 20 s: %s", what)
		}
	}
}
