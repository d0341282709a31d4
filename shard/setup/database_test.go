package setup_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// A database of a test's own, on the server that all tests share.
type database struct {
	url string
	*pgx.Conn
}

var made atomic.Int64

// hasty starts a server that leaves it to the operating system when to write: databases
// are made and dropped there all the time.
func hasty(t testing.TB, settings ...string) *testserver.Server {
	t.Helper()
	return testserver.Postgres(t, append(settings, "fsync=off")...)
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	server := testserver.Shared(t, hasty)
	return connect(t, testdb.New(t, server, fmt.Sprintf("setup%d", made.Add(1))))
}

func connect(t testing.TB, url string) *database {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return &database{url, c}
}

func (d *database) must(t testing.TB, sql string) {
	t.Helper()
	if _, err := d.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}

// query returns the rows that sql gives, as texts.
func (d *database) query(t testing.TB, sql string) []string {
	t.Helper()
	rows, err := d.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return all
}

// one returns the one text that sql gives.
func (d *database) one(t testing.TB, sql string) string {
	t.Helper()
	all := d.query(t, sql)
	if len(all) != 1 {
		t.Fatalf("%d rows\n%s", len(all), sql)
	}
	return all[0]
}

// serversAt are servers a, b and so on, at addresses. As in a command, a look uses the session of the one before it.
func serversAt(urls ...string) []topology.Server {
	servers := make([]topology.Server, len(urls))
	for i, url := range urls {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			panic(err)
		}
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
		servers[i] = topology.Server{Name: string(rune('a' + i)), Config: config}.Reusing()
	}
	return servers
}

func serversOf(databases ...*database) []topology.Server {
	urls := make([]string, len(databases))
	for i, d := range databases {
		urls[i] = d.url
	}
	return serversAt(urls...)
}

// wish is a small cluster.
func wish() setup.Wish { return setup.Wish{Count: small} }

const small = 24

func tryInit(ctx context.Context, servers []topology.Server, w setup.Wish) (*setup.Plan, error) {
	s, err := setup.Open(ctx, servers, true)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := s.Init(w)
	if err != nil {
		return nil, err
	}
	return p, p.Run(ctx, new(atomic.Int64))
}

func mustInit(t testing.TB, servers []topology.Server, w setup.Wish) *setup.Plan {
	t.Helper()
	p, err := tryInit(t.Context(), servers, w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// refuses fails unless the error says that, and nothing was changed in databases.
func refuses(t testing.TB, want string, f func() error, databases ...*database) {
	t.Helper()
	before := describe(t, databases...)
	err := f()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if after := describe(t, databases...); !slices.Equal(before, after) {
		t.Errorf("%s: something was changed:\n%s\n%s", want, strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// describe is what databases have of schemas, relations, functions, rights, roles and
// shards, without what differs from one run to the next.
func describe(t testing.TB, databases ...*database) []string {
	t.Helper()
	var all []string
	for _, d := range databases {
		all = append(all, d.query(t, `
SELECT format('schema %s %s', nspname, nspacl) FROM pg_namespace WHERE nspname !~ '^pg_'
UNION ALL SELECT format('relation %s %s %s', oid::regclass, relkind, relacl) FROM pg_class WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_|^information')
UNION ALL SELECT format('function %s %s %s', oid::regprocedure, proacl, regexp_replace(replace(prosrc, current_database(), 'here'), '\d{5,}', '#', 'g')) FROM pg_proc WHERE pronamespace IN (SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_|^information')
UNION ALL SELECT format('default %s %s', defaclnamespace::regnamespace, defaclacl) FROM pg_default_acl
UNION ALL SELECT format('role %s', rolname) FROM pg_roles
ORDER BY 1`)...)
		if d.one(t, "SELECT coalesce(to_regclass('firn.shard')::text, '')") != "" {
			all = append(all, d.query(t, `
SELECT format('shard %s %s %s', shard, schema, state) FROM firn.shard
UNION ALL SELECT format('generator %s %s', shard, name) FROM firn.generator
UNION ALL SELECT format('server %s %s %s %s %s %s %s', layout, name, shards, keys, schemas, servers, code) FROM firn.server
ORDER BY 1`)...)
		}
	}
	return all
}
