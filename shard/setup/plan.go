package setup

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/topology"
)

// A Wish is what somebody wants a cluster to be. What is left zero is as it is in a
// cluster that is there, or the default in a new one.
type Wish struct {
	Count   int64       // of shards; a new cluster needs it
	Layout  firn.Layout // [firn.Sharded()]
	Keys    string      // as [topology.ParseKeys] reads it; "hash"
	Schemas string      // "insta%d"
	Roles   []string    // that may work on all shards, made where missing; "firn_app"
}

// What a new cluster is, where nothing else is said.
const (
	DefaultKeys    = topology.Hash
	DefaultSchemas = "insta%d"
	DefaultRole    = "firn_app"
)

// A Plan says what to do to make a cluster, or to bring one up to date.
type Plan struct {
	Cluster string // its id; empty: a new one
	Layout  firn.Layout
	Keys    topology.Keys
	Schemas string
	Roles   []string
	Servers []ServerPlan
	Missing int64 // shards that are nowhere, and are not to be made
	Grown   int64 // the first shard of the ranges of keys that are added; 0: none are

	names []string // of all servers, in the order of the cluster
	code  string
}

// A ServerPlan is what is to be done on one server.
type ServerPlan struct {
	Server topology.Server
	Make   []int64 // the shards that are to be made there
	Renew  []int64 // those whose functions are to be written anew, and what is missing is to be made
	There  int     // how many are there, without those that have moved

	site    *site
	join    bool     // it is in no cluster yet
	drawers []string // roles that draw there now, besides those of the plan
}

// Steps returns how many shards Run makes or renews.
func (p *Plan) Steps() (n int64) {
	for _, s := range p.Servers {
		n += int64(len(s.Make) + len(s.Renew))
	}
	return n
}

// Made returns how many shards Run makes.
func (p *Plan) Made() (n int64) {
	for _, s := range p.Servers {
		n += int64(len(s.Make))
	}
	return n
}

