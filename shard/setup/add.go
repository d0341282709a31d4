package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/firn-id/firn/shard/internal/atonce"
)

// ErrNoneInCluster says that none of the servers is in a cluster.
var ErrNoneInCluster = errors.New("shard: there is no cluster on these servers yet")

// An Addition says what to do to add servers to a cluster.
type Addition struct {
	Plan  *Plan    // of the new ones, on which no shards are made
	Again []string // those that were taken out before, or are not known to the others, and know of the cluster
	Told  []string // the servers that have to be told
	told  []*site
}

// Add plans that the named servers, which are among those looked at, become ones of
// the cluster that the others are in. They get no shards.
func (s *Servers) Add(names []string, roles []string) (*Addition, error) {
	m, err := clusterOf(s.sites)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, ErrNoneInCluster
	}
	if err := checkClocks(s.sites); err != nil {
		return nil, err
	}
	if err := checkVersions(s.sites); err != nil {
		return nil, err
	}
	all := slices.Clone(m.Servers)
	var again []string
	for _, name := range names {
		i := slices.IndexFunc(s.sites, func(t *site) bool { return t.server.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("shard: server %s was not checked", name)
		}
		if v := s.sites[i].view; v != nil && v.Cluster == "" && len(v.Shards) > 0 {
			return nil, s.sites[i].fault("it has shard %d of its own: a server that is added has none", v.Shards[0].Shard)
		}
		known := slices.Contains(all, name)
		if !known {
			all = append(all, name)
		}
		if v := s.sites[i].view; v != nil && v.Cluster != "" && (!known || s.unknownToAll(name)) {
			again = append(again, name)
		}
	}
	// Also those that are not added: what is empty at the address of one would be made that server.
	members := slices.DeleteFunc(slices.Clone(s.sites), func(t *site) bool { return !slices.Contains(m.Servers, t.server.Name) })
	if err := forgot(members, m); err != nil {
		return nil, err
	}
	if err := sameOwner(s.sites, m.Servers); err != nil {
		return nil, err
	}
	p, err := begin(m, Wish{})
	if err != nil {
		return nil, err
	}
	known := *m
	known.Servers = all
	if err := p.name(s.sites, &known); err != nil {
		return nil, err
	}
	if p.Roles, err = rolesFor(roles, s.sites); err != nil {
		return nil, err
	}
	a := p.addition()
	a.Again = again
	return a, nil
}

// unknownToAll says whether no other server of the cluster knows a server, which was taken out of the cluster.
func (s *Servers) unknownToAll(name string) bool {
	others := 0
	for _, t := range s.sites {
		if v := t.view; v != nil && v.Cluster != "" && t.server.Name != name {
			if slices.Contains(v.Servers, name) {
				return false
			}
			others++
		}
	}
	return others > 0
}

// addition parts what is done on new servers from what the others are told.
func (p *Plan) addition() *Addition {
	a := &Addition{Plan: p}
	servers := p.Servers
	p.Servers = nil
	for _, s := range servers {
		switch {
		case s.join:
			p.Servers = append(p.Servers, s)
		case !slices.Equal(s.site.view.Servers, p.names):
			a.Told = append(a.Told, s.Server.Name)
			a.told = append(a.told, s.site)
		}
	}
	return a
}

// Run does what is planned. It begins with the new servers, so that a server which the others name exists.
func (a *Addition) Run(ctx context.Context) error {
	if err := a.Plan.Run(ctx, new(atomic.Int64)); err != nil {
		return err
	}
	return atonce.Each(a.told, func(_ int, t *site) error {
		return exec(ctx, t.server, "UPDATE firn.server SET servers = "+array(a.Plan.names))
	})
}
