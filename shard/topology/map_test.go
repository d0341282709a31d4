package topology_test

import (
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard/topology"
)

func viewOf(t testing.TB, name string, rows ...topology.Row) *topology.View {
	t.Helper()
	keys, err := topology.ParseKeys(topology.Hash, 4)
	if err != nil {
		t.Fatal(err)
	}
	return &topology.View{Cluster: "c", Server: name, Layout: firn.MustLayout("instagram"), Keys: keys, Schemas: "insta%d", Servers: []string{"a", "b"}, Shards: rows}
}

// TestNewMap: where a shard is, by what two servers say of it.
func TestNewMap(t *testing.T) {
	row := func(state topology.State, term int64, movedTo string) *topology.Row {
		return &topology.Row{Shard: 2, Schema: "insta2", State: state, Term: term, MovedTo: movedTo, Here: true}
	}
	copied := row(topology.StateOpen, 9, "")
	copied.Here = false
	for _, tt := range []struct {
		name string
		a, b *topology.Row
		want topology.Route
	}{
		{"open on one", row(topology.StateOpen, 2, ""), nil, topology.Route{Server: "a", State: topology.StateOpen, Term: 2}},
		{"moved", row(topology.StateMoved, 3, "b"), row(topology.StateOpen, 4, ""), topology.Route{Server: "b", State: topology.StateOpen, Term: 4}},
		{"moved to one that has not answered", row(topology.StateMoved, 3, "b"), nil, topology.Route{Server: "b", State: topology.StateClosed, Term: 3, Why: "a says it has moved to b"}},
		{"moved, not opened yet", row(topology.StateMoved, 3, "b"), row(topology.StateClosed, 3, ""), topology.Route{Server: "b", State: topology.StateClosed, Term: 3, Why: "a says it has moved to b"}},
		{"moved on, and put back to what it was before", row(topology.StateMoved, 5, "c"), row(topology.StateOpen, 2, ""), topology.Route{Server: "c", State: topology.StateClosed, Term: 5, Why: "a says it has moved to c, at term 5; b has it open still, at term 2"}},
		{"moved here, and put back to what it was before", row(topology.StateMoved, 5, "b"), row(topology.StateOpen, 2, ""), topology.Route{State: topology.StateClosed, Term: 5, Why: "a says it has moved to b, at term 5; b has it open still, at term 2"}},
		{"claimed, not moved yet", row(topology.StateOpen, 3, ""), row(topology.StateClosed, 4, ""), topology.Route{Server: "a", State: topology.StateOpen, Term: 3}},
		{"moved, and its old server promoted", copied, row(topology.StateOpen, 4, ""), topology.Route{Server: "b", State: topology.StateOpen, Term: 4}},
		{"closed", row(topology.StateClosed, 3, ""), nil, topology.Route{Server: "a", State: topology.StateClosed, Term: 3, Why: "it is closed on a"}},
		{"a copy", copied, nil, topology.Route{Server: "a", State: topology.StateClosed, Term: 9, Why: "a is a copy, or was promoted or restored"}},
		{"a copy beside the original", copied, row(topology.StateOpen, 2, ""), topology.Route{Server: "b", State: topology.StateOpen, Term: 2}},
		{"open on both", row(topology.StateOpen, 3, ""), row(topology.StateOpen, 2, ""), topology.Route{State: topology.StateClosed, Why: "it is open on a and b"}},
	} {
		views := map[string]*topology.View{"a": viewOf(t, "a"), "b": viewOf(t, "b")}
		for name, r := range map[string]*topology.Row{"a": tt.a, "b": tt.b} {
			if r != nil {
				views[name].Shards = []topology.Row{*r}
			}
		}
		m, err := topology.NewMap(views)
		if err != nil {
			t.Fatal(err)
		}
		tt.want.Shard, tt.want.Schema = 2, "insta2"
		if got, ok := m.Route(2); !ok || got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		if r, ok := m.Route(1); ok {
			t.Errorf("%s: a route of a shard that nobody knows: %+v", tt.name, r)
		}
	}
}

// TestNewMapRefuses: servers that are not one cluster.
func TestNewMapRefuses(t *testing.T) {
	for want, spoil := range map[string]func(*topology.View){
		"calls itself c":                                func(v *topology.View) { v.Server = "c" },
		"in no cluster":                                 func(v *topology.View) { v.Cluster = "" },
		"of different clusters":                         func(v *topology.View) { v.Cluster = "other" },
		"have different layouts":                        func(v *topology.View) { v.Layout = firn.MustLayout("twitter") },
		"call their schemas":                            func(v *topology.View) { v.Schemas = "x%d" },
		"different key schemes, hash of 4 and mod of 4": func(v *topology.View) { v.Keys, _ = topology.ParseKeys(topology.Mod, 4) },
	} {
		views := map[string]*topology.View{"a": viewOf(t, "a"), "b": viewOf(t, "b")}
		spoil(views["b"])
		if _, err := topology.NewMap(views); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := topology.NewMap(nil); err == nil {
		t.Error("a map of nothing")
	}
}

// TestMapKnowsServers: those that one names, and another, which was told later, too.
func TestMapKnowsServers(t *testing.T) {
	views := map[string]*topology.View{"a": viewOf(t, "a"), "c": viewOf(t, "c")}
	views["c"].Servers = []string{"a", "b", "c"}
	m, err := topology.NewMap(views)
	if err != nil || strings.Join(m.Servers, " ") != "a b c" {
		t.Errorf("%v, %v", m, err)
	}
}
