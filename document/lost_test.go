package document_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memory"
)

// lossOf returns a store that had a series, which gave the texts of the counts up to 5, has lost
// all that it had, and was recovered.
func lossOf(t *testing.T, pattern, zone string) *memory.Store {
	t.Helper()
	st := memory.New()
	empty := st.Snapshot()
	s := opened(t, st, pattern, document.Options{Zone: zone})
	for range 5 {
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	st.Restore(empty)
	if _, err := document.Recover(t.Context(), st, 1, nil); err != nil {
		t.Fatal(err)
	}
	return st
}

// A store that was recovered may have lost a series. It is created only by who says which text was
// the last, or that it never existed: otherwise its first texts would be given out again.
func TestCreateAfterLoss(t *testing.T) {
	for _, tt := range []struct {
		name, pattern string
		o             document.Options
		want          string // the first text; empty: refused
	}{
		{"nothing is said", "R-{3}", document.Options{}, ""},
		{"other options", "R-{3}", document.Options{Cache: 10, MayRepeat: true, MayEqual: []string{"other"}}, ""},
		{"After", "R-{3}", document.Options{After: "R-005"}, "R-006"},
		{"New", "R-{3}", document.Options{New: true}, "R-001"},
		{"After this year's last", "R-{yyyy}-{3}", document.Options{Zone: "UTC", After: "R-2000-005"}, "R-2000-006"},
		{"After one of another year", "R-{yyyy}-{3}", document.Options{Zone: "UTC", After: "R-1999-005"}, "R-2000-001"},
		{"After one with a check digit", "R-{3}{luhn}", document.Options{After: "R-0059"}, "R-0067"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // it is the year 2000
				st := lossOf(t, tt.pattern, tt.o.Zone)
				_, err := document.Create(t.Context(), st, "invoice", with(tt.pattern, &tt.o))
				if tt.want == "" {
					var lost *document.LostError
					if !errors.As(err, &lost) || lost.Series != "invoice" || firn.Retryable(err) {
						t.Errorf("%v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				wantNext(t, opened(t, st, tt.pattern, document.Options{Zone: tt.o.Zone}), tt.want)
				// Who says the same again is told that it is there, and raises nothing.
				if _, err := document.Create(t.Context(), st, "invoice", with(tt.pattern, &tt.o)); !errors.As(err, new(*document.ExistsError)) {
					t.Errorf("created again: %v", err)
				}
			})
		})
	}
}

// After is what the series cannot be created above: nothing is written.
func TestAfterIsRefused(t *testing.T) {
	st := memory.New()
	if _, err := document.Create(t.Context(), st, "other", &document.Options{Pattern: "R-{3}"}); err != nil {
		t.Fatal(err)
	}
	before := st.Snapshot()
	var syntax *firn.SyntaxError
	var end *document.EndError
	var overlap *document.OverlapError
	for _, tt := range []struct {
		pattern, after string
		as             any
	}{
		{"O-{3}", "P-005", &syntax},
		{"O-{3}", "O-5", &syntax},
		{"O-{3}{luhn}", "O-0051", &syntax},
		{"O-{3}", "O-999", &end}, // no text is left above it
		{"R-{3}", "R-005", &overlap},
	} {
		if _, err := document.Create(t.Context(), st, "invoice", &document.Options{Pattern: tt.pattern, After: tt.after}); !errors.As(err, tt.as) {
			t.Errorf("%s after %s: %v", tt.pattern, tt.after, err)
		}
		if now, err := st.List(t.Context(), ""); err != nil || len(now) != len(listOf(t, before)) {
			t.Errorf("%s after %s: the store has %d records: %v", tt.pattern, tt.after, len(now), err)
		}
	}
}

// listOf are the records of a snapshot.
func listOf(t *testing.T, s memory.Snapshot) []store.Record {
	t.Helper()
	st := memory.New()
	st.Restore(s)
	all, err := st.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A Create that fails between the counter and the series is called again, with the same text or
// with one that was found to be later, and the series begins above the later one.
func TestAfterIsCalledAgain(t *testing.T) {
	for _, tt := range []struct{ first, again, want string }{
		{"R-005", "R-005", "R-006"},
		{"R-005", "R-007", "R-008"},
		{"R-007", "R-005", "R-008"},
	} {
		st := memory.New()
		_, err := document.Create(t.Context(), refusing{st, "serial/invoice"}, "invoice", &document.Options{Pattern: "R-{3}", After: tt.first})
		if err == nil {
			t.Fatal("created in a store that refuses the series")
		}
		if _, err := document.Create(t.Context(), st, "invoice", &document.Options{Pattern: "R-{3}", After: tt.again}); err != nil {
			t.Fatal(err)
		}
		wantNext(t, opened(t, st, "R-{3}", document.Options{}), tt.want)
	}
}

// refusing is a store that does not write one record.
type refusing struct {
	*memory.Store
	key string
}

func (r refusing) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if key == r.key {
		return store.Record{}, errors.New("the disk is full")
	}
	return r.Store.Put(ctx, key, value, cond)
}

// After a text of a later date the counters of today would begin at 1. A program is refused, and
// nothing is written.
func TestAfterALaterDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is the year 2000
		st := memory.New()
		var later *document.AfterError
		_, err := document.Create(t.Context(), st, "invoice", &document.Options{Pattern: "R-{yyyy}-{3}", Zone: "UTC", After: "R-2001-005"})
		if !errors.As(err, &later) || later.Period != "2001" || later.Today != "2000" || firn.Retryable(err) {
			t.Errorf("%v", err)
		}
		if all, err := st.List(t.Context(), ""); err != nil || len(all) > 0 {
			t.Errorf("the store has %d records, %v", len(all), err)
		}
	})
}
