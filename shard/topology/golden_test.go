package topology

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/golden"
)

// TestGoldenMap reads a map for routers as version 0.1.0 has written it, and writes it with the same bytes. A map of a
// newer format is refused.
func TestGoldenMap(t *testing.T) {
	const file = "testdata/0.1.0/map.json"
	keys, err := ParseKeys("range:1,1001,9007199254740993", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := Map{
		Cluster: "00112233445566778899aabbccddeeff", Layout: firn.Sharded(), Keys: keys, Schemas: "insta%d", Servers: []string{"a", "b", "c"}, Missing: []string{"c"},
		Routes: []Route{{Shard: 0, Schema: "insta0", Server: "a", State: StateOpen, Term: 1}, {Shard: 1, Schema: "insta1", Server: "b", State: StateClosed, Term: 9}, {Shard: 2, Schema: "insta2", State: StateClosed, Term: 2, Why: "two servers have it"}},
	}
	now, err := json.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	golden.Same(t, file, append(now, '\n'), "")
	var got Map
	if err := json.Unmarshal(golden.Read(t, file), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	golden.Filled(t, file, want)
	newer := strings.Replace(string(now), `"v":1`, `"v":2`, 1)
	if err := json.Unmarshal([]byte(newer), &got); err == nil || !strings.Contains(err.Error(), "a map of version 2: this firn knows 1") {
		t.Errorf("a newer map: %v", err)
	}
}
