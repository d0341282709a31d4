package sequence_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/memory"
)

var sink int64

// BenchmarkNext compares a number with the atomic add that is the least one could
// do: directly, and through the interface that programs hold.
func BenchmarkNext(b *testing.B) {
	ctx := context.Background()
	s, err := sequence.Open(ctx, memory.New(), "bench", &sequence.Options{MaxUnused: 1 << 30, Cache: 1 << 28})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.Run("add", func(b *testing.B) {
		var word atomic.Uint64
		for b.Loop() {
			sink = int64(word.Add(1))
		}
	})
	b.Run("series", func(b *testing.B) {
		for b.Loop() {
			id, err := s.Next(ctx)
			if err != nil {
				b.Fatal(err)
			}
			sink = int64(id)
		}
	})
	var src firn.Source = s
	b.Run("source", func(b *testing.B) {
		for b.Loop() {
			id, err := src.Next(ctx)
			if err != nil {
				b.Fatal(err)
			}
			sink = int64(id)
		}
	})
	b.Run("append64", func(b *testing.B) {
		dst := make([]firn.ID, 0, 64)
		for b.Loop() {
			if dst, err = s.Append(ctx, dst[:0], 64); err != nil {
				b.Fatal(err)
			}
		}
	})
}
