//go:build !windows

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/takeover"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// What --query must not do, in each database: %[1]s is a table of one row, and
// %[2]s a file that nothing may make.
var harmful = map[string][]string{
	"": {
		"DROP TABLE %[1]s",
		"/* c */ DROP TABLE %[1]s",
		"-- c\nDROP TABLE %[1]s",
		"DELETE FROM %[1]s",
		"UPDATE %[1]s SET max_id = 9",
		"INSERT INTO %[1]s VALUES ('b', 1, 1)",
		"ALTER TABLE %[1]s ADD COLUMN x int",
		"CREATE TABLE %[1]s_2 (a int)",
		"CREATE TABLE %[1]s_2 AS SELECT biz_tag, max_id, step FROM %[1]s",
		"SELECT biz_tag, max_id, step FROM %[1]s; DROP TABLE %[1]s",
		"SELECT biz_tag, max_id, step FROM %[1]s; DROP TABLE %[1]s;",
		"SELECT biz_tag, max_id, step FROM %[1]s -- '\n; DROP TABLE %[1]s -- '",
		"SELECT 'a\\', 1, 1; DROP TABLE %[1]s; -- '",
		"WITH x AS (SELECT 1) DELETE FROM %[1]s",
		"WITH x AS (SELECT 1) UPDATE %[1]s SET max_id = 9",
		"DELETE FROM %[1]s RETURNING biz_tag, max_id, step",
		"SELECT biz_tag, max_id, step INTO %[1]s_2 FROM %[1]s",
		"EXPLAIN DELETE FROM %[1]s",
		"COMMIT", "ROLLBACK", "BEGIN",
		"1; DROP TABLE %[1]s", ") SELECT 1", "", "(((",
	},
	"postgres": {
		"TRUNCATE %[1]s",
		"WITH x AS (DELETE FROM %[1]s RETURNING biz_tag, max_id, step) SELECT * FROM x",
		"EXPLAIN ANALYZE DELETE FROM %[1]s",
		"/* /* */ SELECT 1 */ DROP TABLE %[1]s",
		"SELECT 'a', nextval('%[1]s_seq'), 1",
		"SELECT 'a', setval('%[1]s_seq', 99), 1",
		"SELECT 'a', lo_create(0), 1",
		`SELECT 'a', "lo_create" (0), 1`,
		`SELECT 'a', U&"lo!005fcreate" UESCAPE '!' (0), 1`, `SELECT 'a', '5'::u&"d!0065" UESCAPE '!', 1`,
		"SELECT 'a', pg_terminate_backend(1)::int, 1",
		"COPY %[1]s TO '%[2]s'",
		"COPY %[1]s TO PROGRAM 'touch %[2]s'",
		"DO 'BEGIN DELETE FROM %[1]s; END'",
		"SELECT biz_tag, max_id, step FROM %[1]s FOR UPDATE",
		"SELECT $$'$$, 1, 1; DROP TABLE %[1]s; --'",
	},
	"mysql": {
		"TRUNCATE %[1]s",
		"RENAME TABLE %[1]s TO %[1]s_2",
		"/*! DROP TABLE %[1]s */",
		"/*M! DROP TABLE %[1]s */",
		"/*!50000 DROP TABLE %[1]s */",
		"# c\nDROP TABLE %[1]s",
		"SELECT biz_tag, max_id, step FROM %[1]s INTO OUTFILE '%[2]s'",
		"SELECT biz_tag, max_id, step /*! INTO OUTFILE '%[2]s' */ FROM %[1]s",
		"SELECT biz_tag, max_id, step FROM %[1]s FOR UPDATE",
		"SELECT 'a', NEXTVAL(%[1]s_seq), 1",
		"SELECT 'a', NEXT VALUE FOR %[1]s_seq, 1",
		"SELECT 'a', SETVAL(%[1]s_seq, 99), 1",
		"ANALYZE UPDATE %[1]s SET max_id = 9",
		"EXECUTE IMMEDIATE 'DROP TABLE %[1]s'",
		"CALL %[1]s_drop()",
		"BEGIN NOT ATOMIC DROP TABLE %[1]s; END",
		"LOCK TABLES %[1]s WRITE",
		"SET GLOBAL max_connections = 77",
		"HANDLER %[1]s OPEN",
	},
	"sqlite": {
		"VACUUM INTO '%[2]s'",
		"SELECT biz_tag, max_id, step FROM %[1]s; VACUUM INTO '%[2]s'",
		"SELECT [a'] FROM %[1]s; VACUUM INTO '%[2]s'; --']",
		"ATTACH '%[2]s' AS x",
		"SELECT 1; ATTACH '%[2]s' AS x; CREATE TABLE x.y (a)",
		"PRAGMA journal_mode = DELETE",
		"PRAGMA user_version = 5",
		"REPLACE INTO %[1]s VALUES ('a', 9, 9)",
		"WITH x AS (SELECT 1) REPLACE INTO %[1]s VALUES ('a', 9, 9)",
	},
}

