package block

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

// Whatever a store has under a key, it is a counter that grants no number twice and
// none above its max, and is written as it was read; or an error that names the key.
func FuzzRead(f *testing.F) {
	for _, r := range []Record{
		{ID: "a", First: 1, Max: 1<<63 - 1},
		{ID: "a", First: 5, Max: 100, Increment: 3, Stores: 2, Offset: 1, Strict: true, Rate: 1.5, At: time.Unix(1, 0), By: "x"},
		{ID: "a", First: 1<<63 - 1, Max: 1<<63 - 1, Increment: MaxIncrement, Stores: MaxStores, Offset: 3},
	} {
		f.Add(r.New().Encode(), int64(7))
	}
	f.Add([]byte(`{"v":1,"id":"a","granted":"0","first":"1","max":"9","writes":1,"at":"9999-12-31T23:59:59-23:59"}`), int64(9))
	f.Add([]byte(`{"v":2}`), int64(0))
	f.Fuzz(func(t *testing.T, value []byte, n int64) {
		r, err := Read(store.Record{Key: "the/key", Value: value, Version: "v"})
		if err != nil {
			var wrong *store.FormatError
			if !errors.As(err, &wrong) || wrong.Key != "the/key" || wrong.Reason == "" {
				t.Fatalf("%s: %v", value, err)
			}
			return
		}
		again, err := Read(store.Record{Key: "the/key", Value: r.Encode(), Version: "v"})
		if !again.At.Equal(r.At) {
			t.Fatalf("%s: of %s, and then of %s", value, r.At, again.At)
		}
		again.At = r.At
		if err != nil || again != r {
			t.Fatalf("%s: %+v is written and read as %+v, %v", value, r, again, err)
		}
		if r.Granted > r.Max || r.Left() < 0 || r.Stride() < 1 {
			t.Fatalf("%s: %d left, stride %d", value, r.Left(), r.Stride())
		}
		if n <= r.Max {
			up := r.Raised(n)
			if up.Granted < r.Granted || up.Granted > r.Max || n > r.Granted && n-up.Granted >= r.Stride() {
				t.Fatalf("%s: raised to %d it has granted %d", value, n, up.Granted)
			}
		}
	})
}
