package shard_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/shard/install"
)

func TestMain(m *testing.M) { testserver.Main(m, func() error { return goleak.Find() }) }

// A database of a test's own.
type database struct {
	url string
	*pgx.Conn
}

var made atomic.Int64

// newDatabase makes a database on the shared server.
func newDatabase(t testing.TB) *database {
	t.Helper()
	return openDatabase(t, testdb.New(t, testserver.Shared(t, testserver.Postgres), fmt.Sprintf("shard%d", made.Add(1))))
}

func openDatabase(t testing.TB, url string) *database {
	t.Helper()
	return &database{url, connect(t, url)}
}

func connect(t testing.TB, url string) *pgx.Conn {
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
	// The simple protocol takes several statements.
	if _, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}

// query returns the one value that sql gives.
func query[T any](t testing.TB, c *pgx.Conn, sql string) T {
	t.Helper()
	v, err := tryQuery[T](t, c, sql)
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return v
}

func tryQuery[T any](t testing.TB, c *pgx.Conn, sql string) (v T, err error) {
	t.Helper()
	err = c.QueryRow(t.Context(), sql, pgx.QueryExecModeExec).Scan(&v)
	return v, err
}

// refused fails unless sql fails with the SQLSTATE, and returns the error.
func refused(t testing.TB, c *pgx.Conn, sqlstate, sql string) *pgconn.PgError {
	t.Helper()
	_, err := c.Exec(t.Context(), sql, pgx.QueryExecModeExec)
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != sqlstate {
		t.Fatalf("%s\ngot %v, want SQLSTATE %s", sql, err, sqlstate)
	}
	return e
}

// script is the SQL of a shard with its generator.
func script(t testing.TB, l firn.Layout, s install.Definition) string {
	t.Helper()
	var b strings.Builder
	if err := install.WriteSQL(&b, l, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func insta(n int64) install.Definition {
	return install.Definition{Number: n, Schema: fmt.Sprintf("insta%d", n)}
}

func TestIDs(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	before := time.Now()
	var last firn.ID
	for range 3000 {
		id := firn.ID(query[int64](t, db.Conn, "SELECT insta5.next_id()"))
		if id <= last {
			t.Fatalf("%d after %d", id, last)
		}
		last = id
	}
	parts, err := firn.MustLayout("instagram").Decode(last)
	if err != nil || parts.Shard != 5 {
		t.Fatalf("%d is %+v, %v", last, parts, err)
	}
	if d := parts.Time.Sub(before); d < -time.Millisecond || d > time.Since(before)+time.Second {
		t.Errorf("the time of %d is %v off", last, d)
	}
	// What the database reads out of an id is what the library does.
	var at time.Time
	var number, seq int64
	if err := db.QueryRow(t.Context(), "SELECT * FROM firn.decode($1)", int64(last)).Scan(&at, &number, &seq); err != nil {
		t.Fatal(err)
	}
	if !at.Equal(parts.Time) || number != parts.Shard || seq != parts.Seq {
		t.Errorf("decode: %v %d %d, want %+v", at, number, seq, parts)
	}
	if plan := query[string](t, db.Conn, "EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) SELECT insta5.next_id()"); !strings.Contains(plan, "firn.id(") {
		t.Errorf("next_id is not inlined: %s", plan)
	}
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5))) // again
	if id := firn.ID(query[int64](t, db.Conn, "SELECT insta5.next_id()")); id <= last {
		t.Errorf("%d after %d and the script once more", id, last)
	}
}

func TestNextIDs(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	last := query[int64](t, db.Conn, "SELECT insta5.next_id()")
	for _, n := range []int{1, 7, 1024, 5000} {
		var ids []int64
		if err := db.QueryRow(t.Context(), "SELECT array_agg(i) FROM insta5.next_ids($1) i", n).Scan(&ids); err != nil {
			t.Fatal(err)
		}
		if len(ids) != n || !slices.IsSorted(ids) || ids[0] <= last || len(slices.Compact(slices.Clone(ids))) != n {
			t.Fatalf("next_ids(%d): %d ids from %d after %d", n, len(ids), ids[0], last)
		}
		last = ids[n-1]
	}
	for _, n := range []string{"0", "-1", "1000001", "NULL"} {
		refused(t, db.Conn, "22023", "SELECT insta5.next_ids("+n+")")
	}
}

