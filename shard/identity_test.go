package shard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/install"
)

// dump is what pg_dump prints of a database. One of version 17 or newer sets what servers before 17 do not know.
func dump(t *testing.T, url string, arguments ...string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), pgProgram(t, "pg_dump"), append(arguments, url)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(out, []byte("SET transaction_timeout = 0;\n"), nil)
}

func pgProgram(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		t.Fatalf("there is no %s", name)
	}
	return found[len(found)-1]
}

// TestSchemaCopied: a schema that is restored into a database with shards of its own
// gives no ids, above all none with the states of another shard.
func TestSchemaCopied(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	last := query[int64](t, db.Conn, "SELECT insta5.next_id()")
	for _, arguments := range [][]string{{"-n", "insta5"}, {"-n", "insta5", "--schema-only"}} {
		to := newDatabase(t)
		mustExec(t, to.Conn, script(t, firn.MustLayout("instagram"), insta(7)))
		restoreDump(t, to, dump(t, db.url, arguments...))
		refused(t, to.Conn, "ID005", "SELECT insta5.next_id()")
		refused(t, to.Conn, "ID005", "SELECT * FROM insta5.next_ids(3)")
		mustExec(t, to.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
		if id := query[int64](t, to.Conn, "SELECT insta5.next_id()"); id <= last {
			t.Errorf("%d after %d", id, last)
		}
	}
}

// TestRestoredInPlace: a database that is dropped and restored under its name, on its
// server, is a copy as well.
func TestRestoredInPlace(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	mustExec(t, db.Conn, "UPDATE firn.server SET cluster = 'the only one', name = 'a'")
	mustExec(t, db.Conn, "SELECT firn.open(5, firn.now_state() + 3600 * 1024000::bigint)")
	last := query[int64](t, db.Conn, "SELECT insta5.next_id()")
	all := dump(t, db.url)
	db.Close(t.Context())
	name := db.Config().Database
	admin := connect(t, testserver.Shared(t, testserver.Postgres).URL())
	mustExec(t, admin, "DROP DATABASE "+name)
	mustExec(t, admin, "CREATE DATABASE "+name)
	to := openDatabase(t, db.url)
	mustExec(t, to.Conn, "CREATE TABLE moves_the_oids()")
	restoreDump(t, to, all)
	const enter = "SELECT firn.enter(5, 'the only one')"
	refused(t, to.Conn, "ID003", enter)
	refused(t, to.Conn, "ID003", "SELECT insta5.next_id()")
	mustExec(t, to.Conn, script(t, firn.MustLayout("instagram"), insta(5))) // which opens nothing
	refused(t, to.Conn, "ID003", enter)
	refused(t, to.Conn, "ID003", "SELECT insta5.next_id()")
	mustExec(t, to.Conn, "SELECT firn.take_incarnation(), firn.open(5)")
	mustExec(t, to.Conn, enter)
	if id := query[int64](t, to.Conn, "SELECT insta5.next_id()"); id <= last {
		t.Errorf("%d after %d", id, last)
	}
}

// TestFirnDropped: the schema firn is dropped and made again, for the shards in
// another order.
func TestFirnDropped(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(6)))
	mustExec(t, db.Conn, "SELECT firn.open(5, firn.now_state() + 3600 * 1024000::bigint)")
	last := query[int64](t, db.Conn, "SELECT insta5.next_id()")
	mustExec(t, db.Conn, "DROP SCHEMA firn CASCADE")
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(6)))
	refused(t, db.Conn, "ID005", "SELECT firn.advance('insta5.next_id_offset', NULL)")
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	if id := query[int64](t, db.Conn, "SELECT insta5.next_id()"); id <= last {
		t.Errorf("%d after %d", id, last)
	}
}

// TestSequencesDropped: what was dropped is made again by the script.
func TestSequencesDropped(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	for _, drop := range []string{
		"DROP SEQUENCE insta5.next_id_counter", "DROP SEQUENCE insta5.next_id_offset", "DROP SCHEMA insta5 CASCADE",
	} {
		last := query[int64](t, db.Conn, "SELECT insta5.next_id()")
		mustExec(t, db.Conn, drop)
		mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
		if id := query[int64](t, db.Conn, "SELECT insta5.next_id()"); id <= last {
			t.Errorf("%s: %d after %d", drop, id, last)
		}
	}
}

