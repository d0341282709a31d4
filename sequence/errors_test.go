package sequence_test

import (
	"testing"

	"github.com/firn-id/firn/sequence"
)

// TestErrorsSayWhatToDo: of a series that is missing, or has another option, a Go program is told what to do. What
// everybody is told leaves that out, and so is a series that was there before: no number is known that is free.
func TestErrorsSayWhatToDo(t *testing.T) {
	const missing = `sequence: the store has no series "orders"`
	const again = "if it existed, or the store was restored or lost: firn series create orders --kind sequence --first N --store URL, with N above every number in use; only if it never existed: firn series create orders --kind sequence"
	for _, tt := range []struct {
		err        error
		reason, do string
	}{
		{&sequence.MissingError{Name: "orders"}, missing, ""},
		{&sequence.MissingError{Name: "orders", Names: []string{}}, missing, ": if your other programs use another store, open that one; " + again + " --store URL"},
		{&sequence.MissingError{Name: "orders", Names: []string{"a"}, MayBeLost: true}, missing, ": " + again + " --new --store URL"},
		{&sequence.MissingError{Name: "orders", Names: []string{"order"}, Nearest: "order"}, missing + `; did you mean "order"?`, " Otherwise, " + again + " --store URL"},
		{&sequence.MismatchError{Name: "orders", Option: "first", Have: "1", Want: "5"}, `sequence: series "orders" has first 1, not 5`, ": leave that out of the options to use the store's, or give other numbers a series of another name"},
	} {
		if got := tt.err.Error(); got != tt.reason+tt.do {
			t.Errorf("%s, not %s", got, tt.reason+tt.do)
		}
		if got := tt.err.(interface{ Reason() string }).Reason(); got != tt.reason {
			t.Errorf("%s, not %s", got, tt.reason)
		}
	}
}
