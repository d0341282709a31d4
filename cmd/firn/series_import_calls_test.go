//go:build !windows

package main

import (
	"bytes"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/takeover"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store/open"
)

// A queried is the database of somebody else, which a query must not change.
type queried struct {
	url  string
	db   *sql.DB
	exec func(sql string)
}

// queriedDatabase opens a database of somebody else.
func queriedDatabase(t *testing.T, url string) queried {
	t.Helper()
	db, err := open.Database(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return queried{url, db, func(sql string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), sql); err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
	}}
}

// wantRefused reads a query, whose error has to have a text; none: it has to be read.
func (f queried) wantRefused(t *testing.T, query, want string) {
	t.Helper()
	_, _, err := takeover.Read(t.Context(), f.url, query)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v; want %q", query, err, want)
	}
}

// PostgreSQL sorts, groups and hashes with the functions of an operator class.
func TestImportComparesNothing(t *testing.T) {
	const weird = `
		CREATE TYPE weird AS (a integer);
		CREATE FUNCTION less(weird, weird) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1.a < $2.a';
		CREATE FUNCTION same(weird, weird) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1.a = $2.a';
		CREATE FUNCTION compare(weird, weird) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT $1.a - $2.a';
		CREATE FUNCTION hash(weird) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT $1.a';
		CREATE OPERATOR <# (FUNCTION = less, LEFTARG = weird, RIGHTARG = weird);
		CREATE OPERATOR <=# (FUNCTION = less, LEFTARG = weird, RIGHTARG = weird);
		CREATE OPERATOR =# (FUNCTION = same, LEFTARG = weird, RIGHTARG = weird, MERGES, HASHES);
		CREATE OPERATOR >=# (FUNCTION = less, LEFTARG = weird, RIGHTARG = weird);
		CREATE OPERATOR ># (FUNCTION = less, LEFTARG = weird, RIGHTARG = weird);
		CREATE OPERATOR CLASS odd_order DEFAULT FOR TYPE weird USING btree
			AS OPERATOR 1 <#, OPERATOR 2 <=#, OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#, FUNCTION 1 compare(weird, weird);
		CREATE OPERATOR CLASS odd_hash DEFAULT FOR TYPE weird USING hash AS OPERATOR 1 =#, FUNCTION 1 hash(weird);
		CREATE TABLE c (name text, n integer, step integer, odd weird, odds weird[]);
		INSERT INTO c VALUES ('a', 5, 1, ROW(1), ARRAY[ROW(1)::weird]), ('b', 6, 1, ROW(2), ARRAY[ROW(2)::weird])`
	queries := []string{
		"SELECT name, n, step FROM c ORDER BY odd",
		"SELECT DISTINCT ON (odd) name, n, step FROM c",
		"SELECT min(name), min(n), min(step) FROM c GROUP BY odd",
		"SELECT name, n, step FROM (SELECT * FROM c UNION SELECT * FROM c) AS x",
		"SELECT name, n, step FROM c WHERE odd IN (SELECT odd FROM c)",
		"SELECT name, n, step FROM c ORDER BY ARRAY(SELECT odd)",
		"SELECT name, n, step FROM c ORDER BY ROW(odd, 1)",
		"SELECT name, n, step FROM c ORDER BY c",
		"SELECT name, n, step FROM c WHERE GREATEST(odd, odd) IS NOT NULL",
		"SELECT name, rank() OVER (ORDER BY odd), step FROM c",
	}
	server := testserver.Shared(t, testserver.Postgres)
	for _, made := range []struct{ name, volatile, want string }{
		{"pure", "", ""},
		{"order", "CREATE OR REPLACE FUNCTION compare(weird, weird) RETURNS integer VOLATILE LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''it was run''; END'", "runs the operator class odd_order"},
		{"hash", "CREATE OR REPLACE FUNCTION hash(weird) RETURNS integer VOLATILE LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''it was run''; END'", "runs the operator class odd_hash"},
		{"operator", "CREATE OR REPLACE FUNCTION less(weird, weird) RETURNS boolean VOLATILE LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''it was run''; END'", "runs the operator class odd_order"},
	} {
		url := database(t, server, "compared_"+made.name)
		t.Run(made.name, func(t *testing.T) {
			f := queriedDatabase(t, url)
			f.exec(weird)
			if made.volatile != "" {
				f.exec(made.volatile)
			}
			for _, query := range queries {
				f.wantRefused(t, query, made.want)
			}
		})
	}
}

