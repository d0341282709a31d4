package etcd

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
)

// Whatever a key has in it, it is a record with all of it, or an error that names the
// key.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(string(store.NewVersion()) + "\n{}"))
	f.Add([]byte("\n"))
	s := &Store{name: "firn/"}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := s.decode("the/key", text)
		if err != nil {
			if r.Version != "" || !strings.Contains(err.Error(), "firn/the/key") {
				t.Fatalf("%q: %+v, %v", text, r, err)
			}
			return
		}
		if again := string(r.Version) + "\n" + string(r.Value); r.Key != "the/key" || again != string(text) || r.Version == "" {
			t.Fatalf("%q is read as %+v", text, r)
		}
	})
}
