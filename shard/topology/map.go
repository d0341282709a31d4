package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn"
)

// A Map says which server each shard is on, by what the servers said. It is old as soon as a shard moves:
// the servers then refuse a transaction that follows it.
type Map struct {
	Cluster string
	Layout  firn.Layout
	Keys    Keys
	Schemas string
	Servers []string // the names of all servers, as they were added
	Missing []string // those of them whose word is not in it
	Routes  []Route  // by number; only of shards that some server knows
}

// A Route says where one shard is. Where Server is empty, no server has it.
type Route struct {
	Shard  int64
	Schema string
	Server string
	State  State // StateOpen, or StateClosed where nobody serves it now
	Term   int64
	Why    string // what is wrong with it, for people; empty: nothing
}

// NewMap makes the map from views of servers, by the servers' names. Leave out servers that did not answer:
// routes of their shards are then missing, or lead to servers that the shards moved away from. It fails
// where servers belong to different clusters.
func NewMap(views map[string]*View) (*Map, error) {
	names := make([]string, 0, len(views))
	for name := range views {
		names = append(names, name)
	}
	slices.Sort(names)
	var m *Map
	claims := make(map[int64][]claim)
	for _, name := range names {
		v := views[name]
		if err := v.isServer(name); err != nil {
			return nil, err
		}
		if m == nil {
			m = &Map{Cluster: v.Cluster, Layout: v.Layout, Keys: v.Keys, Schemas: v.Schemas}
		} else if err := m.agrees(names[0], name, v); err != nil {
			return nil, err
		} else if v.Keys.Extends(m.Keys) { // ranges were added, and the other servers are not told yet, or were restored
			m.Keys = v.Keys
		}
		// One that was broken off may know fewer.
		for _, s := range v.Servers {
			if !slices.Contains(m.Servers, s) {
				m.Servers = append(m.Servers, s)
			}
		}
		for _, row := range v.Shards {
			claims[row.Shard] = append(claims[row.Shard], claim{name, row})
		}
	}
	if m == nil {
		return nil, fmt.Errorf("shard: no server to make a map of")
	}
	for _, s := range m.Servers {
		if views[s] == nil {
			m.Missing = append(m.Missing, s)
		}
	}
	for _, c := range claims {
		m.Routes = append(m.Routes, routeOf(c))
	}
	slices.SortFunc(m.Routes, func(a, b Route) int { return cmp.Compare(a.Shard, b.Shard) })
	return m, nil
}

// isServer says why a server is not the one of a name.
func (v *View) isServer(name string) error {
	switch {
	case v.Cluster == "":
		return fmt.Errorf("shard: server %s is in no cluster", name)
	case v.Server != name:
		return &ServerError{name, v.stray(name)}
	}
	return nil
}

// agrees says why a server is not of the map's cluster, which another one is of.
func (m *Map) agrees(other, name string, v *View) error {
	switch {
	case v.Cluster != m.Cluster:
		return fmt.Errorf("shard: servers %s and %s are of different clusters, %s and %s", other, name, m.Cluster, v.Cluster)
	case v.Schemas != m.Schemas:
		return fmt.Errorf("shard: servers %s and %s call their schemas %s and %s", other, name, m.Schemas, v.Schemas)
	case v.Layout != m.Layout:
		return fmt.Errorf("shard: servers %s and %s have different layouts, %s and %s", other, name, m.Layout, v.Layout)
	case v.Keys.Extends(m.Keys) || m.Keys.Extends(v.Keys):
	case v.Keys.shards != m.Keys.shards || v.Keys.String() != m.Keys.String():
		return fmt.Errorf("shard: servers %s and %s have different key schemes, %s of %d and %s of %d", other, name, m.Keys, m.Keys.shards, v.Keys, v.Keys.shards)
	}
	return nil
}

// A claim is what one server says of a shard.
type claim struct {
	server string
	Row
}

// routeOf is where a shard is, by all that is said of it.
func routeOf(claims []claim) Route {
	// The highest term has the last word; among equals who is open.
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.Term, a.Term), cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.server, b.server))
	})
	r := Route{Shard: claims[0].Shard, Schema: claims[0].Schema, State: StateClosed}
	var open []claim
	moved := claim{Row: Row{Term: -1}} // the last that is known to have moved
	for _, c := range claims {
		switch {
		case c.State == StateOpen && c.Here:
			open = append(open, c)
		case c.State == StateMoved && c.Term > moved.Term:
			moved = c
		}
	}
	switch {
	case len(open) > 1:
		names := make([]string, len(open))
		for i, c := range open {
			names[i] = c.server
		}
		r.Why = "it is open on " + strings.Join(names, " and ")
	case len(open) == 1 && open[0].Term >= moved.Term:
		r.Server, r.State, r.Term, r.Schema = open[0].server, StateOpen, open[0].Term, open[0].Schema
	case len(open) == 1:
		// Who opens a shard that has moved has a higher term. So this one has forgotten
		// what came after, as a disk does that is put back to what it was. It would serve:
		// nobody is to be sent there, though it be where the shard went.
		r.Term = moved.Term
		if moved.MovedTo != open[0].server {
			r.Server = moved.MovedTo
		}
		r.Why = fmt.Sprintf("%s says it has moved to %s, at term %d; %s has it open still, at term %d", moved.server, moved.MovedTo, moved.Term, open[0].server, open[0].Term)
	case claims[0].State == StateMoved:
		// Where it went has not answered, or is about to open it.
		r.Server, r.Term, r.Why = claims[0].MovedTo, claims[0].Term, claims[0].server+" says it has moved to "+claims[0].MovedTo
	default:
		c := claims[0]
		r.Server, r.Term, r.Schema, r.Why = c.server, c.Term, c.Schema, "it is closed on "+c.server
		if c.State == StateOpen {
			r.Why = c.server + " is a copy, or was promoted or restored"
		}
	}
	return r
}

// rank puts what says more first, at one term.
func (c claim) rank() int {
	switch {
	case c.State == StateOpen && c.Here:
		return 0
	case c.State == StateMoved:
		return 1
	default:
		return 2
	}
}

// Route returns where a shard is, if any server knows it.
func (m *Map) Route(shard int64) (Route, bool) {
	i, ok := slices.BinarySearchFunc(m.Routes, shard, func(r Route, n int64) int { return cmp.Compare(r.Shard, n) })
	if !ok {
		return Route{}, false
	}
	return m.Routes[i], true
}
