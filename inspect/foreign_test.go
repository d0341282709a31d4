package inspect_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/inspect"
)

func FuzzForeign(f *testing.F) {
	f.Add("C232AB00-9414-11EC-B3C8-9F6BDECED846")
	f.Add("01ARZ3NDEKTSV4RRFFQ69G5FAV")
	f.Add("507f1f77bcf86cd799439011")
	f.Fuzz(func(t *testing.T, text string) {
		var r inspect.Reading
		if ok, err := inspect.Foreign(text, &r); ok && err == nil {
			if line := r.AppendJSON(nil, []byte(text)); !bytes.Contains(line, []byte(r.Name)) || r.Time.IsZero() {
				t.Errorf("%q: %s", text, line)
			}
		}
	})
}

// FuzzForeignTimes reads foreign ids: the time that one has is the one that is
// written in it.
func FuzzForeignTimes(f *testing.F) {
	for _, s := range []string{
		"C232AB00-9414-11EC-B3C8-9F6BDECED846", "1EC9414C-232A-6B00-B3C8-9F6BDECED846", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
		"01ARZ3NDEKTSV4RRFFQ69G5FAV", "7zzzzzzzzzzzzzzzzzzzzzzzzz", "507f1f77bcf86cd799439011", "ffffffffffffffffffffffff", "FFFFFFFF-FFFF-1FFF-BFFF-FFFFFFFFFFFF",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r inspect.Reading
		if ok, err := inspect.Foreign(text, &r); !ok || err != nil {
			return
		}
		var want string
		digits := strings.ReplaceAll(text, "-", "")
		ticks := (r.Time.Unix()+12219292800)*1e7 + int64(r.Time.Nanosecond())/100
		switch r.Name {
		case "objectid":
			digits, want = digits[:8], fmt.Sprintf("%08x", r.Time.Unix())
		case "uuidv7":
			digits, want = digits[:12], fmt.Sprintf("%012x", r.Time.UnixMilli())
		case "uuidv6":
			digits, want = digits[:12]+digits[13:16], fmt.Sprintf("%015x", ticks)
		case "uuidv1":
			digits, want = digits[13:16]+digits[8:12]+digits[:8], fmt.Sprintf("%015x", ticks)
		case "ulid":
			digits = digits[:10]
			for ms := r.Time.UnixMilli(); len(want) < 10; ms >>= 5 {
				want = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[ms&31:][:1] + want
			}
		default:
			t.Fatalf("%q is of layout %q", text, r.Name)
		}
		if !strings.EqualFold(digits, want) {
			t.Fatalf("%q: a %s of %s, which is %s and not %s", text, r.Name, r.Time, want, digits)
		}
	})
}
