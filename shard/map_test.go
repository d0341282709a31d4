package shard_test

import (
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard"
)

func viewOf(t testing.TB, name string, rows ...shard.Row) *shard.View {
	t.Helper()
	keys, err := shard.ParseKeys(shard.Hash, 4)
	if err != nil {
		t.Fatal(err)
	}
	return &shard.View{Cluster: "c", Server: name, Layout: firn.MustLayout("instagram"), Keys: keys, Schemas: "insta%d", Servers: []string{"a", "b"}, Shards: rows}
}

// TestNewMap: where a shard is, by what two servers say of it.
func TestNewMap(t *testing.T) {
	row := func(state shard.State, term int64, movedTo string) *shard.Row {
		return &shard.Row{Shard: 2, Schema: "insta2", State: state, Term: term, MovedTo: movedTo, Here: true}
	}
	copied := row(shard.StateOpen, 9, "")
	copied.Here = false
	for _, tt := range []struct {
		name string
		a, b *shard.Row
		want shard.Route
	}{
		{"open on one", row(shard.StateOpen, 2, ""), nil, shard.Route{Server: "a", State: shard.StateOpen, Term: 2}},
		{"moved", row(shard.StateMoved, 3, "b"), row(shard.StateOpen, 4, ""), shard.Route{Server: "b", State: shard.StateOpen, Term: 4}},
		{"moved to one that has not answered", row(shard.StateMoved, 3, "b"), nil, shard.Route{Server: "b", State: shard.StateClosed, Term: 3, Why: "a says it has moved to b"}},
		{"moved, not opened yet", row(shard.StateMoved, 3, "b"), row(shard.StateClosed, 3, ""), shard.Route{Server: "b", State: shard.StateClosed, Term: 3, Why: "a says it has moved to b"}},
		{"moved on, and put back to what it was before", row(shard.StateMoved, 5, "c"), row(shard.StateOpen, 2, ""), shard.Route{Server: "c", State: shard.StateClosed, Term: 5, Why: "a says it has moved to c, at term 5; b has it open still, at term 2"}},
		{"moved here, and put back to what it was before", row(shard.StateMoved, 5, "b"), row(shard.StateOpen, 2, ""), shard.Route{State: shard.StateClosed, Term: 5, Why: "a says it has moved to b, at term 5; b has it open still, at term 2"}},
		{"claimed, not moved yet", row(shard.StateOpen, 3, ""), row(shard.StateClosed, 4, ""), shard.Route{Server: "a", State: shard.StateOpen, Term: 3}},
		{"moved, and its old server promoted", copied, row(shard.StateOpen, 4, ""), shard.Route{Server: "b", State: shard.StateOpen, Term: 4}},
		{"closed", row(shard.StateClosed, 3, ""), nil, shard.Route{Server: "a", State: shard.StateClosed, Term: 3, Why: "it is closed on a"}},
		{"a copy", copied, nil, shard.Route{Server: "a", State: shard.StateClosed, Term: 9, Why: "a is a copy, or was promoted or restored"}},
		{"a copy beside the original", copied, row(shard.StateOpen, 2, ""), shard.Route{Server: "b", State: shard.StateOpen, Term: 2}},
		{"open on both", row(shard.StateOpen, 3, ""), row(shard.StateOpen, 2, ""), shard.Route{State: shard.StateClosed, Why: "it is open on a and b"}},
	} {
		views := map[string]*shard.View{"a": viewOf(t, "a"), "b": viewOf(t, "b")}
		for name, r := range map[string]*shard.Row{"a": tt.a, "b": tt.b} {
			if r != nil {
				views[name].Shards = []shard.Row{*r}
			}
		}
		m, err := shard.NewMap(views)
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
	for want, spoil := range map[string]func(*shard.View){
		"calls itself c":                                func(v *shard.View) { v.Server = "c" },
		"in no cluster":                                 func(v *shard.View) { v.Cluster = "" },
		"of different clusters":                         func(v *shard.View) { v.Cluster = "other" },
		"have different layouts":                        func(v *shard.View) { v.Layout = firn.MustLayout("twitter") },
		"call their schemas":                            func(v *shard.View) { v.Schemas = "x%d" },
		"different key schemes, hash of 4 and mod of 4": func(v *shard.View) { v.Keys, _ = shard.ParseKeys(shard.Mod, 4) },
	} {
		views := map[string]*shard.View{"a": viewOf(t, "a"), "b": viewOf(t, "b")}
		spoil(views["b"])
		if _, err := shard.NewMap(views); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := shard.NewMap(nil); err == nil {
		t.Error("a map of nothing")
	}
}

// TestMapKnowsServers: those that one names, and another, which was told later, too.
func TestMapKnowsServers(t *testing.T) {
	views := map[string]*shard.View{"a": viewOf(t, "a"), "c": viewOf(t, "c")}
	views["c"].Servers = []string{"a", "b", "c"}
	m, err := shard.NewMap(views)
	if err != nil || strings.Join(m.Servers, " ") != "a b c" {
		t.Errorf("%v, %v", m, err)
	}
}