// TestBounds holds first_id and last_id against the library's.
func TestBounds(t *testing.T) {
	for _, spec := range []string{"instagram", "time:39@10ms,shard:8,seq:8;epoch=2020-01-01T00:00:00Z", "time:50@10us,seq:3,shard:4;epoch=2026-01-01T00:00:00Z"} {
		l := firn.MustLayout(spec)
		db := newDatabase(t)
		mustExec(t, db.Conn, script(t, l, insta(1)))
		for _, at := range []time.Time{
			l.Epoch(), l.Epoch().Add(l.Unit()), l.Epoch().Add(l.Unit() - time.Microsecond),
			time.Date(2026, 11, 21, 1, 2, 3, 123_000_000, time.UTC), time.Date(2026, 11, 21, 1, 2, 3, 123_999_000, time.UTC), time.Date(2026, 2, 28, 23, 59, 59, 999_999_000, time.UTC),
		} {
			first, last, err := l.Bounds(at, at.Add(1))
			if err != nil {
				t.Fatalf("%v of %s: %v", at, spec, err)
			}
			var a, b int64
			if err := db.QueryRow(t.Context(), "SELECT firn.first_id($1), firn.last_id($1)", at).Scan(&a, &b); err != nil {
				t.Fatal(err)
			}
			if a != int64(first) && !(first == 1 && a == 0) || b != int64(last) {
				t.Errorf("%s: %v: %d to %d, want %d to %d", spec, at, a, b, first, last)
			}
		}
		var a, b, d int64
		var c *int64
		if err := db.QueryRow(t.Context(), "SELECT firn.first_id('1970-01-01'), firn.last_id('1970-01-01'), firn.first_id('200000-01-01'), firn.last_id('200000-01-01')").Scan(&a, &b, &c, &d); err != nil {
			t.Fatal(err)
		}
		if _, last, _ := l.Bounds(l.Epoch(), l.End()); a != 0 || b != 0 || c != nil || d != int64(last) {
			t.Errorf("%s: outside of the layout: %d %d %d %d", spec, a, b, c, d)
		}
	}
}

// TestReplaces takes the place of a function as it was published, under a default
// that uses it.
func TestReplaces(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, published)
	mustExec(t, db.Conn, "CREATE TABLE insta5.photo (id bigint PRIMARY KEY DEFAULT insta5.next_id(), x int)")
	mustExec(t, db.Conn, "INSERT INTO insta5.photo(x) SELECT generate_series(1, 50)")
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	old := query[int64](t, db.Conn, "SELECT max(id) FROM insta5.photo")
	mustExec(t, db.Conn, "INSERT INTO insta5.photo(x) SELECT generate_series(51, 2000)")
	if n := query[int64](t, db.Conn, fmt.Sprintf("SELECT count(*) FROM insta5.photo WHERE x > 50 AND id > %d", old)); n != 1950 {
		t.Errorf("%d of 1950 new ids are above the old ones", n)
	}
	if n := query[int64](t, db.Conn, "SELECT count(*) FROM (SELECT id - lag(id) OVER (ORDER BY x) AS d FROM insta5.photo WHERE x > 50) AS y WHERE d <= 0"); n != 0 {
		t.Errorf("%d ids are below the one before", n)
	}
}

// published is the function of the post "Sharding & IDs at Instagram".
const published = `
CREATE SCHEMA insta5;
CREATE SEQUENCE insta5.table_id_seq;
CREATE OR REPLACE FUNCTION insta5.next_id(OUT result bigint) AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('insta5.table_id_seq') % 1024 INTO seq_id;
    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END;
$$ LANGUAGE PLPGSQL;`

