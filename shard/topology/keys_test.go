package topology_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/firn-id/firn/shard/topology"
)

// A vector says which shard a key has. Without one it has none.
type vector struct {
	Scheme string   `json:"scheme"`
	Shards int64    `json:"shards"`
	Bounds []string `json:"bounds"`
	Key    string   `json:"key"`
	Shard  *int64   `json:"shard"`
}

// TestExtends: ranges are added at the end, and nothing else changes.
func TestExtends(t *testing.T) {
	is, err := topology.ParseKeys("range:1,1001", 0)
	if err != nil || is.Shards() != 2 {
		t.Fatalf("%v, %v", is, err)
	}
	for text, want := range map[string]bool{
		"range:1,1001,2001": true, "range:1,1001,1002,5000": true,
		"range:1,1001": false, "range:1": false, "range:1,1002,2001": false, "range:1,501,1001": false, "hash": false, "mod": false, "none": false,
	} {
		k, err := topology.ParseKeys(text, max(1, int64(strings.Count(text, ",")+1)))
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Extends(is); got != want || k.Extends(k) || is.Extends(k) != (text == "range:1") {
			t.Errorf("%s extends %s: %v", text, is, got)
		}
	}
	if _, err := topology.ParseKeys("hash", 0); err == nil {
		t.Error("no shards of hash")
	}
}

// TestKeyVectors: keys.json was made by another program, in another language.
func TestKeyVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		V       int      `json:"v"`
		Vectors []vector `json:"vectors"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, v := range file.Vectors {
		seen[v.Scheme]++
		scheme := v.Scheme
		if scheme == topology.Range {
			scheme += ":" + strings.Join(v.Bounds, ",")
		}
		keys, err := topology.ParseKeys(scheme, v.Shards)
		if err != nil {
			t.Fatal(err)
		}
		got, err := keys.Shard(v.Key)
		var none *topology.KeyError
		switch {
		case v.Shard == nil && !errors.As(err, &none):
			t.Errorf("%s of %d: %q is on shard %d, %v, and has none", scheme, v.Shards, v.Key, got, err)
		case v.Shard != nil && (err != nil || got != *v.Shard):
			t.Errorf("%s of %d: %q is on shard %d, %v, want %d", scheme, v.Shards, v.Key, got, err, *v.Shard)
		}
	}
	for _, scheme := range []string{topology.Hash, topology.Mod, topology.Range} {
		if seen[scheme] < 20 {
			t.Errorf("%d vectors of %s", seen[scheme], scheme)
		}
	}
}

func TestParseKeys(t *testing.T) {
	for _, text := range []string{"hash", "mod", "none", "range:1,1001,2001", "range:0,1,9223372036854775807"} {
		k, err := topology.ParseKeys(text, 3)
		if err != nil || k.String() != text || k.Shards() != 3 {
			t.Errorf("%s: %s, %v", text, k, err)
		}
	}
	for text, word := range map[string]string{
		"": "it is hash", "Hash": "it is hash", "md5": "it is hash", "hash:": "no bounds", "mod:1": "no bounds",
		"range": "missing", "range:": "not a number", "range:1,2": "2 bounds for 3", "range:1,2,3,4": "4 bounds for 3",
		"range:1,1,2": "they rise", "range:3,2,1": "they rise", "range:-1,2,3": "not a number", "range:1, 2,3": "not a number",
		"range:1,2,9223372036854775808": "not a number",
	} {
		if _, err := topology.ParseKeys(text, 3); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v, want %q", text, err, word)
		}
	}
	for _, n := range []int64{0, -1} {
		if _, err := topology.ParseKeys("hash", n); err == nil {
			t.Errorf("%d shards", n)
		}
	}
	if _, err := (topology.Keys{}).Shard("x"); err == nil {
		t.Error("the zero Keys have a shard")
	}
}

func TestMapJSONRefuses(t *testing.T) {
	for _, bad := range []string{"", "[]", "{}", `{"v":2}`, `{"v":1}`, `{"v":1,"keys":{"scheme":"hash","shards":0}}`, `{"v":1,"layout":"x"}`} {
		if err := json.Unmarshal([]byte(bad), new(topology.Map)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
