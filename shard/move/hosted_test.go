package move

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/shard/topology"
)

// hostedPair is pair as hosted servers are used: by a role that is no superuser, owns its databases,
// and has the rights that the administrator's role has there. Statements of a site are this role's
// too.
func hostedPair(t *testing.T, shards int64, settings ...string) (a, b *site) {
	t.Helper()
	testserver.FromPostgres(t, 16) // before that only a superuser may subscribe
	start := func(start func(testing.TB, ...string) *testserver.Server, name string) *site {
		server := start(t, append([]string{"wal_level=logical", "fsync=off", "wal_retrieve_retry_interval=100ms"}, settings...)...)
		c := dial(t, testdb.Hosted(t, server))
		return &site{topology.Server{Name: name, Config: c.Config()}, c}
	}
	a, b = start(testserver.Postgres, "a"), start(testserver.PostgresTarget, "b")
	cluster(t, a, b, shards)
	return a, b
}

// TestHosted moves a shard under writers as a role that is no superuser.
func TestHosted(t *testing.T) {
	t.Parallel()
	a, b := hostedPair(t, 2)
	for n := range 2 {
		a.must(t, fmt.Sprintf(shop, n))
	}
	mustEnd(t, underWriters(t, a, b).Finish, 1)
	nothingLeft(t, a, b)
}

// TestHostedAutovacuum: autovacuum is at work on a table of the shard, on either server, and gives way
// also to a role that may not set deadlock_timeout.
func TestHostedAutovacuum(t *testing.T) {
	t.Parallel()
	besideAutovacuum(t, "1s")
}

// TestAutovacuumSlow: the same where autovacuum gives way only after a time that is longer than
// a mover otherwise keeps a transaction open without a word.
func TestAutovacuumSlow(t *testing.T) {
	t.Parallel()
	besideAutovacuum(t, "6s")
}

// TestAutovacuumStuck: where autovacuum does not give way in time, the plan says so, and the move says which server's
// autovacuum it is, and what to do. That done, the move continues.
func TestAutovacuumStuck(t *testing.T) {
	t.Parallel()
	a, b := hostedPair(t, 1, "autovacuum_naptime=1s", "deadlock_timeout=100s")
	a.must(t, slowlyVacuumed)
	p, err := NewPlan(t.Context(), a.Server, b.Server, []int64{0}, false, nil)
	if err != nil || len(p.Notes) != 2 || !strings.Contains(p.Notes[0].String(), "deadlock_timeout = 1m40s, which the role hosted may not shorten, and a cutover waits no longer than 30s") {
		t.Fatalf("%+v, %v", p, err)
	}
	// It begins when the tables have their triggers, for which it would be in the way too.
	begin := sync.OnceFunc(func() { vacuumed(t, a) })
	m := New(a.Server, b.Server, &Options{Lag: 2 * time.Second, LockWait: 20 * time.Second, Progress: func(p Progress) {
		if p.Phase == Cutting {
			begin()
		}
	}})
	t.Cleanup(m.Close)
	var busy *BusyError
	const do = `on a: GRANT SET ON PARAMETER deadlock_timeout TO "hosted"; or deadlock_timeout = '1s' for the server`
	if _, err := m.Move(t.Context(), []int64{0}); !errors.As(err, &busy) || !strings.Contains(busy.Error(), "an autovacuum did not give way in 30s, on a pid ") || busy.Do != do {
		t.Fatalf("%+v: %v", busy, err)
	}
	for _, s := range []*site{a, b} {
		config := s.Server.Config.Copy()
		config.User, config.Database = "t", "postgres"
		mustExec(t, dialConfig(t, config), `GRANT SET ON PARAMETER deadlock_timeout TO "hosted"`)
	}
	mustMove(t, m.Move, 0)
}

// slowlyVacuumed makes a table on which an autovacuum takes long. It begins with the first row that is changed.
const slowlyVacuumed = `CREATE TABLE insta0.users (id bigint PRIMARY KEY, v text) WITH (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1,
		autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 1000000000);
	INSERT INTO insta0.users SELECT n, repeat('x', 500) FROM generate_series(1, 20000) AS n`

// vacuumed has an autovacuum begin on that table.
func vacuumed(t *testing.T, s *site) {
	t.Helper()
	s.must(t, "UPDATE insta0.users SET v = v || 'y'")
	s.eventually(t, "SELECT count(*)::text FROM pg_locks WHERE relation = 'insta0.users'::regclass AND mode = 'ShareUpdateExclusiveLock' AND granted", "1")
}

// besideAutovacuum moves a shard there and back, where autovacuum gives way after a time.
func besideAutovacuum(t *testing.T, after string) {
	t.Helper()
	a, b := hostedPair(t, 1, "autovacuum_naptime=1s", "deadlock_timeout="+after)
	a.must(t, slowlyVacuumed)
	o := &Options{Lag: 2 * time.Second, LockWait: time.Minute, Progress: func(p Progress) { t.Log(p) }}
	m := New(a.Server, b.Server, o)
	t.Cleanup(m.Close)
	vacuumed(t, a)
	moved := mustMove(t, m.Move, 0)
	vacuumed(t, b)
	moved = append(moved, mustMove(t, m.Revert, 0)...)
	for _, one := range moved {
		t.Log(one.Pause)
	}
}

// TestHostedReplication: on RDS the role rds_replication stands for the attribute REPLICATION. This is a
// role of that name on a server of PostgreSQL's, where it gives no such right: only the plan is asked.
func TestHostedReplication(t *testing.T) {
	t.Parallel()
	a, b := hostedPair(t, 1)
	refused := func() []string {
		t.Helper()
		p, err := NewPlan(t.Context(), a.Server, b.Server, []int64{0}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, o := range p.Obstacles {
			all = append(all, o.String())
		}
		return all
	}
	for _, s := range []*site{a, b} {
		config := s.Server.Config.Copy()
		config.User, config.Database = "t", "postgres"
		mustExec(t, dialConfig(t, config), "ALTER ROLE hosted NOREPLICATION; CREATE ROLE rds_replication")
		if got := refused(); !slices.Contains(got, `server `+s.Name+`: role "hosted" may not replicate`) {
			t.Errorf("%q", got)
		}
		mustExec(t, dialConfig(t, config), "GRANT rds_replication TO hosted")
		if got := refused(); len(got) > 0 {
			t.Errorf("%q", got)
		}
	}
}
