package postgres

import (
	"testing"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/sequence"
)

// TestViews reads series that were drawn from.
func TestViews(t *testing.T) {
	s, db := fresh(t)
	if _, err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]*sequence.Options{
		"even": {First: 2, Increment: 2, Max: 1000, Cache: 50}, "strict": {Strict: true}, "none": {},
	} {
		if _, err := sequence.Create(t.Context(), s, name, o); err != nil {
			t.Fatal(err)
		}
		if name == "none" {
			continue
		}
		series, err := sequence.Open(t.Context(), s, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer series.Close()
		if _, err := series.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var rows string
	if err := db.QueryRow(`SELECT string_agg(concat_ws(' ', series, granted, max, increment, step, strict, rate, granted_by <> '',
		abs(extract(epoch FROM granted_at - written)) < 60), ';' ORDER BY series) FROM firn_segments`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if want := "even 100 1000 2 50 f 0.8333333333333334 t t;none 0 9223372036854775807 1 100 f t;strict 1 9223372036854775807 1 100 t 0.016666666666666666 t t"; rows != want {
		t.Errorf("%s, not %s", rows, want)
	}
	if _, err := document.Create(t.Context(), s, "invoice", &document.Options{Pattern: "INV-{yyyy}-{6}", Zone: "UTC"}); err != nil {
		t.Fatal(err)
	}
	invoices, err := document.Open(t.Context(), s, "invoice", &document.Options{Pattern: "INV-{yyyy}-{6}", Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	number, err := invoices.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var row string
	if err := db.QueryRow(`SELECT concat_ws(' ', series, period, count) FROM firn_serials`).Scan(&row); err != nil {
		t.Fatal(err)
	}
	if want := "invoice " + number.Period + " 1"; row != want {
		t.Errorf("%s, not %s", row, want)
	}
}