// TestRole: what a role that draws ids may do besides is nothing that could make
// one repeat.
func TestRole(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, "DO $$ BEGIN CREATE ROLE app LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")
	s := insta(5)
	s.Roles = []string{"app"}
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), s))
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(6)))
	app := connect(t, strings.Replace(db.url, "t@", "app@", 1))
	last := query[int64](t, app, "SELECT insta5.next_id()")
	if n := query[int64](t, app, "SELECT count(*) FROM insta5.next_ids(10)"); n != 10 {
		t.Errorf("next_ids(10) gave %d", n)
	}
	const denied = "42501"
	for _, sql := range []string{
		"SELECT setval('insta5.next_id_offset', 1)",
		"SELECT setval('insta5.next_id_counter', 1)",
		"SELECT nextval('insta5.next_id_offset')",
		"ALTER SEQUENCE insta5.next_id_counter RESTART",
		"DROP SEQUENCE insta5.next_id_counter",
		"SELECT firn.close(5)", "SELECT firn.open(5)", "SELECT firn.open_at(5, 0)", "SELECT firn.start(g, 0) FROM firn.generator g",
		"SELECT firn.create_shard(7, 'insta7')", "SELECT firn.refuse('insta5.next_id_offset')",
		"UPDATE firn.shard SET timeline = 'x'", "DELETE FROM firn.generator", "INSERT INTO firn.server(layout) VALUES ('')",
		"CREATE OR REPLACE FUNCTION insta5.next_id(OUT result bigint) LANGUAGE sql AS 'SELECT 1::bigint'",
		"CREATE TABLE firn.x()", "CREATE TABLE insta5.x()",
		"SELECT insta6.next_id()", // another shard, of which it was told nothing
	} {
		refused(t, app, denied, sql)
	}
	// A role that was granted nothing takes no numbers either.
	mustExec(t, db.Conn, "DO $$ BEGIN CREATE ROLE nobody LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
	nobody := connect(t, strings.Replace(db.url, "t@", "nobody@", 1))
	offset := query[uint32](t, db.Conn, "SELECT 'insta5.next_id_offset'::regclass::oid")
	refused(t, nobody, denied, fmt.Sprintf("SELECT firn.advance(%d, NULL)", offset))
	// Names of its own in front of those of pg_catalog change nothing for others.
	mustExec(t, app, `SET search_path = pg_temp, pg_catalog;
		CREATE FUNCTION pg_temp.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
		CREATE FUNCTION pg_temp.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2080-01-01' $$`)
	for range 5 {
		mustExec(t, app, "SELECT firn.advance('insta5.next_id_offset', NULL), firn.advance('insta5.next_id_offset', -1)")
		if id := query[int64](t, db.Conn, "SELECT insta5.next_id()"); id <= last || id-last > 60_000<<23 {
			t.Fatalf("%d after %d", id, last)
		} else {
			last = id
		}
	}
}

func TestCloseOpen(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	last := query[int64](t, db.Conn, "SELECT max(i) FROM insta5.next_ids(100) i")
	bound := query[int64](t, db.Conn, "SELECT firn.pack(firn.close(5), 5)")
	if bound < last {
		t.Errorf("closed at %d, below %d, which it gave", bound, last)
	}
	for _, sql := range []string{"SELECT insta5.next_id()", "SELECT insta5.next_ids(3)"} {
		if e := refused(t, db.Conn, "ID001", sql); e.Hint == "" {
			t.Errorf("%s: no hint in %v", sql, e)
		}
	}
	// Above the state of a close far ahead of this clock.
	mustExec(t, db.Conn, "SELECT firn.open(5, firn.now_state() + 3600000 * 1024::bigint)")
	far := query[int64](t, db.Conn, "SELECT insta5.next_id()")
	if ahead := (far - last) >> 23; ahead < 3_600_000 || ahead > 3_660_000 {
		t.Errorf("opened an hour ahead: %d ms", ahead)
	}
	if id := query[int64](t, db.Conn, "SELECT insta5.next_id()"); id <= far {
		t.Errorf("%d after %d", id, far)
	}
	mustExec(t, db.Conn, "SELECT firn.close(5); SELECT firn.open(5)")
	if id := query[int64](t, db.Conn, "SELECT insta5.next_id()"); id <= far {
		t.Errorf("%d after %d and an open that said nothing of it", id, far)
	}
	// Broken off between the two: nothing is open that should not be.
	mustExec(t, db.Conn, "BEGIN; SELECT firn.close(5); ROLLBACK")
	refused(t, db.Conn, "ID001", "SELECT insta5.next_id()")
	mustExec(t, db.Conn, "SELECT firn.close(5)")
	mustExec(t, db.Conn, "BEGIN; SELECT firn.open(5, firn.now_state() + 7200000 * 1024::bigint); ROLLBACK")
	for range 3 {
		refused(t, db.Conn, "ID001", "SELECT insta5.next_id()")
	}
	refused(t, db.Conn, "ID005", "SELECT firn.open(99)")
}

