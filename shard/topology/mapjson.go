package topology

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
)

// mapVersion is the version of a map as JSON. A reader refuses what it does not know.
const mapVersion = 1

// mapJSON is a map as JSON has it. What it means is in docs/reference/shards-map.md.
type mapJSON struct {
	V       int         `json:"v"`
	Cluster string      `json:"cluster"`
	Layout  firn.Layout `json:"layout"`
	Shard   fieldJSON   `json:"shard"`
	Keys    keysJSON    `json:"keys"`
	Schemas string      `json:"schemas"`
	Servers []string    `json:"servers"`
	Missing []string    `json:"missing,omitempty"`
	Shards  []routeJSON `json:"shards"`
}

// fieldJSON is where in an id its shard is: id >> shift, the lowest bits of that.
type fieldJSON struct {
	Shift int `json:"shift"`
	Bits  int `json:"bits"`
}

// keysJSON are the key scheme. Bounds are texts: not every language has such numbers.
type keysJSON struct {
	Scheme string   `json:"scheme"`
	Shards int64    `json:"shards"`
	Bounds []string `json:"bounds,omitempty"`
}

type routeJSON struct {
	Shard  int64  `json:"shard"`
	Schema string `json:"schema"`
	Server string `json:"server,omitempty"`
	State  State  `json:"state"`
	Term   int64  `json:"term"`
	Why    string `json:"why,omitempty"`
}

// MarshalJSON writes the map for routers in other languages.
func (m *Map) MarshalJSON() ([]byte, error) {
	f, _ := m.Layout.Field("shard")
	j := mapJSON{
		V: mapVersion, Cluster: m.Cluster, Layout: m.Layout, Shard: fieldJSON{f.Shift, f.Width},
		Keys: keysJSON{Scheme: m.Keys.scheme, Shards: m.Keys.shards}, Schemas: m.Schemas,
		Servers: append([]string{}, m.Servers...), Missing: m.Missing, Shards: make([]routeJSON, len(m.Routes)),
	}
	for _, b := range m.Keys.bounds {
		j.Keys.Bounds = append(j.Keys.Bounds, strconv.FormatInt(b, 10))
	}
	for i, r := range m.Routes {
		j.Shards[i] = routeJSON(r)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (m *Map) UnmarshalJSON(text []byte) error {
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return fmt.Errorf("shard: a map: %w", err)
	}
	if version.V != mapVersion {
		return fmt.Errorf("shard: a map of version %d: this firn knows %d", version.V, mapVersion)
	}
	var j mapJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("shard: a map: %w", err)
	}
	scheme := j.Keys.Scheme
	if scheme == Range {
		scheme += ":" + strings.Join(j.Keys.Bounds, ",")
	}
	keys, err := ParseKeys(scheme, j.Keys.Shards)
	if err != nil {
		return err
	}
	if _, ok := j.Layout.Field("shard"); !ok {
		return fmt.Errorf("shard: a map: its layout is missing, or has no shard")
	}
	*m = Map{
		Cluster: j.Cluster, Layout: j.Layout, Keys: keys, Schemas: j.Schemas,
		Servers: j.Servers, Missing: j.Missing, Routes: make([]Route, len(j.Shards)),
	}
	for i, r := range j.Shards {
		m.Routes[i] = Route(r)
	}
	slices.SortFunc(m.Routes, func(a, b Route) int { return cmp.Compare(a.Shard, b.Shard) })
	for i, r := range m.Routes {
		switch {
		case r.Shard < 0 || r.Shard >= m.Layout.Shards():
			return fmt.Errorf("shard: a map: shard %d: the layout has 0 to %d", r.Shard, m.Layout.Shards()-1)
		case i > 0 && r.Shard == m.Routes[i-1].Shard:
			return fmt.Errorf("shard: a map: shard %d is there twice", r.Shard)
		}
	}
	return nil
}