// Whatever --query is, the database is afterwards as it was, and the command says that
// the text is refused, with --dry-run and without.
func TestSeriesImportOnlyReads(t *testing.T) {
	t.Chdir(t.TempDir())
	onForeign(t, func(t *testing.T, m *importing) {
		m.exec(t, "INSERT INTO %s VALUES ('a', 5, 7)")
		kind := strings.TrimPrefix(t.Name(), "TestSeriesImportOnlyReads/")
		if kind != "sqlite" {
			m.exec(t, "CREATE SEQUENCE %s_seq")
			defer m.exec(t, "DROP SEQUENCE %s_seq")
		}
		if kind == "mysql" {
			m.exec(t, "CREATE PROCEDURE %[1]s_drop() DROP TABLE %[1]s")
			defer m.exec(t, "DROP PROCEDURE %s_drop")
		}
		before := m.picture(t, kind)
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "made")
		for _, format := range append(harmful[""], harmful[kind]...) {
			from := format
			if strings.Contains(format, "%[") {
				from = strings.ReplaceAll(strings.ReplaceAll(format, "%[1]s", m.table), "%[2]s", file)
			}
			for _, dry := range [][]string{nil, {"--dry-run"}} {
				got := m.importsFrom(t, 2, from, dry...)
				if !strings.Contains(got, "firn: error: --query ") && !strings.Contains(got, "--query is missing") {
					t.Errorf("%s: %s", from, got)
				}
				if after := m.picture(t, kind); after != before {
					t.Fatalf("%s: the database is\n%s, and was\n%s", from, after, before)
				}
				if _, err := os.Stat(file); err == nil {
					t.Fatalf("%s made a file", from)
				}
				if _, err := os.Stat(strings.TrimPrefix(m.store, "sqlite:")); err == nil {
					t.Fatalf("%s made a store", from)
				}
			}
		}
		// What is one query, whatever words are in its texts.
		for _, from := range []string{
			"SELECT biz_tag, max_id, step FROM " + m.table + " ;",
			"\n (SELECT biz_tag, max_id, step FROM " + m.table + ")",
			"with x as (select biz_tag, max_id, step from " + m.table + ") SELECT * FROM x WHERE biz_tag <> 'update; drop'",
			"SELECT lower(biz_tag), coalesce(max(max_id), 0), min(step) FROM " + m.table + " GROUP BY biz_tag",
			"SELECT replace(biz_tag, '--', '#'), max_id, step FROM " + m.table,
		} {
			if kind == "sqlite" && strings.Contains(from, "(SELECT biz_tag") {
				continue // it has no such grammar
			}
			if got := m.importsFrom(t, 0, from, "--dry-run"); !strings.Contains(got, "begin") {
				t.Errorf("%s: %s", from, got)
			}
		}
		if after := m.picture(t, kind); after != before {
			t.Errorf("the database is\n%s, and was\n%s", after, before)
		}
	})
}