// A function is excused that PostgreSQL has itself, not a namesake, nor one between two texts
// that have quotes.
func TestImportExcusesNoNamesake(t *testing.T) {
	f := queriedDatabase(t, database(t, testserver.Shared(t, testserver.Postgres), "namesake"))
	f.exec("CREATE SEQUENCE s; SELECT nextval('s')")
	const last = "SELECT sequencename, last_value, 1 FROM pg_sequences"
	f.wantRefused(t, last, "")
	for _, query := range []string{
		`SELECT '"' || lo_create(0)::text || '" (', 1, 1`,
		`SELECT x.name, n, 1 FROM (VALUES ('"', lo_create(0)::bigint), ('" (', 1)) AS x (name, n)`,
		`SELECT 'a', 1, 1 LIMIT coalesce('"' = '', lo_create(0) > 0, '" (' = '')::int`,
	} {
		f.wantRefused(t, query, "runs the function lo_create")
	}
	f.exec("CREATE FUNCTION pg_sequence_last_value(integer) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''it was run''; END'")
	f.wantRefused(t, "SELECT 'a', public.pg_sequence_last_value(1), 1", "runs the function pg_sequence_last_value")
	f.wantRefused(t, "SELECT 'a', pg_sequence_last_value(1), 1", "runs the function pg_sequence_last_value")
}

// harm changes what outlasts a session, in a transaction for reading, too.
const harm = "RETURNS integer BEGIN SET GLOBAL max_connections = 99; RETURN 5; END"

