package term

import (
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// maxName is the length of a pool's name at most, so that every key fits.
const maxName = store.MaxKey - len("pool/") - len("/worker/") - len("9223372036854775807")

// CheckName says what is wrong with a pool's name; "" if nothing.
func CheckName(name string) string { return record.CheckName("pool", name, maxName) }
