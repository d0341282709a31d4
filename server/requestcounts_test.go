package server

import (
	"testing"
	"time"
)

func TestBucket(t *testing.T) {
	for d := time.Duration(0); d < time.Minute; d = d*3/2 + 1 {
		i := bucket(d)
		if b := LatencyBound(i); b >= 0 && d > b {
			t.Errorf("%s is in bucket %d, up to %s", d, i, b)
		}
		if i > 0 && d <= LatencyBound(i-1) {
			t.Errorf("%s is in bucket %d, and has room in the one before, up to %s", d, i, LatencyBound(i-1))
		}
	}
}
