package document_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/sqlite"
)

// BenchmarkNext draws one text after the other: each by a write to a store that
// costs nothing, each by one to a file, and from what is in hand.
func BenchmarkNext(b *testing.B) {
	file, err := sqlite.Open(context.Background(), filepath.Join(b.TempDir(), "ids.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	for _, bb := range []struct {
		name string
		st   store.Store
		step int64
	}{{"memory", memory.New(), 1}, {"sqlite", file, 1}, {"hand", memory.New(), 10_000}} {
		b.Run(bb.name, func(b *testing.B) {
			s, err := document.Open(b.Context(), bb.st, "invoice", &document.Options{Pattern: "INV-{yyyyMMdd}-{6+}", Zone: "UTC", Cache: bb.step})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Next(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
