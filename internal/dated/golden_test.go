package dated_test

import (
	"testing"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/golden"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// goldenEntry is a record of this package as the file of a version has it.
func goldenEntry[T record.Value](key string, v T) golden.Entry {
	return golden.Entry{
		Key: key, Want: v, Text: record.Encode(v),
		Read: func(value []byte) (any, error) {
			return record.Read[T](store.Record{Key: key, Value: value, Version: "1"})
		},
	}
}

// TestGolden reads records of documents, templates and their names as released versions have written them.
func TestGolden(t *testing.T) {
	invoice, bill := dated.Place{Name: "invoice"}, dated.Place{Name: "bill:42", Template: "bill:*"}
	golden.Records(t, "testdata/0.1.0/records.txt", []golden.Entry{
		goldenEntry(invoice.Definition(), dated.Definition{V: 1, ID: "00112233445566778899aabbccddeeff", Pattern: "{YYYY}{MM}{DD}-{n:6}"}),
		goldenEntry(bill.Definition(), dated.Definition{
			V: 1, ID: "00112233445566778899aabbccddeeff", Pattern: "B{YYYY}-{n:4}", Zone: "Asia/Ho_Chi_Minh", Lossy: true, Instance: "f00d", Store: "fedcba98",
			Names: 5000, MayEqual: []string{"invoice"}, Raised: []dated.Raise{{By: 9007199254740993, Through: "20261128", Mark: 1900000000000000000}, {By: 7}},
		}),
		goldenEntry(invoice.Counter("20261128"), dated.Counter{V: 1, Count: 9007199254740993, Reached: 9007199254740995, Raised: 1900000000000000000}),
		goldenEntry(invoice.Counter(""), dated.Counter{V: 1, Count: 7}),
		goldenEntry(bill.Counter("2026"), dated.Counter{V: 1, Count: 1}),
		goldenEntry(bill.Record(), dated.NameRecord{V: 1}),
		goldenEntry(dated.KeyCount("bill:*"), dated.NameRecord{V: 1, Names: 1}),
	})
}