// TestCopies: a database that is a copy gives no ids until it is opened.
func TestCopies(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	// The state is ahead of the clock, so that no draw needs to advance it.
	ahead := query[int64](t, db.Conn, "SELECT max(i) FROM insta5.next_ids(1000000) i")

	all := dump(t, db.url)
	template := strings.SplitN(strings.SplitN(db.url, "/", 4)[3], "?", 2)[0]
	for _, tt := range []struct {
		name string
		copy func(t *testing.T) *database
	}{
		{"dumped to the same server", func(t *testing.T) *database {
			to := newDatabase(t)
			restoreDump(t, to, all)
			return to
		}},
		{"dumped to another server", func(t *testing.T) *database {
			to := openDatabase(t, testserver.Postgres(t).URL())
			restoreDump(t, to, all)
			return to
		}},
		{"a template's copy", func(t *testing.T) *database {
			db.Close(t.Context())
			admin := connect(t, strings.Replace(db.url, "/"+template+"?", "/postgres?", 1))
			mustExec(t, admin, "CREATE DATABASE "+template+"_twin TEMPLATE "+template)
			return openDatabase(t, strings.Replace(db.url, "/"+template+"?", "/"+template+"_twin?", 1))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := tt.copy(t)
			refused(t, to.Conn, "ID003", "SELECT insta5.next_id()")
			refused(t, to.Conn, "ID003", "SELECT insta5.next_ids(2)")
			mustExec(t, to.Conn, "SELECT firn.open(5)")
			if id := query[int64](t, to.Conn, "SELECT insta5.next_id()"); id <= ahead {
				t.Errorf("%d after %d", id, ahead)
			}
		})
	}
}

func restoreDump(t *testing.T, to *database, dump []byte) {
	t.Helper()
	psql := exec.CommandContext(t.Context(), pgProgram(t, "psql"), "-q", "-v", "ON_ERROR_STOP=1", to.url)
	psql.Stdin = strings.NewReader(string(dump))
	if out, err := psql.CombinedOutput(); err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
}

// TestPromotion: a standby that lacks the last writes is promoted.
func TestPromotion(t *testing.T) {
	primary := testserver.Postgres(t)
	db := openDatabase(t, primary.URL())
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	standby := testserver.PostgresStandby(t, primary)
	mustExec(t, db.Conn, "SELECT insta5.next_ids(100000)") // ahead of the clock, or about there
	last := query[int64](t, db.Conn, "SELECT insta5.next_id()")
	primary.Kill(t)
	standby.Promote(t)
	now := openDatabase(t, standby.URL())
	refused(t, now.Conn, "ID003", "SELECT insta5.next_id()")
	mustExec(t, now.Conn, "SELECT firn.open(5)")
	if id := query[int64](t, now.Conn, "SELECT insta5.next_id()"); id <= last {
		t.Errorf("%d after %d on the old primary", id, last)
	}
}

// TestCrash: after a server was killed, its ids start above every id that was committed. make full kills
// it three times.
func TestCrash(t *testing.T) {
	server := testserver.Postgres(t)
	db := openDatabase(t, server.URL())
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	mustExec(t, db.Conn, "CREATE TABLE insta5.t (id bigint PRIMARY KEY DEFAULT insta5.next_id(), x int)")
	rounds, crowd := 1, 4
	if testserver.Long() {
		rounds, crowd = 3, 8
	}
	for range rounds {
		var wg sync.WaitGroup
		for range crowd {
			wg.Go(func() {
				c, err := pgx.Connect(t.Context(), server.URL())
				if err != nil {
					return
				}
				defer c.Close(context.Background())
				for err == nil {
					_, err = c.Exec(t.Context(), "INSERT INTO insta5.t(x) SELECT generate_series(1, 10)")
				}
			})
		}
		before := query[int64](t, db.Conn, "SELECT count(*) FROM insta5.t")
		for query[int64](t, db.Conn, "SELECT count(*) FROM insta5.t") < before+1000 {
			time.Sleep(time.Millisecond)
		}
		server.Kill(t)
		wg.Wait()
		server.Start(t)
		db = openDatabase(t, server.URL())
		last := query[int64](t, db.Conn, "SELECT max(id) FROM insta5.t")
		if id := query[int64](t, db.Conn, "SELECT insta5.next_id()"); id <= last {
			t.Errorf("%d after %d, which was committed", id, last)
		}
	}
}

