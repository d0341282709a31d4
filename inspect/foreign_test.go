package inspect_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/inspect"
)

// timeless reports whether it is the name of a UUID that carries no time.
func timeless(name string) bool {
	version, ok := strings.CutPrefix(name, "uuidv")
	return ok && version != "1" && version != "6" && version != "7"
}

// What has a shape that others have too is none.
func TestForeignShapes(t *testing.T) {
	for text, want := range map[string]string{
		"b875d561-20fd-498d-8452-5d5ffa879856": "uuidv4", "B875D56120FD498D84525D5FFA879856": "uuidv4",
		"017F22E279B07CC398C4DC0C0C07398F": "uuidv7", "d41d8cd98f00b204e9800998ecf8427e": "", // an MD5
		"3jzfcijpj2z2a": "tid", "2222222222222": "", "zzzzzzzzzzzzz": "", "3jzfcijpj2z21": "",
	} {
		var r inspect.Reading
		if ok, err := inspect.Foreign(text, &r); err != nil || ok != (want != "") || r.Name != want || ok && r.Time.IsZero() != timeless(want) {
			t.Errorf("%s: %q, %v, %v", text, r.Name, ok, err)
		}
	}
}

func FuzzForeign(f *testing.F) {
	f.Add("3jzfcijpj2z2a")
	f.Add("b875d56120fd498d84525d5ffa879856")
	f.Add("C232AB00-9414-11EC-B3C8-9F6BDECED846")
	f.Add("01ARZ3NDEKTSV4RRFFQ69G5FAV")
	f.Add("507f1f77bcf86cd799439011")
	f.Fuzz(func(t *testing.T, text string) {
		var r inspect.Reading
		if ok, err := inspect.Foreign(text, &r); ok && err == nil {
			if line := r.AppendJSON(nil, []byte(text)); !bytes.Contains(line, []byte(r.Name)) || r.Time.IsZero() && !timeless(r.Name) {
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
		case "tid":
			const alphabet = "234567abcdefghijklmnopqrstuvwxyz"
			digits = digits[:11] // the last two are the clock
			for us := r.Time.UnixMicro(); len(want) < 11; us >>= 5 {
				want = alphabet[us&31:][:1] + want
			}
		default:
			if timeless(r.Name) {
				return
			}
			t.Fatalf("%q is of layout %q", text, r.Name)
		}
		if !strings.EqualFold(digits, want) {
			t.Fatalf("%q: a %s of %s, which is %s and not %s", text, r.Name, r.Time, want, digits)
		}
	})
}
