package move

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/topology"
)

// speaks are the refusals of a move of shard 0.
func speaks(t *testing.T, source, target topology.Server) []string {
	t.Helper()
	p, err := NewPlan(t.Context(), source, target, []int64{0}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(p.Obstacles))
	for i, r := range p.Obstacles {
		texts[i] = r.String()
	}
	return texts
}

// TestRefusals makes a shard that cannot move in each way, and mends it.
func TestRefusals(t *testing.T) {
	a, b := pair(t, 2)
	a.must(t, `CREATE TABLE insta0.users (id bigint PRIMARY KEY, v text); CREATE TABLE insta1.users (id bigint PRIMARY KEY);
		INSERT INTO insta0.users SELECT n FROM generate_series(1, 1000) AS n; ANALYZE insta0.users;
		CREATE TABLE insta0.kept (x integer); ALTER TABLE insta0.kept REPLICA IDENTITY FULL;
		CREATE TABLE insta0.parts (id bigint, PRIMARY KEY (id)) PARTITION BY RANGE (id); CREATE TABLE insta0.part PARTITION OF insta0.parts DEFAULT;
		CREATE TRIGGER plain BEFORE UPDATE ON insta0.users FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
		CREATE MATERIALIZED VIEW insta0.later AS SELECT count(*) FROM insta0.users WITH NO DATA; CREATE SEQUENCE insta0.own;
		CREATE DOMAIN insta0.positive AS integer NOT NULL CHECK (VALUE > 0); CREATE DOMAIN insta0.small AS insta0.positive CHECK (VALUE < 100); CREATE TABLE insta0.few (n insta0.small PRIMARY KEY)`)
	if got := speaks(t, a.Server, b.Server); len(got) > 0 {
		t.Fatalf("of a shard that can move: %q", got)
	}
	role := "mover_of_" + a.Server.Config.Database
	for _, tt := range []struct{ name, harm, mend, want string }{
		{"no replica identity", "CREATE TABLE insta0.bare (x integer); CREATE TABLE insta0.late (x integer PRIMARY KEY DEFERRABLE)", "DROP TABLE insta0.bare, insta0.late", "shard 0 on a: tables without a replica identity: bare, late"},
		{"identity nothing", "ALTER TABLE insta0.users REPLICA IDENTITY NOTHING", "ALTER TABLE insta0.users REPLICA IDENTITY DEFAULT", "shard 0 on a: tables without a replica identity: users"},
		{"a partition without", "CREATE TABLE insta0.p2 (id bigint) PARTITION BY RANGE (id); CREATE TABLE insta0.p2_1 PARTITION OF insta0.p2 DEFAULT", "DROP TABLE insta0.p2", "shard 0 on a: tables without a replica identity: p2_1"},
		{"a key that is generated", "CREATE TABLE insta0.made (x integer, g integer GENERATED ALWAYS AS (x * 2) STORED PRIMARY KEY)", "DROP TABLE insta0.made", "shard 0 on a: generated columns are not replicated, and these are of a replica identity: made.g"},
		{"no equality", "CREATE TYPE insta0.deep AS (j json[]); CREATE TABLE insta0.blurred (a json, b insta0.deep, c varchar, d name[], e jsonb, f int4range, g numeric); ALTER TABLE insta0.blurred REPLICA IDENTITY FULL", "DROP TABLE insta0.blurred; DROP TYPE insta0.deep", "shard 0 on a: rows cannot be found on the other server by columns whose type has no equality: blurred.a, blurred.b"},
		{"a view elsewhere", "CREATE SCHEMA more; CREATE VIEW more.v AS SELECT id FROM insta0.users; CREATE TABLE more.t (n bigint DEFAULT nextval('insta0.own')); CREATE FUNCTION more.f(insta0.users) RETURNS integer LANGUAGE sql AS 'SELECT 1'", "DROP SCHEMA more CASCADE", "shard 0 on a: other schemas have what depends on this one, and would stay here: default value for more.t.n, function more.f(insta0.users), rule \"_RETURN\" on more.v"},
		{"a domain elsewhere", "CREATE SCHEMA more; CREATE FUNCTION insta0.good(integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'; CREATE DOMAIN more.d AS insta0.positive; CREATE DOMAIN more.e AS integer CONSTRAINT is_good CHECK (insta0.good(VALUE))", "DROP SCHEMA more CASCADE; DROP FUNCTION insta0.good(integer)", "shard 0 on a: other schemas have what depends on this one, and would stay here: domain constraint is_good on more.e, type more.d"},
		{"the name of the mark", "CREATE TABLE insta0.firn_mark (mine text PRIMARY KEY)", "DROP TABLE insta0.firn_mark", "shard 0 on a: there is a table of the name that a move needs: firn_mark"},
		{"unlogged", "CREATE UNLOGGED TABLE insta0.fleeting (x integer PRIMARY KEY)", "DROP TABLE insta0.fleeting", "shard 0 on a: unlogged relations are not replicated: fleeting"},
		{"large objects", "SELECT lo_create(77); CREATE DOMAIN insta0.lo AS oid; ALTER TABLE insta0.users ADD big insta0.lo", "SELECT lo_unlink(77); ALTER TABLE insta0.users DROP big; DROP DOMAIN insta0.lo", "shard 0 on a: large objects are not replicated, and these columns may refer to some: users.big"},
		{"a foreign key out", "CREATE TABLE public.kinds (id bigint PRIMARY KEY); ALTER TABLE insta0.users ADD kind bigint REFERENCES public.kinds", "ALTER TABLE insta0.users DROP kind; DROP TABLE public.kinds", "shard 0 on a: foreign keys cross the border of the schema: users_kind_fkey of insta0.users to kinds"},
		{"a foreign key in", "CREATE TABLE public.kinds (id bigint REFERENCES insta0.users)", "DROP TABLE public.kinds", "shard 0 on a: foreign keys cross the border of the schema: kinds_id_fkey of kinds to insta0.users"},
		{"a partition elsewhere", "CREATE TABLE public.away PARTITION OF insta0.parts FOR VALUES FROM (1) TO (2)", "DROP TABLE public.away", "shard 0 on a: tables inherit, or are partitions, across the border of the schema: away of insta0.parts"},
		{"a trigger always", "ALTER TABLE insta0.users ENABLE ALWAYS TRIGGER plain", "ALTER TABLE insta0.users ENABLE TRIGGER plain", "shard 0 on a: triggers or rules fire on replicas, and would do there again what they did here: plain on users"},
		{"a rule for replicas", "CREATE RULE r AS ON DELETE TO insta0.users DO INSTEAD NOTHING; ALTER TABLE insta0.users ENABLE REPLICA RULE r", "DROP RULE r ON insta0.users", "shard 0 on a: triggers or rules fire on replicas, and would do there again what they did here: r on users"},
		{"a materialized view", "REFRESH MATERIALIZED VIEW insta0.later", "REFRESH MATERIALIZED VIEW insta0.later WITH NO DATA", "shard 0 on a: materialized views are not replicated: later"},
		{"a foreign table", "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; CREATE FOREIGN TABLE insta0.far (x integer) SERVER s", "DROP FOREIGN DATA WRAPPER w CASCADE", "shard 0 on a: foreign tables stay where they are: far"},
		{"prepared", "BEGIN; INSERT INTO insta0.users VALUES (-1); PREPARE TRANSACTION 'left'", "ROLLBACK PREPARED 'left'", "server a: prepared transactions: left"},
		{"a role", "CREATE ROLE " + role + "; GRANT SELECT (id) ON insta0.users TO " + role, "DROP OWNED BY " + role + "; DROP ROLE " + role, "server b: roles that own or use tables are missing: " + role},
		{"a role's member", "CREATE ROLE " + role + "; GRANT firn_app TO " + role, "DROP ROLE " + role, "server b: roles that use the shards may not use them there: " + role},
		{"an extension", "CREATE EXTENSION citext; CREATE EXTENSION pg_trgm; ALTER TABLE insta0.users ADD c citext", "DROP EXTENSION citext, pg_trgm CASCADE", "server b: extensions are missing: citext"},
		{"another firn", "UPDATE firn.server SET code = 'x'", "UPDATE firn.server SET code = '" + must(install.Code(firn.Sharded())) + "'", "server a: its functions are of another version of firn"},
		{"a newer firn", "CREATE OR REPLACE FUNCTION firn.sql_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT 99'", "CREATE OR REPLACE FUNCTION firn.sql_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT " + strconv.Itoa(install.SQLVersion) + "'", "server a: a newer firn wrote its functions"},
		{"closed", "SELECT firn.close(0)", "SELECT firn.open(0)", "shard 0 on a: it is not open there"},
		{"moved", "SELECT firn.close(0); UPDATE firn.shard SET state = 'moved', moved_to = 'c' WHERE shard = 0", "UPDATE firn.shard SET state = 'closed' WHERE shard = 0; SELECT firn.open(0)", "shard 0 on a: it has moved to c"},
		{"a copy", "UPDATE firn.shard SET timeline = '00000009' WHERE shard = 0", "SELECT firn.open(0)", "shard 0 on a: it is not open there"},
		{"a move under way", "INSERT INTO firn.move (shard, batch, source, target, loaded) VALUES (0, 'abcdefghijkl', 'a', 'c', true)", "DELETE FROM firn.move", "shard 0 on a: another move of it is under way, abcdefghijkl"},
		{"read only", "ALTER DATABASE " + a.Server.Config.Database + " SET default_transaction_read_only = on", "SET transaction_read_only = off; ALTER DATABASE " + a.Server.Config.Database + " RESET default_transaction_read_only", "server a: it takes no writes"},
	} {
		a.must(t, tt.harm)
		got := speaks(t, a.Server, b.Server)
		a.must(t, tt.mend)
		if len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	b.must(t, "CREATE SCHEMA insta0")
	if got := speaks(t, a.Server, b.Server); len(got) != 1 || got[0] != "shard 0 on b: there is a schema insta0 already, and it is no copy of the shard" {
		t.Errorf("%q", got)
	}
	if p, err := NewPlan(t.Context(), a.Server, b.Server, []int64{0}, true, nil); err != nil || p.Err() != nil {
		t.Errorf("of a move that goes on: %v, %v", err, p.Err())
	}
	b.must(t, "DROP SCHEMA insta0; SELECT firn.create_shard(0, 'insta0')")
	if got := speaks(t, a.Server, b.Server); len(got) != 1 || got[0] != "shard 0 on b: it is open there too" {
		t.Errorf("%q", got)
	}
	b.must(t, "SELECT firn.close(0); UPDATE firn.shard SET state = 'moved', moved_to = 'a', timeline = '00000009' WHERE shard = 0; DROP SCHEMA insta0 CASCADE")
	if got := speaks(t, a.Server, b.Server); len(got) != 1 || got[0] != "shard 0 on b: what b knows of it is from before the server was put back, copied or promoted" {
		t.Errorf("%q", got)
	}
	if p, err := NewPlan(t.Context(), a.Server, b.Server, []int64{7}, false, nil); err != nil || len(p.Obstacles) != 1 || p.Obstacles[0].Reason != "it is not there" {
		t.Errorf("%v, %+v", err, p)
	}
}

// TestRefusesPolicies: policies that would hide rows from the copy, or keep replication from writing
// it. From PostgreSQL 16 on it writes as the owner of a table, before that as the mover.
func TestRefusesPolicies(t *testing.T) {
	a, b := pair(t, 1)
	owner := "owner_of_" + a.Server.Config.Database
	for _, s := range []*site{a, b} {
		s.must(t, "CREATE ROLE "+owner)
		t.Cleanup(func() { s.Exec(context.Background(), "DROP OWNED BY "+owner+" CASCADE; DROP ROLE "+owner) })
	}
	a.must(t, "CREATE TABLE insta0.users (id bigint PRIMARY KEY); ALTER TABLE insta0.users OWNER TO "+owner+"; ALTER TABLE insta0.users ENABLE ROW LEVEL SECURITY")
	if got := speaks(t, a.Server, b.Server); len(got) != 0 {
		t.Errorf("%q", got)
	}
	a.must(t, "ALTER TABLE insta0.users FORCE ROW LEVEL SECURITY")
	var want []string
	if version(t, b) >= 160000 {
		want = []string{"shard 0 on a: replication writes as the owner of a table, for whom policies are forced on these tables: users"}
	}
	if got := speaks(t, a.Server, b.Server); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	a.must(t, "ALTER ROLE "+owner+" BYPASSRLS")
	if got := speaks(t, a.Server, b.Server); len(got) != 0 {
		t.Errorf("%q", got)
	}
	poor := "poor_of_" + a.Server.Config.Database
	a.must(t, "ALTER ROLE "+owner+" NOBYPASSRLS; CREATE ROLE "+poor+" LOGIN; GRANT USAGE ON SCHEMA firn, insta0 TO "+poor+"; GRANT ALL ON ALL TABLES IN SCHEMA firn, insta0 TO "+poor+"; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA firn TO "+poor)
	t.Cleanup(func() { a.Exec(context.Background(), "DROP OWNED BY "+poor+"; DROP ROLE "+poor) })
	source := a.Server
	source.Config = a.Server.Config.Copy()
	source.Config.User = poor
	if got := speaks(t, source, b.Server); !slices.Contains(got, "shard 0 on a: policies hide rows of these tables from this role: users") {
		t.Errorf("%q", got)
	}
}

// TestPlanWaits makes a plan while either server ends its sessions, as one that is restarted
// does.
func TestPlanWaits(t *testing.T) {
	t.Parallel()
	a, b := pair(t, 1)
	for _, tt := range []struct {
		on      *site
		message string
	}{{a, "FROM firn.move"}, {b, "FROM firn.move"}, {a, "FROM firn.relations"}, {b, "FROM pg_attribute"}} {
		ended := false
		hooked := at(tt.on, "before", tt.message, func() {
			ended = true
			tt.on.must(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()")
		})
		source, target := a.Server, b.Server
		if tt.on == a {
			source = hooked
		} else {
			target = hooked
		}
		p, err := NewPlan(t.Context(), source, target, []int64{0}, false, nil)
		if err != nil || p.Err() != nil || len(p.Shards) != 1 || !ended {
			t.Errorf("server %s, at %s (%t): %v", tt.on.Name, tt.message, ended, err)
		}
	}
}

// TestPlan says what will be moved and who is in the way.
func TestPlan(t *testing.T) {
	a, b := pair(t, 2)
	a.must(t, `CREATE TABLE insta0.users (id bigint PRIMARY KEY, v text); CREATE TABLE insta1.users (id bigint PRIMARY KEY);
		INSERT INTO insta0.users SELECT n, 'abc' FROM generate_series(1, 1000) AS n; ANALYZE insta0.users`)
	writer, reader, elsewhere := dialConfig(t, a.Server.Config), dialConfig(t, a.Server.Config), dialConfig(t, a.Server.Config)
	mustExec(t, writer, "SET application_name = 'report'; BEGIN; DELETE FROM insta0.users\n WHERE id = 5")
	mustExec(t, reader, "BEGIN; SELECT * FROM insta0.users WHERE id = 6 FOR UPDATE")
	mustExec(t, elsewhere, "BEGIN; SELECT insta0.next_id(); INSERT INTO insta1.users VALUES (1)")
	time.Sleep(2 * lockPatience)
	begun := time.Now()
	p, err := NewPlan(t.Context(), a.Server, b.Server, []int64{0, 1}, false, nil)
	if err != nil || p.Err() != nil {
		t.Fatal(err, p.Err())
	}
	s := p.Shards[0]
	if s.Shard != 0 || s.Schema != "insta0" || s.Tables != 1 || s.Rows != 1000 || s.Bytes < 1000*32 || p.Bytes() < s.Bytes || p.Free <= 0 || p.Pause <= 0 {
		t.Errorf("%+v", p)
	}
	if len(s.Holders) != 1 || s.Holders[0].PID != int32(writer.PgConn().PID()) || s.Holders[0].Age < 2*lockPatience || s.Holders[0].Age > time.Since(begun)+time.Minute {
		t.Fatalf("%+v", s.Holders)
	}
	err = &HoldersError{Shard: 0, Waited: time.Minute, Holders: s.Holders}
	if text := err.Error(); !strings.HasPrefix(text, "shard 0 was in use by long transactions for 1m0s:\n  pid ") || !strings.Contains(text, "t at 127.0.0.1 (report), for ") || !strings.HasSuffix(text, ": SET application_name = 'report'; BEGIN; DELETE FROM insta0.users WHERE id = 5") {
		t.Error(text)
	}
	mustExec(t, writer, "PREPARE TRANSACTION 'later'")
	got, err := holders(t.Context(), a.Conn, "insta0", 0)
	if err != nil || len(got) != 1 || got[0].PID != 0 || !strings.HasPrefix(got[0].String(), "prepared transaction later of t, for ") {
		t.Errorf("%+v, %v", got, err)
	}
	a.must(t, "ROLLBACK PREPARED 'later'")
}

func dialConfig(t *testing.T, config *pgx.ConnConfig) *pgx.Conn {
	t.Helper()
	c, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// TestRefusesServers: what a server lacks, and what one may not do there.
func TestRefusesServers(t *testing.T) {
	a, b := pair(t, 1)
	poor := testserver.Postgres(t, "wal_level=minimal", "max_wal_senders=0", "max_replication_slots=0", "max_logical_replication_workers=0")
	admin := dial(t, poor.URL())
	mustExec(t, admin, "CREATE DATABASE other ENCODING 'LATIN1' TEMPLATE template0")
	c := dial(t, strings.Replace(poor.URL(), "/postgres?", "/other?", 1))
	mustExec(t, c, sqlOf(t)+fmt.Sprintf("UPDATE firn.server SET cluster = '%s', name = 'b', shards = 1, keys = 'hash', schemas = 'insta%%d', code = '%s'",
		a.one(t, "SELECT cluster FROM firn.server"), must(install.Code(firn.Sharded()))))
	want := []string{
		"server b: wal_level is \"minimal\", must be \"logical\"",
		"server b: 1 more replication slot is needed, and max_replication_slots = 0 leaves 0",
		"server b: 3 more replication origins are needed, and max_replication_slots = 0 leaves 0",
		"server b: 1 more sender of WAL is needed, and max_wal_senders = 0 leaves 0",
		"server b: 3 more workers of logical replication are needed, and max_logical_replication_workers = 0 leaves 0",
		"server b: its encoding and locale are LATIN1 C C, and those of a UTF8 C C",
		"server b: roles that own or use tables are missing: firn_app",
	}
	version := version(t, a)
	if version >= 180000 { // origins have a setting of their own
		want = slices.Delete(want, 2, 3)
	}
	if got := speaks(t, a.Server, topology.Server{Name: "b", Config: c.Config()}); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	role := "poor_" + a.Server.Config.Database
	b.must(t, "CREATE ROLE "+role+" LOGIN; GRANT ALL ON SCHEMA firn TO "+role+"; GRANT ALL ON ALL TABLES IN SCHEMA firn TO "+role)
	config := b.Server.Config.Copy()
	config.User = role
	want = []string{
		"server b: before PostgreSQL 16 only a superuser may subscribe, and " + role + " is none",
	}
	if version >= 160000 {
		want = []string{
			"server b: role \"" + role + "\" may not create subscriptions",
			"server b: role \"" + role + "\" may not replicate",
			"server b: role \"" + role + "\" does not see how old other sessions' transactions are",
			"server b: a subscription of role \"" + role + "\" needs a password in the address of a",
		}
	}
	if got := speaks(t, a.Server, topology.Server{Name: "b", Config: config}); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	b.must(t, "DROP OWNED BY "+role+"; DROP ROLE "+role+"; UPDATE firn.server SET cluster = 'another'")
	if _, err := NewPlan(t.Context(), a.Server, b.Server, []int64{0}, false, nil); err == nil || !strings.Contains(err.Error(), "not of one cluster") {
		t.Error(err)
	}
}

func sqlOf(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	if err := errors.Join(install.WriteGenerator(&b, firn.Sharded()), install.WriteMoves(&b, firn.Sharded())); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRefusesVersions: what no server here is like.
func TestRefusesVersions(t *testing.T) {
	like := func(version int) *post {
		return &post{server: "b", View: &topology.View{Version: version, SQL: install.SQLVersion, Itself: true}, walLevel: "logical", superuser: true, disk: -1}
	}
	old, new := like(150018), like(160002)
	if got := new.between(old, 0, nil, nil); len(got) != 1 || got[0].String() != "server b: it is PostgreSQL 15, older than the 16 of b" {
		t.Errorf("%v", got)
	}
	if got := old.between(new, 1<<40, nil, nil); len(got) != 0 {
		t.Errorf("%v", got)
	}
	new.allSequences = []string{"every"}
	if got := new.onServer(needs{}, ""); len(got) != 1 || !strings.Contains(got[0].Reason, "publications of all sequences") {
		t.Errorf("%v", got)
	}
	// One obstacle, one cure: a superuser has the other rights too.
	old.superuser, old.user = false, "firn"
	if got := old.onServer(needs{}, ""); len(got) != 1 || !strings.Contains(got[0].Fix, "SUPERUSER@HOST") {
		t.Errorf("%v", got)
	}
	new.allSequences, new.superuser, new.user = nil, false, "firn"
	if got := new.onServer(needs{}, ""); len(got) != 3 {
		t.Errorf("%v", got)
	}
	new.allSequences, new.superuser, new.replication, new.monitors, new.user, new.database = nil, false, true, true, "firn", "my app"
	if got := new.onServer(needs{}, ""); len(got) != 1 || got[0].Fix != `GRANT pg_create_subscription TO "firn"; GRANT CREATE ON DATABASE "my app" TO "firn"` {
		t.Errorf("%v", got)
	}
}

// TestRefusesFullDisk: a shard that is larger than the disk of the target.
func TestRefusesFullDisk(t *testing.T) {
	a, b := pair(t, 1)
	a.must(t, "CREATE TABLE insta0.large (id bigint PRIMARY KEY)")
	file := filepath.Join(testserver.Shared(t, sourceServer).Home(), "data", a.one(t, "SELECT pg_relation_filepath('insta0.large')"))
	if err := os.Truncate(file, 4<<40); err != nil { // of which nothing is written
		t.Fatal(err)
	}
	got := speaks(t, a.Server, b.Server)
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "server b: the copy needs 5242880 MB, and ") {
		t.Errorf("%q", got)
	}
}

// The error of obstacles names the servers, with what to do on servers of one's own and on RDS.
func TestObstacles(t *testing.T) {
	hosted := &post{server: "a", View: &topology.View{Version: 160002, SQL: install.SQLVersion, Itself: true}, user: "firn", walLevel: "replica", subscribes: true, createsInDatabase: true, monitors: true}
	p := Plan{asked: []int64{17}, from: versionOf("a", &topology.View{Version: 160002}), to: versionOf("b", &topology.View{Version: 180001}), Obstacles: hosted.onServer(needs{}, "")}
	const want = `shard 17 cannot move from a (PostgreSQL 16.2) to b (PostgreSQL 18.1): 2 obstacles
  server a: wal_level is "replica", must be "logical" (own server: ALTER SYSTEM SET wal_level = 'logical', then restart; RDS: rds.logical_replication = 1 in the parameter group, then reboot)
  server a: role "firn" may not replicate (own server: ALTER ROLE "firn" REPLICATION; RDS: GRANT rds_replication TO "firn")`
	if err := p.Err(); err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
	for i, object := range []string{"wal_level", "role firn"} {
		if got := p.Obstacles[i].Object; got != object {
			t.Errorf("obstacle %d is about %q, want %q", i, got, object)
		}
	}
	if err := (&RefusedError{Obstacles: p.Obstacles[:1]}).Headline(); err != "the moves cannot begin: 1 obstacle" {
		t.Error(err)
	}
}
