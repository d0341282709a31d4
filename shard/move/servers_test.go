package move

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// Shards move between these two; all tests of this binary share them.
func sourceServer(tb testing.TB, _ ...string) *testserver.Server {
	return moving(tb, testserver.Postgres)
}

func targetServer(tb testing.TB, _ ...string) *testserver.Server {
	return moving(tb, testserver.PostgresTarget)
}

func moving(tb testing.TB, start func(testing.TB, ...string) *testserver.Server) *testserver.Server {
	return start(tb, "wal_level=logical", "max_replication_slots=20", "max_wal_senders=20",
		"max_logical_replication_workers=20", "max_worker_processes=30", "max_prepared_transactions=4", "fsync=off",
		"wal_retrieve_retry_interval=100ms") // else a subscription may begin only seconds after another one
}

// A site is a database of a test's own, which is a server of a cluster.
type site struct {
	topology.Server
	*pgx.Conn
}

var sites atomic.Int64

// pair makes a cluster of two servers, a with all of some shards, and b with none.
func pair(t *testing.T, shards int64) (a, b *site) {
	t.Helper()
	source, target := testserver.Shared(t, sourceServer), testserver.Shared(t, targetServer)
	if source.URL() == target.URL() {
		t.Skip("a shard moves between two servers, and a variable names one")
	}
	return copyCluster(t, clusterIn(t, source, target, shards))
}

// pairOn makes such a cluster on two servers, of databases with options of CREATE DATABASE.
func pairOn(t *testing.T, source, target *testserver.Server, shards int64, options ...string) (a, b *site) {
	t.Helper()
	number := sites.Add(1)
	a, b = newSite(t, source, "a", number, options...), newSite(t, target, "b", number, options...)
	cluster(t, a, b, shards)
	return a, b
}

// cluster makes one of two servers, of which a has all shards.
func cluster(t *testing.T, a, b *site, shards int64) {
	t.Helper()
	ctx := t.Context()
	one, err := setup.Open(ctx, []topology.Server{a.Server}, true)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := one.Init(setup.Wish{Count: shards})
	if err == nil {
		err = plan.Run(ctx, new(atomic.Int64))
	}
	one.Close()
	if err != nil {
		t.Fatal(err)
	}
	two, err := setup.Open(ctx, []topology.Server{a.Server, b.Server}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	added, err := two.Add([]string{"b"}, nil)
	if err == nil {
		err = added.Run(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func newSite(t *testing.T, server *testserver.Server, name string, number int64, options ...string) *site {
	t.Helper()
	database := fmt.Sprintf("move%d", number)
	c := dial(t, testdb.New(t, server, database, options...))
	return &site{topology.Server{Name: name, Config: c.Config()}, c}
}

func dial(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func mustExec(t testing.TB, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}

func (s *site) must(t testing.TB, sql string) {
	t.Helper()
	mustExec(t, s.Conn, sql)
}

// one is the text that sql gives.
func (s *site) one(t testing.TB, sql string) (text string) {
	t.Helper()
	if err := s.QueryRow(t.Context(), sql, pgx.QueryExecModeExec).Scan(&text); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return text
}

// eventually waits until sql gives what is wanted.
func (s *site) eventually(t testing.TB, sql, want string) {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if got = s.one(t, sql); got == want {
			return
		}
	}
	t.Fatalf("%s\nis %q, not %q", sql, got, want)
}

// reached is how a server reaches another one of a test.
func (s *site) reached() string {
	return fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", s.Server.Config.Host, s.Server.Config.Port, s.Server.Config.User, s.Server.Config.Database)
}
