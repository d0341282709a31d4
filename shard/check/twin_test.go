package check

import (
	"errors"
	"slices"
	"testing"

	"github.com/firn-id/firn/shard/topology"
)

// TestRefuseTwins: a server is the one that others know by its name, or comes after it.
func TestRefuseTwins(t *testing.T) {
	for _, tt := range []struct {
		name        string
		incarnation string
		formerly    []string
		known       map[string]string
		refused     bool
	}{
		{"nobody knows it", "1", nil, nil, false},
		{"it is known", "2", []string{"1"}, map[string]string{"a": "2"}, false},
		{"what it was is known", "3", []string{"1", "2"}, map[string]string{"a": "1"}, false},
		{"another copy is known", "3", []string{"1"}, map[string]string{"a": "2"}, true},
		{"a copy of it is known", "1", nil, map[string]string{"a": "2"}, true},
		{"another server is known", "1", nil, map[string]string{"c": "2"}, false},
	} {
		views := map[string]*topology.View{
			"a": {Incarnation: tt.incarnation, Formerly: tt.formerly, Shards: []topology.Row{{Shard: 4, State: topology.StateOpen}, {Shard: 5, State: topology.StateMoved}, {Shard: 6, State: topology.StateClosed}}},
			"b": {Incarnation: "9", Peers: tt.known},
		}
		err := RefuseTwins(views)
		var twin *TwinError
		if errors.As(err, &twin) != tt.refused || tt.refused && (twin.Server != "a" || twin.By != "b" || !slices.Equal(twin.Shards, []int64{4, 6})) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
