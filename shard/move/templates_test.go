package move

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/shard/topology"
)

// A template is a cluster on the shared servers that each test copies: a new one takes two seconds of processor time.
type template struct {
	source, target *testserver.Server
	shards         int64
	once           sync.Once
	made           bool
}

var templates sync.Map // of *template, by the number of shards

// database is the one of a server of the cluster.
func (c *template) database(server string) string {
	return fmt.Sprintf("move_%s_of_%d", server, c.shards)
}

// clusterIn makes such a cluster, unless a test has made it before.
func clusterIn(t *testing.T, source, target *testserver.Server, shards int64) *template {
	t.Helper()
	one, _ := templates.LoadOrStore(shards, &template{source: source, target: target, shards: shards})
	c := one.(*template)
	c.once.Do(func() {
		cluster(t, c.server(t, source, "a"), c.server(t, target, "b"), shards)
		c.made = true
	})
	if !c.made {
		t.Fatal("another test could not make the cluster")
	}
	return c
}

// server makes a database in which no session is left: one that has any cannot be copied.
func (c *template) server(t *testing.T, server *testserver.Server, name string) *site {
	t.Helper()
	if err := testdb.Make(t.Context(), server.URL(), c.database(name)); err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(testdb.URL(server.URL(), c.database(name)))
	if err != nil {
		t.Fatal(err)
	}
	return &site{Server: topology.Server{Name: name, Config: config}}
}

// copyCluster makes a cluster of its own of the copies: nothing but its name tells it from one that is new.
func copyCluster(t *testing.T, c *template) (a, b *site) {
	t.Helper()
	number := sites.Add(1)
	a = newSite(t, c.source, "a", number, "TEMPLATE "+c.database("a"))
	b = newSite(t, c.target, "b", number, "TEMPLATE "+c.database("b"))
	for _, s := range []*site{a, b} {
		s.must(t, fmt.Sprintf(`SELECT firn.take_incarnation(); UPDATE firn.server SET formerly = '{}', cluster = md5('%s %d');
			UPDATE firn.shard SET database = current_database(), incarnation = firn.incarnation()`, c.source.URL(), number))
	}
	return a, b
}

// TestCopyCluster: what tests copy is as it is when it is new.
func TestCopyCluster(t *testing.T) {
	t.Parallel()
	a, b := pair(t, 2)
	x, y := pairOn(t, testserver.Shared(t, sourceServer), testserver.Shared(t, targetServer), 2)
	text := func(a, b *site) string {
		all := everything(t, a, b)
		for _, s := range []*site{a, b} {
			all += "\n" + s.one(t, `SELECT format(E'%s\n%s', (SELECT to_jsonb(v) - '{cluster,incarnation,database,relation,system}'::text[] || jsonb_build_object('taken', firn.incarnation() IS NOT NULL) FROM firn.server AS v),
				(SELECT string_agg((to_jsonb(x) - '{incarnation,database,relation,system}'::text[] || jsonb_build_object('here', firn.is_here(x)))::text, E'\n' ORDER BY shard) FROM firn.shard AS x))`)
		}
		return all
	}
	if different := difference(text(x, y), text(a, b)); different != "" {
		t.Errorf("a copied cluster differs from a new one:\n%s", different)
	}
	if id := a.one(t, "SELECT insta1.next_id()::text"); strings.HasPrefix(id, "-") {
		t.Errorf("id %s", id)
	}
}
