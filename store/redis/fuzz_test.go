package redis

import (
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

// Whatever a field has in it, it is a record with all of it, or an error that names
// the key.
func FuzzDecode(f *testing.F) {
	f.Add(string(store.NewVersion()) + " 1763769600000000\n{}")
	f.Add("v 9223372036854775807\n")
	f.Add("v x\n")
	f.Add("\n")
	f.Fuzz(func(t *testing.T, field string) {
		r, err := decode("the/key", field)
		if err != nil {
			if r.Version != "" || r.Value != nil {
				t.Fatalf("%q: %+v beside %v", field, r, err)
			}
			return
		}
		head := len(field) - len(r.Value)
		if r.Key != "the/key" || string(r.Value) != field[head:] || field[:len(r.Version)] != string(r.Version) {
			t.Fatalf("%q is read as %+v", field, r)
		}
		if us, err := instant(field[len(r.Version)+1 : head-1]); err != nil || !us.Equal(r.Written) || us.Location() != time.UTC {
			t.Fatalf("%q: written %s, not %s, %v", field, r.Written, us, err)
		}
	})
}

// Whatever a server says of itself, there is a reason in words.
func FuzzInfo(f *testing.F) {
	f.Add("role:master\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n", "-1", "everysec")
	f.Add("role:slave\nmaster_host:x\n", "5", "")
	f.Fuzz(func(t *testing.T, text, ttl, fsync string) {
		in := parseInfo(text)
		in.ttl, in.fsync = ttl, fsync
		if in.fault() == nil && in.why() == "" {
			t.Fatalf("%q: nothing is said", text)
		}
		for name := range in.values {
			if len(name) > len(text) {
				t.Fatal(name)
			}
		}
	})
}
