package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/firn-id/firn"
)

// Whatever a file says, it is a map which is written as it was read, or an error.
func FuzzMap(f *testing.F) {
	keys, err := ParseKeys("range:1,1001", 2)
	if err != nil {
		f.Fatal(err)
	}
	instagram, err := firn.ParseLayout("instagram")
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(&Map{
		Cluster: "c", Layout: instagram, Keys: keys, Schemas: "insta%d", Servers: []string{"a", "b"}, Missing: []string{"b"},
		Routes: []Route{{Shard: 0, Schema: "insta0", Server: "a", State: StateOpen, Term: 1}, {Shard: 1, Schema: "insta1", State: StateClosed, Why: "x"}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"v":1}`))
	f.Add([]byte(`{"v":2}`))
	f.Add(bytes.Replace(text, []byte(`"shards":2`), []byte(`"shards":9223372036854775807`), 1))
	f.Fuzz(func(t *testing.T, text []byte) {
		var m Map
		if err := json.Unmarshal(text, &m); err != nil {
			return
		}
		once, err := json.Marshal(&m)
		if err != nil {
			t.Fatalf("%s is a map that is not written: %v", text, err)
		}
		var again Map
		if err := json.Unmarshal(once, &again); err != nil {
			t.Fatalf("%s is not read: %v", once, err)
		}
		twice, err := json.Marshal(&again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s is written again as %s, %v", once, twice, err)
		}
		for i := 1; i < len(m.Routes); i++ {
			if m.Routes[i].Shard <= m.Routes[i-1].Shard {
				t.Fatalf("shard %d after %d", m.Routes[i].Shard, m.Routes[i-1].Shard)
			}
		}
	})
}

// A key has one shard, of those that there are, or an error that names it. A scheme is
// written as it was read.
func FuzzKeys(f *testing.F) {
	for _, s := range []string{"hash", "mod", "none", "range:0,5,9", "range:", "range:5,5", "hash:1", "range:1,+2,3"} {
		f.Add(s, int64(3), "7")
	}
	f.Add("hash", int64(1<<63-1), "x")
	f.Fuzz(func(t *testing.T, scheme string, shards int64, key string) {
		k, err := ParseKeys(scheme, shards)
		if err != nil {
			return
		}
		if k.String() != scheme || k.Shards() != shards {
			t.Fatalf("%q for %d is %q for %d", scheme, shards, k, k.Shards())
		}
		n, err := k.Shard(key)
		var wrong *KeyError
		switch {
		case err != nil && (!errors.As(err, &wrong) || wrong.Key == "" && key != "" || n != 0):
			t.Fatalf("%q of %q: %d, %v", key, scheme, n, err)
		case err == nil && (n < 0 || n >= shards):
			t.Fatalf("%q of %q: shard %d of %d", key, scheme, n, shards)
		}
	})
}