func TestLayoutEnds(t *testing.T) {
	db := newDatabase(t)
	l := firn.MustLayout("time:20@1s,shard:4,seq:4;epoch=" + time.Now().Add(-(1<<20-5)*time.Second).UTC().Truncate(time.Second).Format(time.RFC3339))
	mustExec(t, db.Conn, script(t, l, insta(3)))
	var last firn.ID
	for n := 0; ; n++ {
		if n > 10_000 {
			t.Fatalf("ids of a layout that has ended: %d", last)
		}
		id, err := tryQuery[int64](t, db.Conn, "SELECT insta3.next_id()")
		if err != nil {
			var e *pgconn.PgError
			if !errors.As(err, &e) || e.Code != "ID004" {
				t.Fatal(err)
			}
			break
		}
		if firn.ID(id) <= last {
			t.Fatalf("%d after %d", id, last)
		}
		last = firn.ID(id)
	}
	if p, err := l.Decode(last); err != nil || p.Tick != l.Last() {
		t.Errorf("the last id %d is of tick %d, not %d, the last: %v", last, p.Tick, l.Last(), err)
	}
	refused(t, db.Conn, "ID004", "SELECT insta3.next_ids(3)")
}

func TestBadShards(t *testing.T) {
	for _, tt := range []struct {
		layout string
		shard  install.Definition
		want   string
	}{
		{"instagram", install.Definition{Number: 8192, Schema: "x"}, "layout instagram has shards 0 to 8191"},
		{"instagram", install.Definition{Number: -1, Schema: "x"}, "shards 0 to 8191"},
		{"instagram", install.Definition{Number: 1}, "no schema"},
		{"instagram", install.Definition{Number: 1, Schema: "firn"}, "not for shards"},
		{"instagram", install.Definition{Number: 1, Schema: strings.Repeat("x", 64)}, "longer than"},
		{"twitter", install.Definition{Number: 1, Schema: "x"}, "and no"},
		{"time:41@1ms,seq:10;epoch=2025-01-01T00:00:00Z", install.Definition{Schema: "x"}, "has no shard"},
	} {
		err := install.WriteSQL(&strings.Builder{}, firn.MustLayout(tt.layout), tt.shard)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, %+v: %v, want %q", tt.layout, tt.shard, err, tt.want)
		}
	}
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	other := firn.MustLayout("instagram;epoch=2020-01-01T00:00:00Z")
	if _, err := db.Exec(t.Context(), script(t, other, insta(6)), pgx.QueryExecModeSimpleProtocol); err == nil || !strings.Contains(err.Error(), "has the layout") {
		t.Errorf("a second layout: %v", err)
	}
	mustExec(t, db.Conn, "ROLLBACK")
	if _, err := db.Exec(t.Context(), script(t, firn.MustLayout("instagram"), install.Definition{Number: 5, Schema: "elsewhere"}), pgx.QueryExecModeSimpleProtocol); err == nil || !strings.Contains(err.Error(), "is in the schema insta5") {
		t.Errorf("another schema: %v", err)
	}
	mustExec(t, db.Conn, "ROLLBACK")
	if n := query[int64](t, db.Conn, "SELECT count(*) FROM firn.shard"); n != 1 {
		t.Errorf("%d shards after what was refused", n)
	}
}

