package record

import "github.com/firn-id/firn/store"

// CheckOther returns an [*store.OtherStoreError] if a record that was made in the store of the
// identity want is in the one of the identity have. Where either is empty nothing can be
// told, and it returns nil. What names the record in the error.
func CheckOther(what, have, want string) error {
	if have == "" || want == "" || have == want {
		return nil
	}
	return &store.OtherStoreError{What: what, Have: have, Want: want}
}
