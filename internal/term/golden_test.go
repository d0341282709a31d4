package term

import (
	"testing"
	"time"

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

// TestGolden reads records of pools, workers and stores as released versions have written them.
func TestGolden(t *testing.T) {
	golden.Records(t, "testdata/0.1.0/records.txt", []golden.Entry{
		goldenEntry(KeyPool("founded"), Pool{V: 1, ID: "00112233445566778899aabbccddeeff", Layout: "time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z", Reserved: "0-1023"}),
		goldenEntry(KeyPool("web"), Pool{V: 1, ID: "00112233445566778899aabbccddeeff", Layout: "time:41@1ms,worker:10,seq:12;epoch=2025-01-01T00:00:00Z", Workers: "0-1023"}),
		goldenEntry(KeyPool("all"), Pool{
			V: 1, ID: "00112233445566778899aabbccddeeff", Layout: "time:41@1ms,datacenter:5,worker:5,seq:12;epoch=2010-11-04T01:42:54.657Z",
			Workers: "0-255", Reserved: "0-511", Had: "0-1023", Past: 60_000_000_001, Floor: 60_000_000_002, Ahead: "web worker 7", Outage: 180_000, Limit: 240_000,
			Lossy: "host:1 at 2026-11-28T12:00:00Z: not durable", Store: "fedcba98", MayRepeat: "old older",
		}),
		goldenEntry(KeyWorker("web", 7), Record{V: 1, Term: 18446744073709551615, Owner: "ffeeddccbbaa99887766554433221100", Name: "host:4711", Build: "v0.1.0", Horizon: 60_000_000_003, TTL: 12_000}),
		goldenEntry(KeyWorker("web", 8), Record{V: 1, Term: 2, Name: "host:4712"}),
		goldenEntry(keyFresh("web"), hint{V: 1, Next: 9}),
		goldenEntry(KeyStore, Store{V: 1, Floor: time.Date(2026, 11, 28, 12, 0, 0, 123456789, time.UTC)}),
	})
}
