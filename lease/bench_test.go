package lease_test

import (
	"log/slog"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memory"
)

// BenchmarkNext is the way of one id, in a layout that never makes it wait.
func BenchmarkNext(b *testing.B) {
	wide := firn.MustLayout("time:31@1s,worker:2,seq:30;epoch=2025-01-01T00:00:00Z")
	ids, err := lease.Open(b.Context(), memory.New(), &lease.Options{Layout: wide, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer ids.Close()
	for b.Loop() {
		if _, err := ids.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
