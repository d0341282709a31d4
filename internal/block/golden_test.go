package block_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/golden"
	"github.com/firn-id/firn/store"
)

// TestGolden reads records of sequences as released versions have written them.
func TestGolden(t *testing.T) {
	entry := func(key string, r block.Record) golden.Entry {
		return golden.Entry{Key: key, Want: r, Text: r.Encode(), Read: func(value []byte) (any, error) {
			return block.Read(store.Record{Key: key, Value: value, Version: "1"})
		}}
	}
	golden.Records(t, "testdata/0.1.0/records.txt", []golden.Entry{
		entry(block.Key("orders"), block.Record{V: 1, ID: "00112233445566778899aabbccddeeff", First: 1, Max: 9223372036854775807, Writes: 1}),
		entry(block.Key("tickets"), block.Record{
			V: 1, ID: "00112233445566778899aabbccddeeff", Granted: 1016, Reached: 2016, First: 10, Max: 9007199254740993, Increment: 2, Step: 100,
			Strict: true, Lossy: true, Instance: "f00d", Store: "fedcba98", Stores: 5, Offset: 3, Pending: true, Writes: 12,
			Rate: 12.5, At: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC), By: "host:4711",
		}),
	})
}
