package check_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/topology"
)

func TestMain(m *testing.M) { testserver.Main(m) }

var made atomic.Int64

// newServer makes a database that is a server of a cluster of eight shards.
func newServer(t *testing.T, name string, shards ...int64) *pgx.Conn {
	t.Helper()
	return newDatabase(t, testserver.Shared(t, testserver.Postgres), name, shards...)
}

func newDatabase(t *testing.T, server *testserver.Server, name string, shards ...int64) *pgx.Conn {
	t.Helper()
	c := connect(t, testdb.New(t, server, fmt.Sprintf("check%d", made.Add(1))))
	var b strings.Builder
	if err := install.WriteGenerator(&b, firn.MustLayout("instagram")); err != nil {
		t.Fatal(err)
	}
	for _, n := range shards {
		if err := install.WriteShard(&b, firn.MustLayout("instagram"), install.Definition{Number: n, Schema: fmt.Sprintf("insta%d", n)}); err != nil {
			t.Fatal(err)
		}
	}
	mustExec(t, c, b.String())
	mustExec(t, c, fmt.Sprintf("UPDATE firn.server SET cluster = 'c1', name = '%s', shards = 8, keys = 'hash', schemas = 'insta%%d'", name))
	return c
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func mustExec(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}

// findings examines servers a and b.
func findings(t *testing.T, a, b *pgx.Conn) []string {
	t.Helper()
	var texts []string
	for _, f := range check.Findings(check.Examine(t.Context(), []topology.Server{
		{Name: "a", Config: a.Config()}, {Name: "b", Config: b.Config()},
	}), time.Now(), nil) {
		if f.Level == check.Warn && strings.HasPrefix(f.Text, "shards cannot move") {
			continue // the shared server is not set up for that
		}
		texts = append(texts, fmt.Sprintf("%s %s: %s", f.Level, f.Server, f.Text))
	}
	return texts
}

// TestManyGenerators: a server has fewer locks than its shards have sequences.
func TestManyGenerators(t *testing.T) {
	a := newDatabase(t, testserver.Postgres(t, "max_connections=20", "max_locks_per_transaction=10"), "a", 0, 1, 2, 3, 4, 5, 6, 7)
	const more = 300
	for n := range 8 {
		for i := 0; i < more; i += 50 { // a transaction each
			mustExec(t, a, fmt.Sprintf(`DO $$ BEGIN FOR i IN %d .. %d LOOP
				EXECUTE format('CREATE SEQUENCE insta%d.c%%s; CREATE SEQUENCE insta%[3]d.o%%1$s', i);
				INSERT INTO firn.generator VALUES (%[3]d, 't' || i, 'insta%[3]d.c' || i, 'insta%[3]d.o' || i);
			END LOOP; END $$`, i, i+49, n))
		}
	}
	s := check.Examine(t.Context(), []topology.Server{{Name: "a", Config: a.Config()}})[0]
	if s.Err != nil {
		t.Fatal(s.Err)
	}
	all := s.Details.Generators
	for i, g := range all {
		if !g.Sequences || g.Shard != int64(i/(more+1)) {
			t.Fatalf("generator %d of %d: %+v", i, len(all), g)
		}
	}
	if want := 8 * (more + 1); len(all) != want {
		t.Errorf("%d generators, want %d", len(all), want)
	}
}

// TestFindings breaks one thing after the other, and mends it.
func TestFindings(t *testing.T) {
	a := newServer(t, "a", 0, 1, 2, 3)
	b := newServer(t, "b", 4, 5, 6, 7)
	if got := findings(t, a, b); len(got) > 0 {
		t.Fatalf("of servers that are well: %q", got)
	}
	for _, tt := range []struct {
		name       string
		harm, mend string // on a
		want       []string
	}{
		{
			"generator ahead", "SELECT firn.open(1, firn.now_state() + 3600 * 1024000::bigint)", "SELECT",
			[]string{"warn a: the generators of 1 shard are ahead of its clock: 1 ("},
		},
		{
			"shard closed", "SELECT firn.close(2)", "SELECT firn.open(2)",
			[]string{"bad : 1 shard is not served, it is closed on a: 2"},
		},
		{
			"close broken off", "SELECT setval('insta2.next_id_offset', 5, false)", "SELECT firn.open(2)",
			[]string{"bad a: shard 2: next_id is closed although the shard is open"},
		},
		{
			"opened elsewhere", "UPDATE firn.shard SET timeline = '00000009' WHERE shard = 3", "SELECT firn.open(3)",
			[]string{"bad : 1 shard is not served, a is a copy, or was promoted or restored: 3"},
		},
		{
			"a copy's sequence", "UPDATE firn.generator SET identity = 1 WHERE shard = 3", "SELECT firn.open(3)",
			[]string{"bad a: shard 3: the sequences of next_id are a copy's"},
		},
		{
			"function gone", "ALTER FUNCTION insta0.next_id() RENAME TO gone", "ALTER FUNCTION insta0.gone() RENAME TO next_id",
			[]string{"bad a: shard 0: the function next_id is gone"},
		},
		{
			"two owners", "SELECT firn.create_shard(7, 'insta7')", "DELETE FROM firn.generator WHERE shard = 7; DELETE FROM firn.shard WHERE shard = 7; DROP SCHEMA insta7 CASCADE",
			[]string{"bad : 1 shard: a and b serve it at once, and one of them was put back to an earlier state: 7"},
		},
		{
			"foreign schema", "CREATE SCHEMA insta99; CREATE SCHEMA insta_99; CREATE SCHEMA insta99b", "DROP SCHEMA insta99",
			[]string{"warn a: 1 schema has the name of a shard, and is none: insta99"},
		},
		{
			"a role that may set", "GRANT UPDATE ON SEQUENCE insta1.next_id_offset TO pg_monitor", "REVOKE UPDATE ON SEQUENCE insta1.next_id_offset FROM pg_monitor",
			[]string{"bad a: roles besides the owner may set generators back: pg_monitor"},
		},
		{
			"a cached counter", "ALTER SEQUENCE insta1.next_id_counter CACHE 20", "ALTER SEQUENCE insta1.next_id_counter CACHE 1",
			[]string{"bad a: ids may repeat or go back, because sequences that they come from do not count one by one: insta1.next_id_counter INCREMENT 1 CACHE 20 NO CYCLE"},
		},
		{
			"a counter of tens, and one that begins again", "ALTER SEQUENCE insta1.next_id_counter INCREMENT 10; ALTER SEQUENCE insta2.next_id_offset CYCLE", "ALTER SEQUENCE insta1.next_id_counter INCREMENT 1; ALTER SEQUENCE insta2.next_id_offset NO CYCLE",
			[]string{"bad a: ids may repeat or go back, because sequences that they come from do not count one by one: insta1.next_id_counter INCREMENT 10 CACHE 1 NO CYCLE, insta2.next_id_offset INCREMENT 1 CACHE 1 CYCLE"},
		},
		{
			"another cluster", "UPDATE firn.server SET cluster = 'c2'", "UPDATE firn.server SET cluster = 'c1'",
			[]string{"bad : servers a and b are of different clusters, c2 and c1"},
		},
		{
			"exchanged names", "UPDATE firn.server SET name = 'b'", "UPDATE firn.server SET name = 'a'",
			[]string{"bad : no server that answers serves 4 shards: 0, 1, 2, 3", "bad a: its address leads to the database " + a.Config().Database + ", which calls itself b: the addresses may be exchanged"},
		},
		{
			"schema gone", "DROP SCHEMA insta2 CASCADE", "SELECT",
			[]string{"bad a: the schemas of 1 shard are gone: insta2"},
		},
	} {
		mustExec(t, a, tt.harm)
		got := findings(t, a, b)
		mustExec(t, a, tt.mend)
		for _, want := range tt.want {
			if !slices.ContainsFunc(got, func(text string) bool { return strings.HasPrefix(text, want) }) {
				t.Errorf("%s: no finding %q in %q", tt.name, want, got)
			}
		}
		if tt.name != "generator ahead" { // which does not go away
			got = slices.DeleteFunc(got, func(text string) bool { return strings.HasPrefix(text, "warn a: the generators of") })
		}
		if len(got) > len(tt.want) {
			t.Errorf("%s: more than was broken: %q", tt.name, got)
		}
	}
}

// TestMissing: a server that does not answer, or knows nothing, and a shard that no
// server knows.
func TestMissing(t *testing.T) {
	a := newServer(t, "a", 0, 1, 2)
	b := newServer(t, "b", 4, 5, 6, 7)
	if got := findings(t, a, b); !slices.Equal(got, []string{"bad : no server knows 1 shard: 3"}) {
		t.Errorf("%q", got)
	}
	mustExec(t, a, "UPDATE firn.server SET servers = '{a,b,c}'")
	if got := findings(t, a, b); !slices.Contains(got, "bad : server c was not asked; the servers that were asked do not serve 1 shard: 3") {
		t.Errorf("%q", got)
	}
	mustExec(t, b, "ALTER SCHEMA firn RENAME TO was")
	if got := findings(t, a, b); !slices.Equal(got, []string{"bad : no server that answers serves 5 shards: 3, 4, 5, 6, 7", "bad b: the schema firn of the database " + b.Config().Database + " is lost, and these schemas make ids with it: insta4, insta5, insta6, insta7, was"}) {
		t.Errorf("%q", got)
	}
	gone := b.Config()
	gone.Port = 1
	got := check.Findings(check.Examine(t.Context(), []topology.Server{{Name: "a", Config: a.Config()}, {Name: "b", Config: gone}}), time.Now(), nil)
	if len(got) < 2 || got[0].Text != "no server that answers serves 5 shards: 3, 4, 5, 6, 7" || got[1].Server != "b" ||
		!strings.HasPrefix(got[1].Text, "it cannot be examined: ") || !strings.HasPrefix(got[1].Do, "start it, or check its address; if it is permanently lost: ") {
		t.Errorf("%+v", got)
	}
}

// TestSettings says what keeps shards from moving, and what forgets.
func TestSettings(t *testing.T) {
	server := &check.Server{
		Name: "a", Offset: 3 * time.Second, Error: time.Second,
		View: &topology.View{
			Cluster: "c1", Server: "a", Layout: firn.MustLayout("instagram"), Schemas: "insta%d", Version: 130001, Standby: true,
			Keys: keys(t, "none", 8),
		},
		Details: &check.Details{Settings: map[string]string{"fsync": "off", "wal_level": "replica", "max_wal_senders": "0"}},
	}
	var got []string
	for _, f := range check.Findings([]*check.Server{server}, firn.MustLayout("instagram").End().Add(-time.Hour), nil) {
		got = append(got, string(f.Level)+" "+f.Text)
	}
	want := []string{
		"bad server a: its address leads to a standby, which gives no ids and takes no writes",
		"bad its version is 13.1",
		"bad fsync is off: a crash can take back what it acknowledged",
		"warn its layout ends on 2046-06-27",
		"warn its clock is 3s off from here",
		"warn shards cannot move from or to it: wal_level is replica",
		"warn shards cannot move from or to it: max_wal_senders is 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func keys(t *testing.T, scheme string, shards int64) topology.Keys {
	t.Helper()
	k, err := topology.ParseKeys(scheme, shards)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
