package term

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// Whatever a store has under a key, it is a record of this format, which is written as
// it was read, or an error that names the key.
func FuzzRecords(f *testing.F) {
	for _, v := range [][]byte{
		record.Encode(Pool{V: record.Format, ID: "a", Layout: firn.Default().String(), Workers: "0-1023", Floor: 7, Outage: 300_000, Limit: 300_000, Lossy: "x"}),
		record.Encode(Record{V: record.Format, Term: 3, Owner: "o", Name: "n", Horizon: 9, TTL: 30_000}),
		record.Encode(hint{V: record.Format, Next: 7}),
		Store{Floor: time.Unix(1, 5)}.Encode(),
		[]byte(`{"v":2}`), []byte(`{"v":1,"floor":"9999-12-31T23:59:59-01:00"}`), []byte(`{"v":1,"horizon":-1}`), []byte(`{"v":1,"outage_ms":9223372036854775807}`), []byte(`{"v":1,"limit_ms":9223372036854775807}`),
	} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		rec := store.Record{Key: "the/key", Value: value, Version: "v"}
		same(t, rec, ReadPool)
		same(t, rec, ReadRecord)
		same(t, rec, ReadStore)
		same(t, rec, record.Read[hint])
		if p, err := ReadPool(rec); err == nil && (p.LongestOutage() <= 0 || p.LongestOutage() > p.OutageLimit()) {
			t.Errorf("%s: an outage budget of %s", value, p.LongestOutage())
		}
		if r, err := ReadRecord(rec); err == nil && (r.Horizon < 0 || r.TTL < 0) {
			t.Errorf("%s: %+v", value, r)
		}
	})
}

func same[T record.Value](t *testing.T, rec store.Record, read func(store.Record) (T, error)) {
	t.Helper()
	v, err := read(rec)
	if err != nil {
		var wrong *store.FormatError
		if !errors.As(err, &wrong) || wrong.Key != rec.Key || wrong.Reason == "" {
			t.Fatalf("%s: %v", rec.Value, err)
		}
		return
	}
	if v.Version() != record.Format {
		t.Fatalf("%s was read as format %d", rec.Value, v.Version())
	}
	rec.Value = record.Encode(v)
	again, err := read(rec)
	if err != nil || !reflect.DeepEqual(utc(v), utc(again)) {
		t.Fatalf("%+v is written %s, and read as %+v, %v", v, rec.Value, again, err)
	}
}

// utc is a store's record with its floor in UTC, since a time says more than an instant.
func utc(v any) any {
	if s, ok := v.(Store); ok {
		s.Floor = s.Floor.UTC()
		return s
	}
	return v
}

// Workers are a range in one spelling, within the layout.
func FuzzWorkers(f *testing.F) {
	for _, s := range []string{"0-1023", "512-1023", "1-0", "00-1", "-1-5", "0-9223372036854775807", "0-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRange(text, firn.Default())
		if err != nil {
			if !strings.Contains(err.Error(), "workers") {
				t.Error(err)
			}
			return
		}
		if r.First < 0 || r.Count() < 1 || r.Last >= firn.Default().Workers() || r.String() != text {
			t.Errorf("%q: %+v", text, r)
		}
	})
}
