package shard_test

import (
	"encoding/json"
	"testing"

	"github.com/firn-id/firn/shard/topology"
)

// TestMapJSON: a map is read as it was written.
func TestMapJSON(t *testing.T) {
	all := newServers(t, "range:1,1001", 2, "a", "b")
	c := openCluster(t, all.pools(t), nil)
	text, err := json.Marshal(c.Map())
	if err != nil {
		t.Fatal(err)
	}
	m := new(topology.Map)
	if err := json.Unmarshal(text, m); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(m)
	if err != nil || string(again) != string(text) {
		t.Errorf("%v\n%s\n%s", err, text, again)
	}
	if r, ok := m.Route(1); !ok || r.Server != "b" || m.Keys.String() != "range:1,1001" {
		t.Errorf("%+v, %s", r, m.Keys)
	}
}
