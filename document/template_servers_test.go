package document_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/testserver"
)

// TestTemplateOnStores: on every store processes that begin names at the same moment share their counters.
// make full takes all stores.
func TestTemplateOnStores(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			if !slices.Contains(inFirstTier, b.name) {
				testserver.OnlyLong(t)
			}
			t.Parallel()
			url := "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
			if b.server != nil {
				url = b.server(t).URL()
			}
			st := connected(t, url)
			const prefix = "bill:"
			o := document.Options{Pattern: "{1+}", MayRepeat: b.name == "redis", Names: 3}
			if _, err := document.Create(t.Context(), st, prefix+"*", &o); err != nil {
				t.Fatal(err)
			}
			var done sync.WaitGroup
			var given sync.Map
			for i := range 6 {
				done.Go(func() {
					name := fmt.Sprint(prefix, i%3)
					s, err := document.Open(t.Context(), connected(t, url), name, &document.Options{Template: prefix + "*", MayRepeat: o.MayRepeat})
					if err != nil {
						t.Error(err)
						return
					}
					defer s.Close()
					for range 5 {
						one, err := s.Next(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						if _, twice := given.LoadOrStore(name+" "+one.Text, true); twice {
							t.Errorf("%s gives %s twice", name, one.Text)
						}
					}
				})
			}
			done.Wait()
			for i := range 3 {
				if info, err := document.Show(t.Context(), st, fmt.Sprint(prefix, i)); err != nil || info.Count != 10 {
					t.Errorf("%+v, %v", info, err)
				}
			}
			if info, err := document.Show(t.Context(), st, prefix+"*"); err != nil || info.Names != 3 {
				t.Errorf("%+v, %v", info, err)
			}
			_, err := document.Open(t.Context(), st, prefix+"3", &document.Options{Template: prefix + "*", MayRepeat: o.MayRepeat})
			if !errors.As(err, new(*document.FullError)) {
				t.Errorf("a fourth name: %v", err)
			}
		})
	}
}