// TestTables: a generator for each table.
func TestTables(t *testing.T) {
	db := newDatabase(t)
	s := install.Definition{Number: 5, Schema: "odd \"schema\"'s", Tables: []string{"photo", "Like"}}
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), s))
	var a, b int64
	if err := db.QueryRow(t.Context(), `SELECT "odd ""schema""'s".photo_next_id(), "odd ""schema""'s"."Like_next_id"()`).Scan(&a, &b); err != nil {
		t.Fatal(err)
	}
	if a>>10&8191 != 5 || b>>10&8191 != 5 {
		t.Errorf("%d and %d are not of shard 5", a, b)
	}
	mustExec(t, db.Conn, "SELECT firn.close(5)")
	refused(t, db.Conn, "ID001", `SELECT "odd ""schema""'s"."Like_next_id"()`)
	refused(t, db.Conn, "ID001", `SELECT "odd ""schema""'s".photo_next_ids(2)`)
}

// TestIndex: a range of time is read from the primary key.
func TestIndex(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	mustExec(t, db.Conn, "CREATE TABLE insta5.t (id bigint PRIMARY KEY DEFAULT insta5.next_id(), x int); INSERT INTO insta5.t(x) SELECT generate_series(1, 20000); ANALYZE insta5.t")
	plan := query[string](t, db.Conn, "EXPLAIN (FORMAT JSON) SELECT * FROM insta5.t WHERE id BETWEEN firn.first_id(now() + interval '1 day') AND firn.last_id(now() + interval '2 days')")
	if !strings.Contains(plan, `"Index Name": "t_pkey"`) || !strings.Contains(plan, "Index Cond") {
		t.Error(plan)
	}
}

// TestPooled draws through a pooler in transaction mode.
func TestPooled(t *testing.T) {
	server := testserver.Postgres(t)
	db := openDatabase(t, server.URL())
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	pooled := &database{testserver.PgBouncer(t, server).URL() + "&default_query_exec_mode=exec", nil}
	ids, repeats, inversions := judge(drawers(t, pooled, 16, time.Second, draw100))
	t.Logf("%d ids, %d repeats, %d inversions", ids, repeats, inversions)
	if ids < 1000 || repeats > 0 || inversions > 0 {
		t.Errorf("%d ids: %d repeats, %d inversions", ids, repeats, inversions)
	}
}

// TestReplacesOnlyItsLayout: a function whose ids are of another layout or shard is not
// replaced: the new ids could be below the old ones, and meet them one day.
func TestReplacesOnlyItsLayout(t *testing.T) {
	seconds := strings.NewReplacer("our_epoch bigint := 1314220021721", "our_epoch bigint := 1314220021", "* 1000", "* 1")
	for what, tt := range map[string]struct{ layout, function string }{
		"other bits":   {"sharded", published},
		"other epoch":  {"instagram;epoch=1314220021000", strings.Replace(published, "1314220021721", "1293843600000", 1)},
		"other unit":   {"instagram", seconds.Replace(published)},
		"other shard":  {"instagram", strings.Replace(published, "shard_id int := 5", "shard_id int := 6", 1)},
		"never worked": {"instagram", strings.Replace(published, "% 1024", "%% 1024", 1)},
	} {
		t.Run(what, func(t *testing.T) {
			db := newDatabase(t)
			mustExec(t, db.Conn, tt.function)
			if e := refusedScript(t, db.Conn, script(t, firn.MustLayout(tt.layout), insta(5))); e.Hint == "" || !strings.Contains(e.Message, "insta5.next_id that is there") {
				t.Error(e)
			}
			if n := query[int64](t, db.Conn, "SELECT count(*) FROM pg_namespace WHERE nspname = 'firn'"); n != 0 {
				t.Error("the schema firn was made")
			}
		})
	}
}

// TestFastPathEnds: a draw without the lock gives no id past the end of the layout, though it is
// within a second of the clock.
func TestFastPathEnds(t *testing.T) {
	db := newDatabase(t)
	l := firn.MustLayout("instagram")
	mustExec(t, db.Conn, script(t, l, insta(5)))
	limit := (int64(l.Last()) + 1) << 10
	id := query[int64](t, db.Conn, fmt.Sprintf("SELECT firn.id('insta5.next_id_offset', 5, 0, %d, 0, %d, true)", limit, limit-1))
	if p, err := l.Decode(firn.ID(id)); err != nil || p.Time.After(time.Now().Add(time.Minute)) {
		t.Errorf("%d of %s, %v: it is past the end", id, p.Time, err)
	}
}
