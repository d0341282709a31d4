package server_test

import (
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/server"
)

// An undrawn source is one that nothing is drawn from.
type undrawn struct{ firn.Source }

// Whatever text is decoded, there is an answer that agrees with the layout it names,
// or an error.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"250045206433366833", "1", "9223372036854775807", "0", "-1", " 1", "jR", "zzzzzzzzzzz", "I-2026-000012+74", "I-2026-000012+73"} {
		f.Add(s)
	}
	invoice, err := document.ParsePattern("I-{yyyy}-{6}+{mod97}")
	if err != nil {
		f.Fatal(err)
	}
	srv, err := server.New(nil,
		server.Numbers("photo", undrawn{}, &server.SeriesOptions{Layout: firn.Default()}),
		server.Numbers("short", undrawn{}, &server.SeriesOptions{Layout: firn.Default(), Form: public.Base62}),
		server.Numbers("orders", undrawn{}, nil),
		server.Texts("invoice", nil, &server.SeriesOptions{Pattern: invoice}))
	if err != nil {
		f.Fatal(err)
	}
	x, err := srv.Enter("")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := x.Decode(text)
		if (err == nil) != (len(all) > 0) {
			t.Fatalf("%q: %+v, %v", text, all, err)
		}
		for _, d := range all {
			if d.IsDocument() {
				if got := string(invoice.AppendText(nil, d.Document.Period, d.Document.Count)); got != text || d.Series != "invoice" {
					t.Fatalf("%q is %+v, which is %q", text, d, got)
				}
				continue
			}
			if d.ID < 1 {
				t.Fatalf("%q: id %d", text, d.ID)
			}
			if !d.Layout.IsValid() {
				continue
			}
			p, err := d.Layout.Decode(d.ID)
			if err != nil || !p.Time.Equal(d.Time) {
				t.Fatalf("%q: %+v, %+v, %v", text, d, p, err)
			}
			short, err := public.Base62.Parse(text)
			if plain := d.ID.String(); plain != text && (err != nil || short != d.ID) {
				t.Fatalf("%q is %s", text, plain)
			}
		}
	})
}
