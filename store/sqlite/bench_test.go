package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/store"
)

var typical = []byte(`{"v":1,"term":3,"owner":"0123456789abcdef0123456789abcdef","name":"host-1","horizon":1234567890123}`)

func BenchmarkPut(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "ids.db"))
	var v store.Version
	for b.Loop() {
		r, err := s.Put(b.Context(), "lease/main/1", typical, store.Condition{Version: v})
		if err != nil {
			b.Fatal(err)
		}
		v = r.Version
	}
}

func BenchmarkGet(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "ids.db"))
	if _, err := s.Put(b.Context(), "lease/main/1", typical, store.Condition{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Get(b.Context(), "lease/main/1"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "ids.db")
	mustOpen(b, path)
	for b.Loop() {
		s, err := Open(context.Background(), path)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
