package document

import (
	"errors"
	"reflect"
	"testing"

	"github.com/firn-id/firn/internal/dated"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// Whatever a store has under the keys of a series, it is a definition and a counter
// which are written as they were read, and the restorations of the one never lower
// the other; or an error that names the key.
func FuzzRecords(f *testing.F) {
	d := record.Encode(dated.Definition{V: record.Format, ID: "a", Pattern: "INV-{6}", Zone: "UTC", Raised: []dated.Raise{{By: 100, Through: "2026-11-22"}, {By: 5, Through: ""}}})
	for _, c := range []dated.Counter{{V: record.Format, Count: 42}, {V: record.Format, Count: 9, Reached: 70, Raised: 1}, {V: record.Format, Count: 1<<63 - 1}} {
		f.Add(d, record.Encode(c), "2026-11-21")
	}
	f.Add([]byte(`{"v":1,"raised":[{"by":"9223372036854775807"}]}`), []byte(`{"v":1,"count":"5"}`), "")
	f.Add([]byte(`{"v":2}`), []byte(`{"v":1,"count":5}`), "")
	f.Fuzz(func(t *testing.T, def, count []byte, period string) {
		d, err := record.Read[dated.Definition](store.Record{Key: "serial/a", Value: def, Version: "v"})
		if !wellSaid(t, err) || !unchanged(t, d) {
			return
		}
		c, err := dated.ReadCounter(store.Record{Key: "serial/a/all", Value: count, Version: "v"})
		if !wellSaid(t, err) || !unchanged(t, c) {
			return
		}
		if c.Count < 0 || c.Reached < 0 || c.Raised < 0 {
			t.Fatalf("%s is read as %+v", count, c)
		}
		for _, there := range []bool{true, false} {
			if up := d.RaisedTo(c, there, period); up.Count < c.Count || up.Count > pow10(maxDigits) {
				t.Fatalf("%s: %+v becomes %+v", def, c, up)
			}
		}
	})
}

// wellSaid reports whether there is no error, and that one names the key.
func wellSaid(t *testing.T, err error) bool {
	t.Helper()
	var wrong *store.FormatError
	if err != nil && (!errors.As(err, &wrong) || wrong.Key == "" || wrong.Reason == "") {
		t.Fatal(err)
	}
	return err == nil
}

func unchanged[T record.Value](t *testing.T, v T) bool {
	t.Helper()
	again, err := record.Read[T](store.Record{Key: "k", Value: record.Encode(v), Version: "v"})
	if err != nil || !reflect.DeepEqual(again, v) && len(record.Encode(v)) != len(record.Encode(again)) {
		t.Fatalf("%+v is written and read as %+v, %v", v, again, err)
	}
	return true
}