// picture is all that a database has, of what a statement might change.
func (m *importing) picture(t *testing.T, kind string) string {
	t.Helper()
	if path, ok := strings.CutPrefix(m.url, "sqlite:"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%q", data)
	}
	queries := []string{
		"SELECT concat(table_name, ' ', column_name) FROM information_schema.columns WHERE table_name LIKE '" + m.table + "%' ORDER BY 1",
		"SELECT concat(biz_tag, ' ', max_id, ' ', step) FROM " + m.table + " ORDER BY 1",
	}
	if kind == "mysql" {
		queries = append(queries, "SELECT @@GLOBAL.max_connections", "SELECT next_not_cached_value FROM "+m.table+"_seq")
	} else {
		queries = append(queries, "SELECT count(*) FROM pg_largeobject_metadata", "SELECT concat(last_value, is_called) FROM "+m.table+"_seq")
	}
	var all strings.Builder
	for _, q := range queries {
		rows, err := m.db.QueryContext(t.Context(), q)
		if err != nil {
			return err.Error()
		}
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			all.WriteString(text + "\n")
		}
		rows.Close()
	}
	return all.String()
}

// A view may call what a query itself must not: the plan has its calls, too.
func TestImportThroughViews(t *testing.T) {
	m := &importing{url: testserver.Shared(t, testserver.Postgres).URL(), table: "viewed_" + string(store.NewVersion()[:8]), store: "sqlite:" + filepath.Join(t.TempDir(), "ids.db")}
	var err error
	if m.db, err = open.Database(m.url); err != nil {
		t.Fatal(err)
	}
	defer m.db.Close()
	m.exec(t, "CREATE SEQUENCE %[1]s_seq")
	defer m.exec(t, "DROP SEQUENCE %[1]s_seq CASCADE")
	m.exec(t, "CREATE VIEW %[1]s_next AS SELECT 'a' AS name, nextval('%[1]s_seq') AS n, 1 AS step")
	m.exec(t, "CREATE VIEW %[1]s_file AS SELECT 'a' AS name, lo_create(0)::bigint AS n, 1 AS step")
	defer m.exec(t, "DROP VIEW %[1]s_file")
	m.exec(t, "CREATE VIEW %[1]s_twice AS SELECT * FROM %[1]s_file WHERE n > 0")
	defer m.exec(t, "DROP VIEW %[1]s_twice")
	m.exec(t, "CREATE VIEW %[1]s_plain AS SELECT lower('A') AS name, coalesce(7, 8)::bigint AS n, 1 AS step")
	defer m.exec(t, "DROP VIEW %[1]s_plain")
	for view, want := range map[string]string{"next": "runs the function nextval", "file": "runs the function lo_create", "twice": "runs the function lo_create", "plain": ""} {
		_, _, err := takeover.Read(t.Context(), m.url, "SELECT name, n, step FROM "+m.table+"_"+view)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("view %s: %v; want %q", view, err, want)
		}
	}
}

