package daemon

import (
	"errors"
	"sync"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/store/memory"
	"github.com/firn-id/firn/store/storetest"
)

// Requests that ask for a name at the same moment share its series. An error is not kept.
func TestNames(t *testing.T) {
	st := memory.New()
	if _, err := document.Create(t.Context(), st, "bill:*", &document.Options{Pattern: "{1+}"}); err != nil {
		t.Fatal(err)
	}
	f := storetest.NewFaulty(st)
	all := &names{store: f, template: "bill:*", open: map[string]*name{}}
	away := errors.New("connection refused")
	f.Away(away)
	if _, err := all.source(t.Context(), "bill:a"); !errors.Is(err, away) {
		t.Errorf("%v", err)
	}
	f.Away(nil)
	var same sync.Map
	var done sync.WaitGroup
	for range 20 {
		done.Go(func() {
			s, err := all.source(t.Context(), "bill:a")
			if err != nil {
				t.Error(err)
				return
			}
			same.Store(s, true)
			if _, err := s.Next(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	count := 0
	same.Range(func(any, any) bool { count++; return true })
	if info, err := document.Show(t.Context(), st, "bill:a"); count != 1 || err != nil || info.Count != 20 {
		t.Errorf("%d series, %+v, %v", count, info, err)
	}
	if err := errors.Join(all.final(), all.close()); err != nil {
		t.Error(err)
	}
	if _, err := all.source(t.Context(), "bill:a"); !errors.Is(err, firn.ErrClosed) {
		t.Errorf("%v", err)
	}
}
