package topology

import "slices"

// HadNone reports whether the server, which is one of a cluster, has never had a shard, by the views of its other
// servers: each shard is served by one of them, and none says that a shard went to that server. It is false
// where one of the other servers has no view, or is a standby, whose word may be old.
func (s Server) HadNone(others []*View) bool {
	views := make(map[string]*View)
	for _, v := range others {
		if v == nil || v.Cluster == "" || v.Server == s.Name {
			continue
		}
		if v.Standby || slices.ContainsFunc(v.Shards, func(row Row) bool { return row.MovedTo == s.Name }) {
			return false
		}
		views[v.Server] = v
	}
	m, err := NewMap(views)
	if err != nil || slices.ContainsFunc(m.Missing, func(missing string) bool { return missing != s.Name }) {
		return false
	}
	for n := range m.Keys.Shards() {
		if r, ok := m.Route(n); !ok || r.State != StateOpen {
			return false
		}
	}
	return true
}