// TestMoreTables: a generator that is added to a shard opens none that is closed, and
// begins above those that are there.
func TestMoreTables(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	mustExec(t, db.Conn, "SELECT firn.open(5, firn.now_state() + 3600 * 1024000::bigint)")
	last := query[int64](t, db.Conn, "SELECT insta5.next_id()")
	more := func(tables ...string) string {
		s := insta(5)
		s.Tables = tables
		return script(t, firn.MustLayout("instagram"), s)
	}
	mustExec(t, db.Conn, more("photo"))
	if id := query[int64](t, db.Conn, "SELECT insta5.photo_next_id()"); id <= last {
		t.Errorf("%d after %d", id, last)
	}
	mustExec(t, db.Conn, "SELECT firn.close(5)")
	mustExec(t, db.Conn, more("photo", "likes"))
	for _, name := range []string{"next_id", "photo_next_id", "likes_next_id"} {
		refused(t, db.Conn, "ID001", "SELECT insta5."+name+"()")
	}
	mustExec(t, db.Conn, "SELECT firn.open(5)")
	if id := query[int64](t, db.Conn, "SELECT insta5.likes_next_id()"); id <= last {
		t.Errorf("%d after %d", id, last)
	}
}

// TestDurable: what a close and an open say is on disk when they are acknowledged,
// also where commits are not.
func TestDurable(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	for _, tt := range []struct{ set, want string }{{"off", "on"}, {"local", "on"}, {"remote_apply", "remote_apply"}} {
		for _, call := range []string{"close", "open"} {
			mustExec(t, db.Conn, "SET synchronous_commit = "+tt.set+"; BEGIN; SELECT firn."+call+"(5)")
			if got := query[string](t, db.Conn, "SHOW synchronous_commit"); got != tt.want {
				t.Errorf("%s with synchronous_commit = %s commits with %s", call, tt.set, got)
			}
			mustExec(t, db.Conn, "COMMIT")
		}
	}
}

// TestOpenFarAhead: an id in the place of a state does not end the shard.
func TestOpenFarAhead(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	id := query[int64](t, db.Conn, "SELECT insta5.next_id()")
	refused(t, db.Conn, "22023", fmt.Sprintf("SELECT firn.open(5, %d)", id))
	if next := query[int64](t, db.Conn, "SELECT insta5.next_id()"); next <= id || next>>23-id>>23 > 60_000 {
		t.Errorf("%d after %d", next, id)
	}
}

// TestForeignOperators: operators that a role made in a schema of everybody's search
// path have no part in an id.
func TestForeignOperators(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	types := []string{"integer", "bigint", "numeric", "double precision", "interval"}
	for i, left := range types {
		for j, right := range types {
			for k, op := range []string{"+", "-", "*", "/", "&", "|", "<<", ">>", "<", "<=", ">", ">=", "="} {
				f := fmt.Sprintf("evil%d_%d_%d", i, j, k)
				mustExec(t, db.Conn, fmt.Sprintf(`CREATE FUNCTION %[1]s(a %[2]s, b %[3]s) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE '%[2]s %[4]s %[3]s'; END $$;
					CREATE OPERATOR %[4]s (FUNCTION = %[1]s, LEFTARG = %[2]s, RIGHTARG = %[3]s)`, f, left, right, op))
			}
		}
	}
	c := connect(t, db.url)
	mustExec(t, c, `SELECT insta5.next_id() FROM generate_series(1, 10); SELECT insta5.next_ids(10);
		SELECT firn.pack(5, 5), firn.decode(5), firn.first_id('2020-01-01'), firn.last_id('2020-01-01'), firn.last_id('2000-01-01'), firn.now_state()`)
}

