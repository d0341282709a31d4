package record

import (
	"testing"
	"time"

	"github.com/firn-id/firn/internal/golden"
	"github.com/firn-id/firn/store"
)

// TestGolden reads the record of a store that may have lost something as released versions have written it.
func TestGolden(t *testing.T) {
	entry := func(l lost) golden.Entry {
		return golden.Entry{Key: KeyLost, Want: l, Text: Encode(l), Read: func(value []byte) (any, error) {
			return Read[lost](store.Record{Key: KeyLost, Value: value, Version: "1"})
		}}
	}
	golden.Records(t, "testdata/0.1.0/records.txt", []golden.Entry{
		entry(lost{V: 1}),
		entry(lost{V: 1, Recovered: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}),
	})
}