// MySQL and MariaDB carry out what a function does in a transaction for reading.
func TestImportCallsNothing(t *testing.T) {
	server := testserver.MariaDB(t)
	f := queriedDatabase(t, server.URL())
	for _, sql := range []string{
		"CREATE TABLE c (name varchar(20), n integer DEFAULT 5, step integer)", "INSERT INTO c VALUES ('a', 5, 1)",
		"CREATE DATABASE other", "CREATE SEQUENCE s",
		"CREATE FUNCTION f() " + harm, "CREATE FUNCTION other.g() " + harm, "CREATE FUNCTION other.name() " + harm,
		"CREATE FUNCTION `odd ``name`() " + harm, "CREATE FUNCTION 1f() " + harm, "CREATE FUNCTION `max`(n integer) " + harm,
		"CREATE AGGREGATE FUNCTION worst(x integer) RETURNS integer BEGIN DECLARE EXIT HANDLER FOR NOT FOUND RETURN 5; SET GLOBAL max_connections = 99; LOOP FETCH GROUP NEXT ROW; END LOOP; END",
		"CREATE VIEW v AS SELECT 'it''s \\\\ `' AS name, f() AS n, 1 AS step", "CREATE VIEW over_v AS SELECT * FROM v",
		"CREATE VIEW other.over_f AS SELECT 'a' AS name, test.f() AS n, 1 AS step",
		"CREATE VIEW max_v AS SELECT 'a' AS name, `max` (1) AS n, 1 AS step",
		"CREATE VIEW waits AS SELECT 'a' AS name, get_lock('x', 0) AS n, 1 AS step",
		"CREATE VIEW calm AS WITH x (a, b) AS (SELECT 'f(', 1) SELECT lower(name) AS name, coalesce(n, 3) AS n, cast(step AS decimal(10, 0)) AS step FROM c JOIN x ON (b = step) WHERE n IN (5, 6)",
		"CREATE USER low", "GRANT SELECT ON test.over_v TO low", "GRANT SELECT ON test.calm TO low",
		"CREATE USER shown", "GRANT SELECT, SHOW VIEW ON test.over_v TO shown",
	} {
		f.exec(sql)
	}
	check := func(t *testing.T, f queried, query, want string) {
		t.Helper()
		f.wantRefused(t, query, want)
		var connections int
		if err := f.db.QueryRowContext(t.Context(), "SELECT @@GLOBAL.max_connections").Scan(&connections); err != nil {
			t.Fatal(err)
		}
		if connections == 99 {
			t.Errorf("%s was run", query)
			f.exec("SET GLOBAL max_connections = 151")
		}
	}
	f.exec("SET GLOBAL max_connections = 151")
	for query, want := range map[string]string{
		"SELECT 'a', f(), 1":                                             "runs the function f,",
		"SELECT 'a', F (), 1":                                            "runs the function F,",
		"SELECT 'a', f\v(), 1":                                           "runs the function f,",
		"SELECT 'a', test.f(), 1":                                        "runs the function f,",
		"SELECT 'a', test . `f` (), 1":                                   "runs the function f,",
		"SELECT 'a', `f`(), 1":                                           "runs the function f,",
		`SELECT 'a', "f"(), 1`:                                           "runs the function f,",
		"SELECT 'a', other.g(), 1":                                       "runs the function g,",
		"SELECT 'a', other.name(), 1":                                    "runs the function name,",
		"SELECT 'a', `odd ``name`(), 1":                                  "runs the function odd `name,",
		"SELECT 'a', 1f(), 1":                                            "runs the function 1f,",
		"SELECT 'a', max (1), 1":                                         "runs the function max,",
		"SELECT 'a', test.max(1), 1":                                     "runs the function max,",
		"SELECT 'a', f/**/(), 1":                                         "--query has /*",
		"SELECT 'a', /*! f() */, 1":                                      "--query has /*",
		"SELECT 'a', /*M! f() */, 1":                                     "--query has /*",
		"SELECT 'a', f-- x\n(), 1":                                       "--query has --",
		"SELECT 'a', f# x\n(), 1":                                        "--query has #",
		`SELECT '"', f(), '" ('`:                                         "runs the function f,",
		"SELECT '`', f(), '` ('":                                         "runs the function f,",
		"SELECT * FROM (VALUES ('a', 1, 1), ('b', f(), 1)) AS x":         "runs the function f,",
		"VALUES ('a', f(), 1)":                                           "runs the function f,",
		"SELECT name, worst(n), 1 FROM c GROUP BY name":                  "runs the function worst,",
		"SELECT name, n, step FROM c ORDER BY f()":                       "runs the function f,",
		"WITH x (a) AS (SELECT f()) SELECT 'a', a, 1 FROM x":             "runs the function f,",
		"SELECT name, n, step FROM v":                                    "view v, which runs the function f:",
		"SELECT name, n, step FROM `over_v`":                             "view v, which runs the function f:",
		"SELECT name, n, step FROM test.over_v":                          "view v, which runs the function f:",
		"SELECT name, n, step FROM other.over_f":                         "view over_f, which runs the function f:",
		"SELECT name, n, step FROM max_v":                                "view max_v, which runs the function max:",
		"SELECT name, n, step FROM waits":                                "view waits, which runs the function get_lock:",
		"SELECT 'a', get_lock('x', 1), 1":                                "runs the function get_lock,",
		"SELECT 'a', `get_lock`('x', 1), 1":                              "runs the function get_lock,",
		"SELECT 'a', release_lock('x'), 1":                               "runs the function release_lock,",
		"SELECT 'a', release_all_locks(), 1":                             "runs the function release_all_locks,",
		"SELECT 'a', length(load_file('/etc/passwd')), 1":                "runs the function load_file,",
		"SELECT 'a', SLEEP(1), 1":                                        "runs the function SLEEP,",
		"SELECT 'a', benchmark(10, md5('a')), 1":                         "runs the function benchmark,",
		"SELECT 'a', master_pos_wait('x', 1, 1), 1":                      "runs the function master_pos_wait,",
		"SELECT 'a', source_pos_wait('x', 1, 1), 1":                      "runs the function source_pos_wait,",
		"SELECT 'a', master_gtid_wait('0-1-1', 1), 1":                    "runs the function master_gtid_wait,",
		"SELECT 'a', wait_for_executed_gtid_set('x', 1), 1":              "runs the function wait_for_executed_gtid_set,",
		"SELECT 'a', last_insert_id(7), 1":                               "runs the function last_insert_id,",
		"SELECT 'a', lastval(s), 1":                                      "runs the function lastval,",
		"SELECT 'a', `nextval`(s), 1":                                    "runs the function nextval,",
		"SELECT 'a', nextval(s), 1":                                      "--query has NEXTVAL",
		"SELECT 'a', setval(s, 9), 1":                                    "--query has SETVAL",
		"SELECT name, default(n), step FROM c":                           "runs the function default,",
		"SELECT 'a', sys_exec('true'), 1":                                "runs the function sys_exec,",
		"SELECT 'a', 1, 1 INTO @a, @b, @c":                               "--query has INTO",
		"SELECT 'a', 1, 1 INTO OUTFILE 'x'":                              "--query has INTO",
		"SELECT 'a', 1, 1 INTO DUMPFILE 'x'":                             "--query has INTO",
		"SELECT name, n, step FROM c FOR UPDATE":                         "--query has FOR UPDATE",
		"SELECT name, n, step FROM c FOR SHARE":                          "--query has FOR SHARE",
		"SELECT name, n, step FROM c LOCK IN SHARE MODE":                 "--query has LOCK IN",
		"HANDLER c OPEN":                                                 "--query is no query",
		"SELECT 'a', @a := 1, 1":                                         "", // in this session only
		"SELECT 'max(', 1, 1":                                            "",
		"SELECT name, n, step FROM calm":                                 "",
		"SELECT NAME, n, step FROM c":                                    "",
		"SELECT lower(name), coalesce(min(n), 0), (1) FROM c GROUP BY 1": "",
		"WITH x (a, b) AS (SELECT name, n FROM c) SELECT a, b, cast(b AS decimal(10, 0)) FROM x WHERE b IN (5)": "",
		"SELECT 'a', count(*), 1 FROM information_schema.tables":                                                "",
	} {
		check(t, f, query, want)
	}
	f.exec("SET GLOBAL sql_mode = 'ANSI_QUOTES,IGNORE_SPACE,NO_BACKSLASH_ESCAPES'")
	check(t, f, `SELECT "name", n, step FROM "calm"`, "")
	check(t, f, `SELECT 'a', "f" (), 1`, "runs the function f,")
	check(t, f, `SELECT "name", n, step FROM "over_v"`, "view v, which runs the function f:")
	f.url = strings.Replace(server.URL(), "root@", "low@", 1)
	check(t, f, "SELECT name, n, step FROM calm", "view calm, and the user low@% may not see")
	check(t, f, "SELECT name, n, step FROM over_v", "view over_v, and the user low@% may not see")
	f.url = strings.Replace(server.URL(), "root@", "shown@", 1)
	check(t, f, "SELECT name, n, step FROM over_v", "a view over tables or views that the user may not read")
}

