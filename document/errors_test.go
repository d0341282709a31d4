package document_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/store/memory"
)

// TestErrorsSayWhatToDo: of a series that is missing, or has another pattern or zone, a Go program is told what to do.
// What everybody is told leaves that out.
func TestErrorsSayWhatToDo(t *testing.T) {
	const again = `if it existed, or the store was restored or lost: firn series create invoice --pattern PATTERN --after TEXT --store URL, with PATTERN that of its programs (and --zone ZONE, if it has a date) and TEXT the last one given out; only if it never existed: firn series create invoice --pattern PATTERN`
	missing := `document: the store has no series "invoice"`
	day := document.DefinitionError{Series: "invoice", HavePattern: "{yyyyMMdd}{4}", HaveZone: "UTC", WantPattern: "{yyyyMMdd}{4}", WantZone: "Asia/Ho_Chi_Minh"}
	wide, narrow, other := day, day, day
	wide.WantPattern, wide.WantZone = "{yyyyMMdd}{6}", "UTC"
	narrow.HavePattern, narrow.WantPattern, narrow.WantZone = "{yyyyMMdd}{6}", "{yyyyMMdd}{4}", "UTC"
	other.WantPattern, other.WantZone = "I'{yyyyMMdd}{4}", "UTC"
	const leave = ": leave Pattern and Zone out of the options to use the store's"
	for _, tt := range []struct {
		err        error
		reason, do string
	}{
		{&document.MissingError{Series: "invoice"}, missing, ""},
		{&document.MissingError{Series: "invoice", Names: []string{}}, missing, ": if your other programs use another store, open that one; " + again + " --store URL"},
		{&document.MissingError{Series: "invoice", Names: []string{"a"}, MayBeLost: true}, missing, ": " + again + " --new --store URL"},
		{&document.MissingError{Series: "invoice", Names: []string{"invoices"}, Nearest: "invoices"}, missing + `; did you mean "invoices"?`, " Otherwise, " + again + " --store URL"},
		{&document.MissingError{Series: "bill:7", Template: "bill:*"}, `document: the store has no series "bill:7", which would be a name of the template bill:*`, "; Open and Raise begin it"},
		{&day, `document: series "invoice" has zone UTC, not Asia/Ho_Chi_Minh`, leave + "; or, to change the series for all programs: firn series set invoice --zone Asia/Ho_Chi_Minh --store URL"},
		{&wide, `document: series "invoice" has pattern {yyyyMMdd}{4}, not {yyyyMMdd}{6}`, leave + "; or, to change the series for all programs: firn series set invoice --pattern '{yyyyMMdd}{6}' --store URL"},
		{&narrow, `document: series "invoice" has pattern {yyyyMMdd}{6}, not {yyyyMMdd}{4}`, leave + ", or give other texts a series of another name"},
		{&other, `document: series "invoice" has pattern {yyyyMMdd}{4}, not I'{yyyyMMdd}{4}`, leave + ", or give other texts a series of another name"},
	} {
		if got := tt.err.Error(); got != tt.reason+tt.do {
			t.Errorf("%s, not %s", got, tt.reason+tt.do)
		}
		if got := tt.err.(interface{ Reason() string }).Reason(); got != tt.reason {
			t.Errorf("%s, not %s", got, tt.reason)
		}
	}
	if text := (&document.MissingError{Series: "bill:*", Names: []string{}}).Error(); !strings.Contains(text, "firn series create 'bill:*' --pattern PATTERN --after TEXT --store URL, with PATTERN that of its programs (and --zone ZONE, if it has a date) and TEXT the one with the highest count that any name gave out; ") {
		t.Error(text)
	}
	_, err := document.Open(t.Context(), memory.New(), "invoice", &document.Options{Pattern: "{6}"})
	var none *document.MissingError
	if errors.As(err, &none) && !strings.Contains(err.Error(), again) {
		t.Error(err)
	}
}
