package setup

import (
	"context"
	"fmt"
	"slices"

	"github.com/firn-id/firn/shard"
)

// A Removal is what is to be done to take a server out of a cluster.
type Removal struct {
	Server string
	Member bool // it is one of the cluster; else there is nothing to do

	rest    []string // names of those that stay
	leaving *site
	staying []*site
}

// Remove plans that a server which has no shards any more is no longer one of the
// cluster. All servers have to have been looked at, and that one too: what is lost is
// not removed, but replaced by its standby or its backup.
func (s *Servers) Remove(name string) (*Removal, error) {
	m, err := clusterOf(s.sites)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("shard: there is no cluster on these servers")
	}
	i := slices.IndexFunc(s.sites, func(t *site) bool { return t.server.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("shard: server %s was not looked at", name)
	}
	site := s.sites[i]
	if len(m.Missing) > 0 {
		return nil, fmt.Errorf("shard: server %s is in the cluster, and was not looked at", m.Missing[0])
	}
	for _, r := range m.Routes {
		if r.Server == name {
			return nil, site.fault("it has shard %d", r.Shard)
		}
		if r.State != shard.StateOpen {
			return nil, fmt.Errorf("shard: shard %d is served by nobody: %s", r.Shard, r.Why)
		}
	}
	r := &Removal{Server: name, Member: slices.Contains(m.Servers, name), leaving: site}
	r.rest = slices.DeleteFunc(slices.Clone(m.Servers), func(s string) bool { return s == name })
	if len(r.rest) == 0 {
		return nil, site.fault("it is the only one")
	}
	for _, t := range s.sites {
		if t != site && t.view != nil && t.view.Cluster != "" {
			r.staying = append(r.staying, t)
		}
	}
	return r, nil
}

// left is what the server that goes is told: in the same transaction it is sure that it
// has nothing, and nothing on its way.
const left = `DO $do$
DECLARE
	has integer;
BEGIN
	LOCK TABLE firn.shard, firn.move IN SHARE ROW EXCLUSIVE MODE;
	SELECT shard INTO has FROM firn.move LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'firn: the move of shard %% is not finished', has;
	END IF;
	SELECT shard INTO has FROM firn.shard WHERE state <> 'moved' LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'firn: shard %% is there', has;
	END IF;
	UPDATE firn.server SET servers = %s;
END $do$`

// Run does what is planned. The server that goes is the first to know: from then on no
// move brings a shard there.
func (r *Removal) Run(ctx context.Context) error {
	if err := exec(ctx, r.leaving.server, fmt.Sprintf(left, array(r.rest))); err != nil {
		return err
	}
	return each(r.staying, func(_ int, t *site) error {
		return exec(ctx, t.server, "UPDATE firn.server SET servers = "+array(r.rest))
	})
}