// TestCancelled: a draw that is cancelled while it waits leaves no lock.
func TestCancelled(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	mustExec(t, db.Conn, fmt.Sprintf("SELECT pg_advisory_lock(%d, 'insta5.next_id_offset'::regclass::oid::integer)", 0x6669726e))
	slow := connect(t, db.url)
	time.Sleep(time.Millisecond) // past the state
	mustExec(t, slow, "BEGIN; SET LOCAL statement_timeout = '500ms'; SAVEPOINT a")
	refused(t, slow, "57014", "SELECT insta5.next_id()")
	mustExec(t, db.Conn, "SELECT pg_advisory_unlock_all()")
	mustExec(t, slow, "ROLLBACK TO a; SELECT insta5.next_id()")
	if n := query[int64](t, db.Conn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); n != 0 {
		t.Errorf("%d locks are left", n)
	}
	mustExec(t, db.Conn, "SELECT insta5.next_id()")
}

// TestFeedIsParallel: a query of a range of time may be run in parallel.
func TestFeedIsParallel(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	mustExec(t, db.Conn, "CREATE TABLE t AS SELECT generate_series(1, 10000) AS id; ANALYZE t; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0")
	plan := query[string](t, db.Conn, "EXPLAIN (FORMAT JSON) SELECT count(*) FROM t WHERE id BETWEEN firn.first_id('2012-01-01') AND firn.last_id('2030-01-01')")
	if !strings.Contains(plan, "Workers Planned") {
		t.Error(plan)
	}
	plan = query[string](t, db.Conn, "EXPLAIN (FORMAT JSON) SELECT insta5.next_id() FROM t")
	if strings.Contains(plan, "Workers Planned") {
		t.Errorf("a draw by parallel workers: %s", plan)
	}
}

// TestExistingObjects: what stands in the place of a generator is refused with its
// name, and nothing is changed.
func TestExistingObjects(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, "CREATE SCHEMA insta5")
	for _, tt := range []struct{ sql, want string }{
		{"CREATE SEQUENCE insta5.next_id_counter CACHE 10", "without CACHE"},
		{"CREATE SEQUENCE insta5.next_id_offset INCREMENT -1", "without CACHE"},
		{"CREATE TABLE insta5.next_id_offset()", "not as a sequence"},
		{"CREATE FUNCTION insta5.next_id() RETURNS integer LANGUAGE sql AS 'SELECT 1'", "cannot change return type"},
		{"CREATE FUNCTION insta5.next_ids(n integer) RETURNS bigint[] LANGUAGE sql AS 'SELECT NULL::bigint[]'", "cannot change return type"},
	} {
		mustExec(t, db.Conn, "BEGIN; "+tt.sql)
		// The script begins a transaction of its own, of which this one warns.
		_, err := db.Exec(t.Context(), script(t, firn.MustLayout("instagram"), insta(5)), pgx.QueryExecModeSimpleProtocol)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.sql, err)
		}
		mustExec(t, db.Conn, "ROLLBACK")
	}
	const id = "(((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23) | (5 << 10)"
	for _, sql := range []string{
		"CREATE FUNCTION insta5.next_id() RETURNS bigint LANGUAGE sql AS 'SELECT " + id + "'",
		"CREATE FUNCTION insta5.next_id() RETURNS bigint STRICT IMMUTABLE SECURITY DEFINER PARALLEL SAFE LANGUAGE plpgsql AS 'BEGIN RETURN " + id + "; END'",
	} {
		mustExec(t, db.Conn, "DROP SCHEMA IF EXISTS firn, insta5 CASCADE; CREATE SCHEMA insta5; "+sql)
		mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
		if plan := query[string](t, db.Conn, "EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) SELECT insta5.next_id()"); !strings.Contains(plan, "firn.id(") {
			t.Errorf("next_id is not inlined: %s", plan)
		}
	}
	if _, err := db.Exec(t.Context(), script(t, firn.MustLayout("instagram"), install.Definition{Number: 6, Schema: "insta5"}), pgx.QueryExecModeSimpleProtocol); err == nil || !strings.Contains(err.Error(), "is that of another shard") {
		t.Errorf("a second shard in a schema: %v", err)
	}
	mustExec(t, db.Conn, "ROLLBACK")
}

