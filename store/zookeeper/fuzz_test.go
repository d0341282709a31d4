package zookeeper

import (
	"errors"
	"testing"

	"github.com/firn-id/firn/store"
)

// Whatever a node has in it, it is a record which is written as it was read, or an
// error that says whose it is not.
func FuzzDecode(f *testing.F) {
	f.Add("key", []byte(string(store.NewVersion())+"\n{}"))
	f.Add("a:b%2F", []byte("\n"))
	f.Fuzz(func(t *testing.T, key string, data []byte) {
		r, err := decode(key, data)
		if err != nil {
			if !errors.Is(err, errForeign) || r.Version != "" {
				t.Fatalf("%q: %+v, %v", data, r, err)
			}
			return
		}
		if string(encode(r)) != string(data) || r.Key != key {
			t.Fatalf("%q is read as %+v", data, r)
		}
	})
}

// A node's name is that of one key, and a key has one name.
func FuzzKeyOf(f *testing.F) {
	for _, s := range []string{"pool:main", "a%3Ab", "a%2525", "%", "a/b", "", "a%41"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if key, ok := keyOf(name); ok && (nodeName(key) != name || store.CheckKey(key) != nil) {
			t.Fatalf("%q is of %q, whose name is %q", name, key, nodeName(key))
		}
		if store.CheckKey(name) == nil { // as a key
			if key, ok := keyOf(nodeName(name)); !ok || key != name {
				t.Fatalf("key %q has the node %q, which is of %q", name, nodeName(name), key)
			}
		}
	})
}
