package remedy

import (
	"strings"

	"github.com/firn-id/firn/store"
)

// OfLater is what to do about a record of a later firn.
const OfLater = "type this with the firn that wrote the record, or a later one; to see which run: firn version --store"

// Later reports whether a later firn wrote a record that this one cannot read.
func Later(e *store.FormatError) bool { return strings.Contains(e.Reason, "written by a later firn") }

// Damaged is what to do about a record that this firn cannot read. One that is put back alone has lost
// what was granted since, like a store that is restored: only a recovery makes it safe.
func Damaged(e *store.FormatError, url string) []string {
	if Later(e) {
		return []string{OfLater}
	}
	return []string{
		"if there is a backup: stop all processes that use the store, put the record " + e.Key + " back from it, then, before any process starts: " + Recover(url),
		"only if there is no backup: stop all processes that use the store, delete the record " + e.Key + ", then: " + Recover(url) +
			"; the N that it wants is then above all that any of them has given out. A sequence or document that is missing then, create above its last number: firn series create NAME --kind sequence --first N, or --pattern PATTERN --after TEXT",
	}
}
