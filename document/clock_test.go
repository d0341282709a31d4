package document_test

import (
	"context"
	"testing"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// server is a store on another host.
type server struct{ store.Store }

func (s server) Durability(ctx context.Context) (store.Durability, error) {
	p, err := s.Store.Durability(ctx)
	p.LocalClock = false
	return p, err
}

// Recover raises the counters of every date that has begun. By a clock that is behind, today's
// would not be among them, and its texts would be given out again.
func TestRecoverByAWrongClock(t *testing.T) {
	for ahead, refused := range map[time.Duration]bool{0: false, -4 * time.Second: false, -24 * time.Hour: true, 24 * time.Hour: true} {
		st := memory.NewClock(func() time.Time { return time.Now().Add(ahead) })
		opened(t, st, invoice, saigon)
		before, err := document.Show(t.Context(), st, "invoice")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := document.Recover(t.Context(), server{st}, 100, nil); (err != nil) != refused {
			t.Errorf("the store's clock is %s ahead: %v", ahead, err)
		}
		if recs, err := st.List(t.Context(), ""); refused && (err != nil || len(recs) != 1) {
			t.Errorf("%v, %v: it changed the store of %+v", recs, err, before)
		}
	}
}
