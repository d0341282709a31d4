package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/shard/internal/atonce"
	"github.com/firn-id/firn/shard/topology"
)

// A Removal says what to do to take a server out of a cluster.
type Removal struct {
	Server string
	Member bool // it is one of the cluster; else there is nothing to do

	rest    []string // names of those that stay
	m       *topology.Map
	leaving *site // nil: it is gone
	staying []*site
}

// Remove plans that a server which has no shards any more is no longer one of the
// cluster. All servers have to have been looked at, and that one too.
func (s *Servers) Remove(name string) (*Removal, error) {
	m, err := clusterOf(s.sites)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, ErrNoneInCluster
	}
	i := slices.IndexFunc(s.sites, func(t *site) bool { return t.server.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("shard: server %s was not checked", name)
	}
	site := s.sites[i]
	if len(m.Missing) > 0 {
		return nil, &UnnamedError{m.Missing[0]}
	}
	for _, r := range m.Routes {
		if r.State != topology.StateOpen {
			return nil, &NowhereError{r.Shard, r.Why}
		}
		if r.Server == name {
			return nil, site.fault("it has shard %d", r.Shard)
		}
	}
	return s.removal(m, name, site)
}

// RemoveGone plans that a server which is permanently gone is no longer one of the cluster.
// All others have to have been looked at: each shard has to be open on one of them.
func (s *Servers) RemoveGone(name string) (*Removal, error) {
	m, err := clusterOf(s.sites)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, ErrNoneInCluster
	}
	for _, missing := range m.Missing {
		if missing != name {
			return nil, &UnnamedError{missing}
		}
	}
	for n := range m.Keys.Shards() {
		switch r, ok := m.Route(n); {
		case !ok:
			return nil, fmt.Errorf("shard: no other server knows shard %d: it may have been on %s", n, name)
		case r.State != topology.StateOpen:
			return nil, &NowhereError{n, r.Why}
		}
	}
	return s.removal(m, name, nil)
}

func (s *Servers) removal(m *topology.Map, name string, leaving *site) (*Removal, error) {
	r := &Removal{Server: name, Member: slices.Contains(m.Servers, name), leaving: leaving, m: m}
	r.rest = slices.DeleteFunc(slices.Clone(m.Servers), func(s string) bool { return s == name })
	if len(r.rest) == 0 {
		return nil, &topology.ServerError{Server: name, Err: errors.New("it is the only one")}
	}
	for _, t := range s.sites {
		if t != leaving && t.view != nil && t.view.Cluster != "" {
			r.staying = append(r.staying, t)
		}
	}
	return r, nil
}

// left is what the server that goes is told: in the same transaction it is sure that it
// has nothing, and nothing on its way, by what there is once it has the locks.
const left = `BEGIN ISOLATION LEVEL READ COMMITTED;
DO $do$
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
END $do$;
COMMIT`

// Run does what is planned. The server that leaves is the first to know: from then on no move brings a shard
// there.
func (r *Removal) Run(ctx context.Context) error {
	if r.leaving != nil {
		if err := exec(ctx, r.leaving.server, fmt.Sprintf(left, array(r.rest))); err != nil {
			return err
		}
	}
	return atonce.Each(r.staying, func(_ int, t *site) error {
		return exec(ctx, t.server, "UPDATE firn.server SET servers = "+array(r.rest)+", peers = peers - "+literal(r.Server)+r.forward(t))
	})
}

// forward is the SQL by which a server that said of shards that they moved to the server which leaves says where they
// are by now: programs go there. Of a shard in a move it is left to the move.
func (r *Removal) forward(t *site) string {
	var b strings.Builder
	for _, row := range t.view.Shards {
		at, _ := r.m.Route(row.Shard)
		if row.State == topology.StateMoved && row.MovedTo == r.Server && at.Server != "" && at.Server != t.server.Name {
			fmt.Fprintf(&b, ";\nUPDATE firn.shard AS s SET moved_to = %s WHERE s.shard = %d AND s.state = 'moved' AND s.moved_to = %s AND s.term = %d AND NOT EXISTS (SELECT FROM firn.move AS m WHERE m.shard = s.shard)",
				literal(at.Server), row.Shard, literal(r.Server), row.Term)
		}
	}
	return b.String()
}