// SQLite loads nothing and attaches nothing.
func TestImportFromSQLiteCallsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE c (name, n, step); INSERT INTO c VALUES ('a', 5, 1); CREATE VIRTUAL TABLE words USING fts5 (x);
		CREATE VIEW loads AS SELECT 'a' AS name, load_extension('none.so') AS n, 1 AS step`); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := queried{url: "sqlite:" + path}
	made := filepath.Join(t.TempDir(), "made")
	for query, want := range map[string]string{
		"SELECT name, n, step FROM c":                                       "",
		"SELECT 'a', load_extension('none.so'), 1":                          "not authorized",
		"SELECT 'a', load_extension('none.so', 'x'), 1":                     "not authorized",
		"SELECT name, n, step FROM loads":                                   "load_extension",
		"SELECT 'a', writefile('" + made + "', 'x'), 1":                     "no such function",
		"SELECT 'a', edit('x', 'touch'), 1":                                 "no such function",
		"SELECT 'a', fts3_tokenizer('x', x'00'), 1":                         "fts3_tokenizer",
		"ATTACH '" + made + "' AS x":                                        "--query is no query",
		"DETACH main":                                                       "--query is no query",
		"PRAGMA query_only = 0":                                             "--query is no query",
		"SELECT 'a', 1, 1 FROM pragma_journal_mode('delete')":               "unknown database",
		"SELECT 'a', 1, 1 FROM pragma_wal_checkpoint('truncate')":           "no such table",
		"SELECT 'a', 1, 1 FROM pragma_user_version(9)":                      "too many arguments",
		"SELECT 'a', 1, 1 FROM pragma_application_id(9)":                    "too many arguments",
		"SELECT 'a', count(*), 1 FROM pragma_optimize":                      "attempt to write a readonly database",
		"SELECT 'a', 1, 1 FROM words":                                       "no rows",
		"INSERT INTO words (words) VALUES ('optimize')":                     "--query is no query",
		"WITH x AS (SELECT 1) INSERT INTO words (words) VALUES ('rebuild')": "--query has INSERT",
	} {
		f.wantRefused(t, query, want)
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Fatalf("%s: the file differs (%v)", query, err)
		}
		if _, err := os.Stat(made); err == nil {
			t.Fatalf("%s made a file", query)
		}
	}
}

// Every refusal has a hint that imports with the flags that were given, once NAME and the
// numbers are filled in.
func TestImportRefusalsCanBeCured(t *testing.T) {
	t.Chdir(t.TempDir())
	cure := regexp.MustCompile(`(?m)^firn: hint: write the counters out, joined by UNION ALL: firn (.*)$`)
	onForeign(t, func(t *testing.T, m *importing) {
		refused := []string{
			"DROP TABLE c", "SELECT 1; SELECT 2", "SELECT 'a', 1, 1 -- c", "SELECT name, n, step INTO x FROM c",
			"SELECT name, n, step FROM c FOR UPDATE", `SELECT U&"a", 1, 1`,
		}
		switch strings.TrimPrefix(t.Name(), "TestImportRefusalsCanBeCured/") {
		case "postgres":
			refused = append(refused, "SELECT 'a', lo_create(0), 1")
		case "mysql":
			refused = append(refused, "SELECT 'a', sleep(0), 1")
		}
		for _, from := range refused {
			got := m.importsFrom(t, 2, from, "--dry-run", "--next", "--leave-steps", "7", "--on-lossy-store", "may-repeat")
			hint := cure.FindStringSubmatch(got)
			if hint == nil {
				t.Errorf("%s: %s", from, got)
				continue
			}
			typed := strings.NewReplacer("'NAME'", "'orders'", "NUMBER", "101", "STEP", "10 UNION ALL SELECT 'users', 5, 1").Replace(hint[1])
			for _, flag := range []string{" --dry-run", " --next", " --leave-steps 7", " --on-lossy-store may-repeat"} {
				if strings.Count(typed, flag) != 1 {
					t.Errorf("%s: the hint has %q not once: %s", from, flag, typed)
				}
			}
			words, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+typed).Output()
			if err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			code := run(strings.Split(strings.TrimSuffix(string(words), "\n"), "\n"), strings.NewReader(""), &out, &errs)
			want := "SERIES  GIVEN  STEP  FIRST HERE  DOES\norders  100    10    171         begin\nusers   4      1     12          begin\n"
			if code != 0 || out.String() != want {
				t.Errorf("%s: code %d\n%s%s", typed, code, out.String(), errs.String())
			}
		}
	})
}
