package testserver_test

import (
	"context"
	"database/sql"
	"net"
	"slices"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/testserver"
)

func TestMain(m *testing.M) {
	testserver.Main(m, func() error { return goleak.Find() })
}

// A memory is a server that can be told something and asked for it.
type memory struct {
	name  string
	start func(testing.TB, ...string) *testserver.Server
	write func(ctx context.Context, s *testserver.Server, value string) error
	read  func(ctx context.Context, s *testserver.Server) (string, error)
}

var memories = []memory{
	{"postgres", testserver.Postgres, writeSQL("pgx", postgresDSN), readSQL("pgx", postgresDSN)},
	{"mariadb", testserver.MariaDB, writeSQL("mysql", mysqlDSN), readSQL("mysql", mysqlDSN)},
	{"redis", testserver.Redis, writeRedis, readRedis},
	{"etcd", testserver.Etcd, writeEtcd, readEtcd},
	{"zookeeper", testserver.ZooKeeper, writeZooKeeper, readZooKeeper},
}

// TestServers kills, stops and freezes a server of each kind; it has its data and
// its address when it is back. make full takes all kinds; the tests of each store kill and
// stop its server too.
func TestServers(t *testing.T) {
	for _, m := range memories {
		t.Run(m.name, func(t *testing.T) {
			if m.name != "postgres" && m.name != "redis" {
				testserver.OnlyLong(t)
			}
			t.Parallel()
			s := m.start(t)
			url := s.URL()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			must(t, m.write(ctx, s, "one"))
			s.Kill(t)
			if c, err := net.DialTimeout("tcp", s.Addr(), time.Second); err == nil {
				c.Close()
				t.Fatal("it still listens after Kill")
			}
			s.Start(t)
			m.has(t, s, "one")

			must(t, m.write(ctx, s, "two"))
			s.Stop(t)
			s.Start(t)
			m.has(t, s, "two")

			s.Freeze(t)
			short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if got, err := m.read(short, s); err == nil {
				t.Fatalf("it answers %q while it is frozen", got)
			}
			cancel()
			s.Thaw(t)
			m.has(t, s, "two")

			s.Freeze(t)
			s.Stop(t) // goes on, and ends
			s.Start(t)
			m.has(t, s, "two")
			s.Freeze(t)
			s.Kill(t)
			if s.URL() != url {
				t.Errorf("it is at %s, and was at %s", s.URL(), url)
			}
			if s.Log() == "" {
				t.Error("it has written nothing")
			}
			s.Wipe(t)
			s.Start(t)
			if got, err := m.read(ctx, s); err == nil && got != "" {
				t.Errorf("it remembers %q after Wipe", got)
			}
		})
	}
}

func (m memory) has(t *testing.T, s *testserver.Server, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := m.read(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("it has %q, want %q", got, want)
	}
}

func TestShared(t *testing.T) {
	a, b := testserver.Shared(t, testserver.Redis), testserver.Shared(t, testserver.Redis)
	if a != b {
		t.Errorf("%s and %s, want one server", a.URL(), b.URL())
	}
	t.Run("in another test", func(t *testing.T) {
		if c := testserver.Shared(t, testserver.Redis); c != a {
			t.Errorf("%s and %s, want one server", a.URL(), c.URL())
		}
	})
}

// TestSystems makes sure that two servers are not the same one to who asks.
func TestSystems(t *testing.T) {
	a, b := identifier(t, testserver.Postgres(t)), identifier(t, testserver.Postgres(t))
	if a == b || a == "" {
		t.Errorf("system identifiers %q and %q", a, b)
	}
}

func identifier(t *testing.T, s *testserver.Server) string {
	t.Helper()
	return ask(t, s, "select system_identifier::text from pg_control_system()")
}

func ask(t *testing.T, s *testserver.Server, query string) string {
	t.Helper()
	db, err := sql.Open("pgx", s.URL())
	must(t, err)
	defer db.Close()
	var got string
	must(t, db.QueryRowContext(t.Context(), query).Scan(&got))
	return got
}

// TestDurable makes sure that servers are as their makers ship them, or safer.
func TestDurable(t *testing.T) {
	s := testserver.Postgres(t)
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		if got := ask(t, s, "show "+name); got != "on" {
			t.Errorf("%s = %s", name, got)
		}
	}
	db, err := sql.Open("mysql", mysqlDSN(testserver.MariaDB(t)))
	must(t, err)
	defer db.Close()
	var flush int
	must(t, db.QueryRow("select @@innodb_flush_log_at_trx_commit").Scan(&flush))
	if flush != 1 {
		t.Errorf("innodb_flush_log_at_trx_commit = %d", flush)
	}
}

func TestSettings(t *testing.T) {
	if got := ask(t, testserver.Postgres(t, "wal_level=logical"), "show wal_level"); got != "logical" {
		t.Errorf("wal_level = %s", got)
	}
	ctx, s := t.Context(), testserver.Redis(t, "--appendonly", "no")
	must(t, writeRedis(ctx, s, "one"))
	s.Kill(t)
	s.Start(t)
	if got, err := readRedis(ctx, s); err == nil {
		t.Errorf("it remembers %q without a file to do so", got)
	}
}

func TestPgBouncer(t *testing.T) {
	pg := testserver.Postgres(t)
	b := testserver.PgBouncer(t, pg, "default_pool_size = 1")
	if got, want := ask(t, b, "show port"), ask(t, pg, "show port"); got != want {
		t.Errorf("behind it is port %s, want %s", got, want)
	}
	pg.Kill(t)
	pg.Start(t)
	b.Kill(t)
	b.Start(t)
	ask(t, b, "select 'x'")
}

