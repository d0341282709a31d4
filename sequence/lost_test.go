package sequence_test

import (
	"errors"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// lossOf returns a store that had a series, which gave the numbers up to 5, has lost all that it had,
// and was recovered.
func lossOf(t *testing.T) *memory.Store {
	t.Helper()
	st := memory.New()
	empty := st.Snapshot()
	s := begin(t, st, sequence.Options{})
	for range 5 {
		next(t, s)
	}
	closeSeries(t, s)
	st.Restore(empty)
	if _, err := sequence.Recover(ctx, st, 1, nil); err != nil {
		t.Fatal(err)
	}
	return st
}

// A store that was recovered may have lost a series. It is created only by who says where it begins,
// or that it never existed: otherwise its first numbers would be issued again.
func TestCreateAfterLoss(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    *sequence.Options
		want firn.ID // the first number; 0: refused
	}{
		{"no options", nil, 0},
		{"other options", &sequence.Options{Max: 1000, Cache: 10, MayRepeat: true}, 0},
		{"First", &sequence.Options{First: 6}, 6},
		{"New", &sequence.Options{New: true}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := lossOf(t)
			_, err := sequence.Create(ctx, st, "orders", tt.o)
			if tt.want == 0 {
				var lost *sequence.LostError
				if !errors.As(err, &lost) || lost.Name != "orders" || firn.Retryable(err) {
					t.Errorf("%v", err)
				}
				if all, err := sequence.List(ctx, st); err != nil || len(all) != 0 {
					t.Errorf("it is there: %+v %v", all, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s := begin(t, st, sequence.Options{})
			defer closeSeries(t, s)
			if id := next(t, s); id != tt.want {
				t.Errorf("it begins at %d", id)
			}
			// Who says the same again is told that it is there, and changes nothing.
			if _, err := sequence.Create(ctx, st, "orders", tt.o); !errors.As(err, new(*sequence.ExistsError)) {
				t.Errorf("created again: %v", err)
			}
		})
	}
}

// One store of several that was recovered is enough: it may be the one that had the series.
func TestCreateAcrossAfterLoss(t *testing.T) {
	for place := range 2 {
		stores := []store.Store{memory.New(), memory.New()}
		stores[place] = lossOf(t)
		if _, err := sequence.CreateAcross(ctx, stores, "orders", nil); !errors.As(err, new(*sequence.LostError)) {
			t.Errorf("store %d was recovered: %v", place, err)
		}
		if _, err := sequence.CreateAcross(ctx, stores, "orders", &sequence.Options{New: true}); err != nil {
			t.Errorf("store %d was recovered: %v", place, err)
		}
	}
}