// PostgreSQL runs functions that no query names: behind operators, aggregates, casts, and for
// the values of domains.
func TestImportRunsNothingBehind(t *testing.T) {
	url := database(t, testserver.Shared(t, testserver.Postgres), "behind")
	db, err := open.Database(url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(sql string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), sql); err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
	}
	exec(`CREATE FUNCTION harm(integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''it was run''; END';
		CREATE FUNCTION harm(integer, integer) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''it was run''; END';
		CREATE FUNCTION fine(integer) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 > 0';
		CREATE DOMAIN good AS integer CHECK (fine(VALUE));
		CREATE DOMAIN d AS integer CHECK (harm(VALUE));
		CREATE DOMAIN "Below it" AS d;
		CREATE TYPE pair AS (a d, b integer);
		CREATE OPERATOR %%% (FUNCTION = harm, LEFTARG = integer, RIGHTARG = integer);
		CREATE DOMAIN e AS integer CHECK (VALUE %%% 1 > 0);
		CREATE AGGREGATE worst (integer) (SFUNC = harm, STYPE = integer, INITCOND = '0');
		CREATE FUNCTION takes(d) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT 1';
		CREATE TABLE c (name text, n integer, step integer); INSERT INTO c VALUES ('a', 5, 1);
		CREATE VIEW v AS SELECT name, n::d, step FROM c;
		CREATE TYPE span AS RANGE (subtype = d);
		CREATE DOMAIN w AS integer CHECK (lo_create(0) > 0);
		CREATE FUNCTION named(c) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''it was run''; END';
		CREATE FUNCTION "a""b"(integer) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''it was run''; END';
		CREATE VIEW rows AS SELECT * FROM (VALUES ('a', harm(1, 1), 1), ('b', 2, 2)) AS x (name, n, step);
		CREATE VIEW most AS SELECT * FROM c LIMIT harm(1, 1);
		CREATE VIEW later AS SELECT * FROM c OFFSET harm(1, 1);
		CREATE VIEW lines AS SELECT E'x\ny' || name AS name, harm(n, 1) AS n, length('x' || name) AS step FROM c;
		CREATE VIEW frames AS SELECT name, (sum(n) OVER (ORDER BY n ROWS harm(1, 1) PRECEDING))::integer AS n, step FROM c;
		CREATE VIEW over_rows AS SELECT * FROM rows;
		CREATE FUNCTION preset(integer, integer DEFAULT harm(1, 1)) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT $1';
		CREATE VIEW calm AS SELECT * FROM (VALUES ('a', 4, 1), ('b', 2, 2)) AS x (name, n, step) LIMIT 2`)
	check := func(query, want string) {
		t.Helper()
		_, _, err := takeover.Read(t.Context(), url, query)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "--query runs the "+want)) {
			t.Errorf("%s: %v; want %q", query, err, want)
		}
	}
	for query, want := range map[string]string{
		"SELECT name, n::good, step + 1 FROM c WHERE n > 0":     "",
		"SELECT name, max(n), min(step) FROM c GROUP BY name":   "",
		"SELECT name, n::d, step FROM c":                        "CHECK of the type d",
		"SELECT name, CAST (9 AS D), step FROM c":               "CHECK of the type d",
		`SELECT name, n::"Below it", step FROM c`:               "CHECK of the type d",
		"SELECT name, ((n, step)::pair).b, step FROM c":         "CHECK of the type d",
		"SELECT name, n::e, step FROM c":                        "operator %%%",
		"SELECT * FROM v":                                       "CHECK of the type d",
		"SELECT name, n %%% 2, step FROM c":                     "operator %%%",
		"SELECT name, n OPERATOR(public.%%%) 2, step FROM c":    "operator %%%",
		"SELECT name, worst(n), 1 FROM c GROUP BY name":         "aggregate worst",
		"SELECT name, takes(n), step FROM c":                    "CHECK of the type d",
		"SELECT name, n, step FROM c ORDER BY worst(n) OVER ()": "aggregate worst",
		// Planning reads these literals.
		"SELECT name, ('(9,1)'::pair).b, step FROM c":                         "CHECK of the type d",
		"SELECT name, array_length('{9}'::_d, 1), step FROM c":                "CHECK of the type d",
		"SELECT name, lower('(9,11)'::span), step FROM c":                     "CHECK of the type d",
		"SELECT name, 1, step FROM c WHERE '{9}' = ARRAY(SELECT n::d FROM c)": "CHECK of the type d",
		// A plan does not show these.
		"SELECT * FROM rows":                      "function harm",
		"SELECT * FROM over_rows":                 "function harm",
		"SELECT * FROM most":                      "function harm",
		"SELECT * FROM later":                     "function harm",
		"SELECT * FROM lines":                     "function harm",
		"SELECT * FROM frames":                    "function harm",
		"SELECT * FROM calm":                      "",
		"VALUES ('a', preset(1), 1), ('b', 2, 2)": "function preset",
		"VALUES ('a', 1, 1), ('b', preset(1), 2)": "function preset",
		"SELECT name, n::w, step FROM c":          "CHECK of the type w",
		// Only a plan shows this.
		"SELECT name, c.named, step FROM c":                                                                             "function named",
		"SELECT 'x\ny' || name, c.named, length('x' || name) FROM c":                                                    "function named",
		`SELECT s."it's", s.n, length('x' || s."it's") FROM (SELECT name AS "it's", c.named AS n FROM c OFFSET 0) AS s`: "function named",
		`SELECT name, "a""b"(n), step FROM c`:                                                                           `function a"b`,
		"SELECT table_to_xml('rows'::regclass, true, true, '')::text, 1, 1":                                             "function table_to_xml",
	} {
		check(query, want)
	}
	exec(`CREATE TYPE colour AS ENUM ('red'); CREATE FUNCTION colourful(integer) RETURNS colour LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''it was run''; END';
		CREATE CAST (integer AS colour) WITH FUNCTION colourful(integer) AS IMPLICIT`)
	check("SELECT name, n, step FROM c", "cast to colour")
}
