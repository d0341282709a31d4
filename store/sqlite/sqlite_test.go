package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlite"
)

func TestOpenPutGet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ?#%b.db")
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Put(t.Context(), "k/1", []byte(`{"v":1}`), store.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Get(t.Context(), "k/1")
	t.Logf("%+v\n%+v %v", r, g, err)
	p, err := s.Promise(t.Context())
	t.Logf("%+v %v", p, err)
	l, err := s.List(t.Context(), "k/")
	t.Logf("%+v %v", l, err)
	_, err = s.Put(t.Context(), "k/1", []byte(`{"v":1}`), store.Condition{})
	if !errors.Is(err, store.ErrConflict) {
		t.Error(err)
	}
	os.Remove(path)
	_, err = s.Get(t.Context(), "k/1")
	t.Log(err)
	_, err = sqlite.Open(path)
	t.Log(err)
	es, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range es {
		t.Log(e)
	}
}

func TestOpenMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.db")
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			s, err := sqlite.Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if _, err := s.Get(t.Context(), "k"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	es, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range es {
		t.Log(e)
	}
}

func BenchmarkPut(b *testing.B) {
	s, err := sqlite.Open(filepath.Join(b.TempDir(), "ids.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var v store.Version
	for b.Loop() {
		r, err := s.Put(b.Context(), "k", []byte(`{"v":1,"owner":"0123456789abcdef","horizon":12345678}`), store.Condition{Version: v})
		if err != nil {
			b.Fatal(err)
		}
		v = r.Version
	}
}

func BenchmarkGet(b *testing.B) {
	s, err := sqlite.Open(filepath.Join(b.TempDir(), "ids.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Put(b.Context(), "k", []byte(`{"v":1,"owner":"0123456789abcdef","horizon":12345678}`), store.Condition{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Get(b.Context(), "k"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "ids.db")
	for b.Loop() {
		s, err := sqlite.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
