package main

import (
	"testing"

	"github.com/firn-id/firn/internal/leaseoptions"
	"github.com/firn-id/firn/pool"
)

// The number that the host's name ends in counts from the first worker of the pool.
func TestHostWorker(t *testing.T) {
	half := pool.Info{Name: "web", First: 512, Last: 1023}
	if n, err := leaseoptions.HostWorker(half, func() (string, error) { return "web-3.example.org", nil }); err != nil || n != 515 {
		t.Errorf("web-3 of 512-1023 is worker %d, %v", n, err)
	}
	if _, err := leaseoptions.HostWorker(half, func() (string, error) { return "web-512", nil }); err == nil ||
		err.Error() != `host web-512 asks for worker 1024, which is outside pool "web", which has workers 512-1023` {
		t.Errorf("web-512 of 512-1023: %v", err)
	}
}