// TestPreparedDraws: statements that were planned before a close, an open and the
// script once more follow them.
func TestPreparedDraws(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	c := connect(t, db.url)
	if _, err := c.Prepare(t.Context(), "draw", "SELECT insta5.next_id()"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, c, "SET plan_cache_mode = force_generic_plan")
	var last int64
	draw := func() error {
		var id int64
		if err := c.QueryRow(context.Background(), "draw").Scan(&id); err != nil {
			return err
		}
		if id <= last {
			t.Errorf("%d after %d", id, last)
		}
		last = id
		return nil
	}
	for range 3 {
		if err := draw(); err != nil {
			t.Fatal(err)
		}
		mustExec(t, db.Conn, "SELECT firn.close(5)")
		if err := draw(); err == nil {
			t.Error("drawn after a close")
		}
		mustExec(t, db.Conn, "SELECT firn.open(5)")
		mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	}
}

// TestRenamed: a database with another name is a copy until it has its own again.
func TestRenamed(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	mustExec(t, db.Conn, "SELECT firn.open(5, firn.now_state() + 500000)") // no draw needs to advance
	db.Close(t.Context())
	name := db.Config().Database
	admin := connect(t, testserver.Shared(t, testserver.Postgres).URL())
	mustExec(t, admin, "ALTER DATABASE "+name+" RENAME TO "+name+"_other")
	renamed := connect(t, strings.Replace(db.url, "/"+name+"?", "/"+name+"_other?", 1))
	refused(t, renamed, "ID003", "SELECT insta5.next_id()")
	renamed.Close(t.Context())
	mustExec(t, admin, "ALTER DATABASE "+name+"_other RENAME TO "+name)
	mustExec(t, connect(t, db.url), "SELECT insta5.next_id()")
}

// TestForeignSchema: what another role made is not built on.
func TestForeignSchema(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, `DO $$ BEGIN CREATE ROLE "Odd one"; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
		CREATE SCHEMA firn AUTHORIZATION "Odd one"`)
	e := refusedScript(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	if e.Code != "42501" || e.Hint != `as that role, if it is trusted: SET ROLE "Odd one"` {
		t.Errorf("%v, %q", e, e.Hint)
	}
	mustExec(t, db.Conn, fmt.Sprintf(`GRANT CREATE ON DATABASE %s TO "Odd one"; SET ROLE "Odd one"`, db.Config().Database))
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5))) // no superuser
	mustExec(t, db.Conn, "SELECT insta5.next_id(), firn.close(5); RESET ROLE")
}

func refusedScript(t *testing.T, c *pgx.Conn, sql string) *pgconn.PgError {
	t.Helper()
	_, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	mustExec(t, c, "ROLLBACK")
	return e
}

// TestOpenWhatMoved: a shard that has moved is not opened here, whatever somebody read
// before it had: another server has it. On a server of a cluster no message says to.
func TestOpenWhatMoved(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	mustExec(t, db.Conn, "SELECT firn.close(5)")
	if e := refused(t, db.Conn, "ID001", "SELECT insta5.next_id()"); !strings.Contains(e.Hint, "SELECT firn.open(5)") {
		t.Error(e.Hint)
	}
	mustExec(t, db.Conn, "UPDATE firn.server SET cluster = 'x', name = 'a'; UPDATE firn.shard SET state = 'moved', moved_to = 'b'")
	for _, sql := range []string{"SELECT firn.open(5)", "SELECT firn.open_at(5, 0)"} {
		if e := refused(t, db.Conn, "ID002", sql); e.Detail != "b" {
			t.Errorf("%s: %+v", sql, e)
		}
	}
	for _, tt := range []struct{ spoil, code, hint string }{
		{"UPDATE firn.shard SET state = 'closed', moved_to = NULL", "ID001", "firn shard doctor"},
		{"SELECT firn.open(5); UPDATE firn.shard SET timeline = '00000009'; SELECT setval('insta5.next_id_offset', 5, false)", "ID003", "firn shard reopen a"},
	} {
		mustExec(t, db.Conn, tt.spoil)
		if e := refused(t, db.Conn, tt.code, "SELECT insta5.next_id()"); !strings.Contains(e.Hint, tt.hint) || strings.Contains(e.Hint, "firn.open") {
			t.Errorf("%s: %s", tt.code, e.Hint)
		}
	}
}