// Init plans a cluster on the servers, in which shard i of n is on server i*k/n of
// the k servers in their order. In a cluster that is there already shards are made
// that are nowhere, if w.Count or the bounds of w.Keys say that they are to be there, and what is of another
// version of firn is brought up to date. Bounds above those of the cluster add ranges of keys to it.
func (s *Servers) Init(w Wish) (*Plan, error) {
	m, err := clusterOf(s.sites)
	if err != nil {
		return nil, err
	}
	if err := checkClocks(s.sites); err != nil {
		return nil, err
	}
	if err := checkVersions(s.sites); err != nil {
		return nil, err
	}
	p, err := begin(m, w)
	if err != nil {
		return nil, err
	}
	if err := p.name(s.sites, m); err != nil {
		return nil, err
	}
	if err := forgot(s.sites, m); err != nil {
		return nil, err
	}
	if err := sameOwner(s.sites, p.names); err != nil {
		return nil, err
	}
	if p.Roles, err = rolesFor(w.Roles, s.sites); err != nil {
		return nil, err
	}
	p.place(m, w.Count > 0 || strings.HasPrefix(w.Keys, topology.Range) || m == nil)
	for i := range p.Servers {
		if err := p.Servers[i].check(p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// clusterOf is the cluster that some of the servers are in, nil if none is.
func clusterOf(sites []*site) (*topology.Map, error) {
	views := map[string]*topology.View{}
	for _, t := range sites {
		if t.view != nil && t.view.Cluster != "" {
			views[t.server.Name] = t.view
		}
	}
	if len(views) == 0 {
		return nil, nil
	}
	if err := check.RefuseTwins(views); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(views)) {
		if slices.ContainsFunc(views[name].Shards, func(row topology.Row) bool { return row.State == topology.StateOpen && !row.Here }) {
			return nil, &CopyError{name}
		}
	}
	return topology.NewMap(views)
}

// begin is the plan of a new cluster, or of the one that is there.
func begin(m *topology.Map, w Wish) (*Plan, error) {
	p := &Plan{Layout: w.Layout, Schemas: w.Schemas}
	if m != nil {
		p.Cluster, p.Layout, p.Keys, p.Schemas = m.Cluster, m.Layout, m.Keys, m.Schemas
		if k, err := topology.ParseKeys(w.Keys, w.Count); err == nil && k.Extends(m.Keys) {
			if k.Shards() > m.Layout.Shards() {
				return nil, &TooManyError{k.Shards(), m.Layout}
			}
			p.Keys, p.Grown, w.Keys, w.Count = k, m.Keys.Shards(), "", 0
		}
		return p, p.finish(differs(m, w))
	}
	if !p.Layout.IsValid() {
		p.Layout = firn.Sharded()
	}
	if p.Schemas == "" {
		p.Schemas = DefaultSchemas
	}
	if w.Keys == "" {
		w.Keys = DefaultKeys
	}
	if err := checkSchemas(p.Schemas); err != nil {
		return nil, err
	}
	keys, wrong := topology.ParseKeys(w.Keys, w.Count)
	if wrong == nil {
		w.Count = keys.Shards()
	}
	if err := checkNew(p.Layout, w.Count); err != nil {
		return nil, err
	}
	if wrong != nil {
		return nil, &WishError{wrong}
	}
	p.Keys = keys
	return p, p.finish(nil)
}

// checkNew says why a new cluster cannot have a layout and so many shards, or nil. The
// layout never changes, so it has to give ids today.
func checkNew(l firn.Layout, count int64) error {
	if err := install.CheckLayout(l); err != nil {
		return &WishError{err}
	}
	if err := l.Check(time.Now()); err != nil {
		return &WishError{err}
	}
	switch {
	case count == 0:
		return ErrNoCount
	case count < 1 || count > l.Shards():
		return &TooManyError{count, l}
	}
	return nil
}

// layoutName is what a person calls a layout.
func layoutName(l firn.Layout) string {
	if name := l.Name(); name != "" {
		return name
	}
	return l.String()
}

func (p *Plan) finish(err error) error {
	if err == nil {
		p.code, err = install.Code(p.Layout)
	}
	return err
}

// differs says what of a cluster is not as it is wished, or nil.
func differs(m *topology.Map, w Wish) error {
	var all []error
	for _, d := range []DifferenceError{
		{What: "count", Is: strconv.FormatInt(m.Keys.Shards(), 10), Asked: nonZero(w.Count)},
		{What: "layout", Is: m.Layout.String(), Asked: text(w.Layout)},
		{What: "keys", Is: m.Keys.String(), Asked: w.Keys},
		{What: "schema", Is: m.Schemas, Asked: w.Schemas},
	} {
		if d.Asked != "" && d.Asked != d.Is {
			all = append(all, &d)
		}
	}
	return errors.Join(all...)
}

func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func text(l firn.Layout) string {
	if !l.IsValid() {
		return ""
	}
	return l.String()
}

// checkSchemas says what is wrong with a pattern of schemas, or nil.
func checkSchemas(pattern string) error {
	before, after, ok := strings.Cut(pattern, "%d")
	switch {
	case !ok || strings.Contains(before+after, "%"):
		return wrong("shard: schema %q: it has %%d once, where the number of the shard stands", pattern)
	case len(pattern) > 40:
		return wrong("shard: schema %q is longer than 40 bytes", pattern)
	case strings.HasPrefix(pattern, "pg_"):
		return wrong("shard: schema %q: names that begin with pg_ are PostgreSQL's", pattern)
	case strings.ContainsRune(pattern, 0):
		return wrong("shard: schema %q has a zero byte", pattern)
	}
	return nil
}

// schema is what the schema of a shard is called.
func (p *Plan) schema(n int64) string {
	return strings.Replace(p.Schemas, "%d", strconv.FormatInt(n, 10), 1)
}

// name finds the servers of the plan: all that the cluster has, and no other.
func (p *Plan) name(sites []*site, m *topology.Map) error {
	for _, t := range sites {
		p.names = append(p.names, t.server.Name)
	}
	if m != nil {
		given := p.names
		for _, name := range m.Servers {
			if !slices.Contains(given, name) {
				return &UnnamedError{name}
			}
		}
		for _, name := range given {
			if !slices.Contains(m.Servers, name) {
				return &StrangerError{name}
			}
		}
		p.names = m.Servers
	}
	for _, name := range p.names {
		i := slices.IndexFunc(sites, func(t *site) bool { return t.server.Name == name })
		one := ServerPlan{Server: sites[i].server, site: sites[i]}
		one.join = one.site.view == nil || one.site.view.Cluster == ""
		p.Servers = append(p.Servers, one)
	}
	return nil
}

// forgot says which server knows nothing of its cluster, though it must: all servers
// are made ones of the cluster before the first shard is made.
func forgot(sites []*site, m *topology.Map) error {
	if m == nil || len(m.Routes) == 0 {
		return nil
	}
	for _, t := range sites {
		if t.view == nil || t.view.Cluster == "" {
			return &ForgotError{t.server.Name, t.server.HadNone(viewsOf(sites))}
		}
	}
	return nil
}

// viewsOf are what servers say, nil for those that know nothing.
func viewsOf(sites []*site) []*topology.View {
	views := make([]*topology.View, len(sites))
	for i, t := range sites {
		views[i] = t.view
	}
	return views
}

// rolesFor are the roles that are wished. Where one is missing, it can be made.
func rolesFor(wished []string, sites []*site) ([]string, error) {
	if len(wished) == 0 {
		wished = []string{DefaultRole}
	}
	for _, role := range wished {
		if role == "" || len(role) > 63 || strings.HasPrefix(role, "pg_") || role == "public" || strings.ContainsRune(role, 0) {
			return nil, wrong("shard: role %q is no name for a role", role)
		}
		for _, t := range sites {
			if !slices.Contains(t.roles, role) && !t.mayCreateRole {
				return nil, t.fault("there is no role %s, and %s may not make it: CREATE ROLE %s NOLOGIN, as somebody who may", role, t.user, identifier(role))
			}
			if err := t.mayCall(role); err != nil {
				return nil, err
			}
		}
	}
	return wished, nil
}

// place gives each shard that is nowhere a server, if more are to be made, and finds
// what else there is to do.
func (p *Plan) place(m *topology.Map, more bool) {
	count, k := p.Keys.Shards(), int64(len(p.Servers))
	for i := range p.Servers {
		s := &p.Servers[i]
		if s.site.view == nil {
			continue
		}
		for _, row := range s.site.view.Shards {
			if row.State != topology.StateMoved {
				s.There++
			}
			if s.site.stale(row, p.code) {
				s.Renew = append(s.Renew, row.Shard)
			}
		}
	}
	for n := range count {
		if m != nil {
			if _, known := m.Route(n); known {
				continue
			}
		}
		if !more {
			p.Missing++
			continue
		}
		s := &p.Servers[n*k/count]
		if !slices.Contains(s.Renew, n) { // it was made there before there was a cluster
			s.Make = append(s.Make, n)
		}
	}
}

// stale says whether functions of a shard are of another version of firn, or parts of its
// generators are gone. Where its schema is, only a backup has what it needs.
func (t *site) stale(row topology.Row, code string) bool {
	return row.State != topology.StateMoved && t.schemas[row.Schema] && (t.view.Code != code || t.broken[row.Shard])
}

// check says why a server cannot have what is planned for it, or nil.
func (s *ServerPlan) check(p *Plan) error {
	if s.join && s.site.view != nil {
		v := s.site.view
		if v.Layout != p.Layout {
			return s.site.fault("the database %s has the layout %s, not %s", s.site.database, v.Layout, p.Layout)
		}
		count, k := p.Keys.Shards(), int64(len(p.Servers))
		for _, row := range v.Shards {
			if row.Schema != p.schema(row.Shard) || row.Shard >= count || p.Servers[row.Shard*k/count].Server.Name != s.Server.Name {
				return s.site.fault("it has shard %d already, in the schema %s, which is no part of the plan", row.Shard, row.Schema)
			}
		}
	}
	for _, n := range s.Make {
		if schema := p.schema(n); s.site.schemas[schema] {
			return &SchemaError{s.Server.Name, schema}
		}
	}
	return nil
}