// TestStandby promotes a standby that has not received the last write.
func TestStandby(t *testing.T) {
	ctx := t.Context()
	primary := testserver.Postgres(t)
	m := memories[0]
	must(t, m.write(ctx, primary, "one"))
	standby := testserver.PostgresStandby(t, primary)
	if got := ask(t, standby.Server, "select pg_is_in_recovery()::text"); got != "true" {
		t.Fatalf("in recovery: %s", got)
	}
	must(t, m.write(ctx, primary, "two"))
	eventually(t, func() bool { got, err := m.read(ctx, standby.Server); return err == nil && got == "two" })
	standby.Link.Hang(true)
	must(t, m.write(ctx, primary, "three")) // acknowledged, and lost
	primary.Kill(t)
	standby.Promote(t)
	m.has(t, standby.Server, "two")
	must(t, m.write(ctx, standby.Server, "four"))
	standby.Kill(t)
	standby.Start(t)
	m.has(t, standby.Server, "four")
}

// TestClusters kills leaders, and then all. make full does it to ZooKeeper too, of which the
// tests of its store have a cluster.
func TestClusters(t *testing.T) {
	for _, tt := range []struct {
		name  string
		start func(testing.TB, int) *testserver.Cluster
		m     memory
	}{
		{"etcd", testserver.EtcdCluster, memories[3]},
		{"zookeeper", testserver.ZooKeeperCluster, memories[4]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name != "etcd" {
				testserver.OnlyLong(t)
			}
			t.Parallel()
			c := tt.start(t, 3)
			must(t, tt.m.write(t.Context(), c.Members[0], "one"))
			for range 2 {
				leader := c.Leader(t)
				leader.Kill(t)
				if next := c.Leader(t); next == leader {
					t.Fatal("the dead member leads")
				}
				i := slices.Index(c.Members, leader)
				tt.m.has(t, c.Members[(i+1)%3], "one")
				leader.Start(t)
				tt.m.has(t, leader, "one")
			}
			for _, m := range c.Members {
				m.Kill(t)
			}
			c.Start(t)
			tt.m.has(t, c.Members[2], "one")
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come about")
		}
	}
}

func postgresDSN(s *testserver.Server) string { return s.URL() }

func mysqlDSN(s *testserver.Server) string { return "root@tcp(" + s.Addr() + ")/test" }

func writeSQL(driver string, dsn func(*testserver.Server) string) func(context.Context, *testserver.Server, string) error {
	return func(ctx context.Context, s *testserver.Server, value string) error {
		db, err := sql.Open(driver, dsn(s))
		if err != nil {
			return err
		}
		defer db.Close()
		for _, q := range []string{"create table if not exists m (v varchar(20))", "delete from m", "insert into m values ('" + value + "')"} {
			if _, err := db.ExecContext(ctx, q); err != nil {
				return err
			}
		}
		return nil
	}
}

func readSQL(driver string, dsn func(*testserver.Server) string) func(context.Context, *testserver.Server) (string, error) {
	return func(ctx context.Context, s *testserver.Server) (v string, err error) {
		db, err := sql.Open(driver, dsn(s))
		if err != nil {
			return "", err
		}
		defer db.Close()
		err = db.QueryRowContext(ctx, "select v from m").Scan(&v)
		return v, err
	}
}

func redisClient(s *testserver.Server) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true})
}

func writeRedis(ctx context.Context, s *testserver.Server, value string) error {
	c := redisClient(s)
	defer c.Close()
	return c.Set(ctx, "m", value, 0).Err()
}

func readRedis(ctx context.Context, s *testserver.Server) (string, error) {
	c := redisClient(s)
	defer c.Close()
	return c.Get(ctx, "m").Result()
}

func etcdClient(s *testserver.Server) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{s.Addr()}, DialTimeout: 10 * time.Second})
}

func writeEtcd(ctx context.Context, s *testserver.Server, value string) error {
	c, err := etcdClient(s)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Put(ctx, "m", value)
	return err
}

func readEtcd(ctx context.Context, s *testserver.Server) (string, error) {
	c, err := etcdClient(s)
	if err != nil {
		return "", err
	}
	defer c.Close()
	r, err := c.Get(ctx, "m")
	if err != nil || len(r.Kvs) == 0 {
		return "", err
	}
	return string(r.Kvs[0].Value), nil
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// inZooKeeper calls f with a session, or returns the context's error.
func inZooKeeper(ctx context.Context, s *testserver.Server, f func(*zk.Conn) error) error {
	c, events, err := zk.Connect([]string{s.Addr()}, 4*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return f(c)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func writeZooKeeper(ctx context.Context, s *testserver.Server, value string) error {
	return inZooKeeper(ctx, s, func(c *zk.Conn) error {
		_, err := c.Set("/m", []byte(value), -1)
		if err == zk.ErrNoNode {
			_, err = c.Create("/m", []byte(value), 0, zk.WorldACL(zk.PermAll))
		}
		return err
	})
}

func readZooKeeper(ctx context.Context, s *testserver.Server) (value string, err error) {
	err = inZooKeeper(ctx, s, func(c *zk.Conn) error {
		if _, err := c.Sync("/m"); err != nil {
			return err
		}
		b, _, err := c.Get("/m")
		value = string(b)
		return err
	})
	return value, err
}
