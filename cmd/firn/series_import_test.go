//go:build !windows

package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// An importing is another system's table, and the store that its counters go to.
type importing struct {
	url, table, store string
	db                *sql.DB
}

// onForeign calls f for each kind of database that import reads, with an empty table
// of counters there, and a store that is yet to be made.
func onForeign(t *testing.T, f func(*testing.T, *importing)) {
	for name, url := range map[string]func(testing.TB) string{
		"postgres": func(tb testing.TB) string { return testserver.Shared(tb, testserver.Postgres).URL() },
		"mysql":    func(tb testing.TB) string { return testserver.Shared(tb, testserver.MariaDB).URL() },
		"sqlite":   func(tb testing.TB) string { return "sqlite:" + filepath.Join(tb.TempDir(), "it's 100%.db") },
	} {
		t.Run(name, func(t *testing.T) {
			m := &importing{url: url(t), table: "leaf_" + string(store.NewVersion()[:8]), store: "sqlite:" + filepath.Join(t.TempDir(), "ids.db")}
			var err error
			if path, ok := strings.CutPrefix(m.url, "sqlite:"); ok {
				m.db, err = sql.Open("sqlite", "file:"+strings.ReplaceAll(path, "%", "%25")) // to write
			} else {
				m.db, err = open.Database(m.url)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer m.db.Close()
			m.exec(t, "CREATE TABLE %s (biz_tag varchar(128) PRIMARY KEY, max_id bigint NOT NULL, step int NOT NULL)")
			defer m.exec(t, "DROP TABLE %s")
			f(t, m)
		})
	}
}

// exec executes SQL in which %s is the table.
func (m *importing) exec(t *testing.T, format string) {
	t.Helper()
	if _, err := m.db.ExecContext(t.Context(), fmt.Sprintf(format, m.table)); err != nil {
		t.Fatal(err)
	}
}

// firn runs the command on the store, and returns all that it prints.
func (m *importing) firn(t *testing.T, wantCode int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(append(args, "--store", m.store), strings.NewReader(""), &out, &errs)
	if code != wantCode {
		t.Errorf("firn %q: code %d, want %d\n%s%s", args, code, wantCode, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

// imports runs the import of the table.
func (m *importing) imports(t *testing.T, wantCode int, args ...string) string {
	t.Helper()
	return m.importsFrom(t, wantCode, "SELECT biz_tag, max_id, step FROM "+m.table+" ORDER BY biz_tag", args...)
}

func (m *importing) importsFrom(t *testing.T, wantCode int, from string, args ...string) string {
	t.Helper()
	return m.firn(t, wantCode, append([]string{"series", "import", "--query", from, "--db", m.url}, args...)...)
}

func wantLines(t *testing.T, got string, want ...string) {
	t.Helper()
	if want := strings.Join(want, "\n") + "\n"; got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
}

// A table is imported: shown first, then written, and again without a change; what
// the old system has given since raises a series that nobody has drawn from, and is
// refused for one that somebody has.
func TestSeriesImport(t *testing.T) {
	t.Chdir(t.TempDir())
	onForeign(t, func(t *testing.T, m *importing) {
		m.exec(t, "INSERT INTO %s VALUES ('orders', 2001, 1000), ('users', 70, 10)")
		const head = "SERIES  GIVEN  STEP  FIRST HERE  DOES"
		shown := []string{head, "orders  2001   1000  3002        begin", "users   70     10    81          begin"}
		wantLines(t, m.imports(t, 0, "--dry-run"), append(shown, "nothing was written; without --dry-run: 2 to begin, 0 to raise, 0 to keep")...)
		if got := m.firn(t, 1, "series", "ls"); !strings.Contains(got, "there is no store") {
			t.Errorf("after --dry-run: %s", got)
		}
		printed := m.imports(t, 0)
		made := regexp.MustCompile(`created \S+/ids.db: ids are unique among your programs that use this file\n`)
		if len(made.FindAllString(printed, -1)) != 1 {
			t.Errorf("does not name the file that was made, once:\n%s", printed)
		}
		wantLines(t, made.ReplaceAllString(printed, ""), append(shown, "series: 2 begun, 0 raised, 0 kept")...)
		wantLines(t, m.imports(t, 0),
			head, "orders  2001   1000  3002        keep", "users   70     10    81          keep", "series: 0 begun, 0 raised, 2 kept")
		wantLines(t, m.firn(t, 0, "next", "orders", "--kind", "sequence", "-n", "2"), "3002", "3003")

		// The old service goes on, within the step that was left to it: nothing repeats.
		m.exec(t, "UPDATE %s SET max_id = max_id + step")
		wantLines(t, m.imports(t, 0, "--json"),
			`{"series":"orders","row":1,"given":"3001","step":1000,"first":"4002","does":"raise"}`,
			`{"series":"users","row":2,"given":"80","step":10,"first":"91","does":"raise"}`)
		wantLines(t, m.firn(t, 0, "next", "orders", "--kind", "sequence"), "4002")
		wantLines(t, m.firn(t, 0, "next", "users", "--kind", "sequence"), "91")

		// It goes on beyond that, where orders has begun here: both may have given 3002.
		m.exec(t, "UPDATE %s SET max_id = max_id + step WHERE biz_tag = 'orders'")
		got := m.imports(t, 1)
		if want := `firn: error: row 1, "orders": the series has given numbers from 3002 to 4002 here, and the table is at 4001: some may have been given twice; if not, firn series raise orders 5001 and leave the row out`; !strings.HasPrefix(got, want) {
			t.Errorf("printed\n%swant\n%s", got, want)
		}
	})
}

// The number is the highest that was given, or the next; so many steps are left.
func TestSeriesImportFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	m := &importing{url: testserver.Shared(t, testserver.MariaDB).URL()}
	for args, want := range map[string]string{
		"":                       "111",
		"--leave-steps 0":        "101",
		"--leave-steps 25":       "351",
		"--next":                 "110",
		"--next --leave-steps 0": "100",
		"--leave-steps 0 --json": `"first":"101"`,
		"--json --dry-run":       `"does":"begin","dry_run":true`,
		"--leave-steps 1000000":  "10000101",
		"--leave-steps 1000001":  "--leave-steps 1000001: it is 0 to 1000000 steps",
		"--leave-steps -1":       "--leave-steps -1: it is 0",
		"--db sqlite:x?y=1":      "--db: ",
	} {
		m.store = "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
		code := 0
		if strings.Contains(want, "--") {
			code = 2
		}
		if got := m.importsFrom(t, code, "SELECT 'a', 100, 10", strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
		if code == 0 && !strings.Contains(args, "--dry-run") {
			first := m.firn(t, 0, "next", "a", "--kind", "sequence")
			if !strings.Contains(want, strings.TrimSpace(first)) {
				t.Errorf("%s: the first number is %s, and %s was shown", args, first, want)
			}
		}
	}
}

// A row that cannot be is named, all of them, and nothing is written.
func TestSeriesImportFaults(t *testing.T) {
	t.Chdir(t.TempDir())
	onForeign(t, func(t *testing.T, m *importing) {
		for from, want := range map[string]string{
			"SELECT NULL, 1, 1":                           "row 1: the name is NULL",
			"SELECT '', 1, 1":                             `row 1, "": as the name of a series: a name has up to 64`,
			"SELECT 'a/b', 1, 1":                          `row 1, "a/b": as the name`,
			"SELECT 'a', NULL, 1":                         `row 1, "a": the number is NULL`,
			"SELECT 'a', 1, NULL":                         `row 1, "a": the step is NULL`,
			"SELECT 'a', 12.5, 1":                         `row 1, "a": the number is no whole number up to 9223372036854775807: "12.5"`,
			"SELECT 'a', 'x', 1":                          `row 1, "a": the number is no whole number`,
			"SELECT 'a', -1, 1":                           `row 1, "a": the number is 0 to 9223372036854775807, not -1`,
			"SELECT 'a', 1, 0":                            `row 1, "a": the step is 1 to 1073741824, not 0`,
			"SELECT 'a', 1, 1073741825":                   `row 1, "a": the step is 1 to`,
			"SELECT 'a', 9223372036854775800, 100":        `row 1, "a": 1 step of 100 above 9223372036854775800 is beyond the largest number`,
			"SELECT 'a', 1":                               "--query gives 2 columns",
			"SELECT 'a', 1, 1 FROM nowhere":               "--query: ",
			"DELETE FROM " + m.table:                      "--query",
			"SELECT 'a', 1, 1 WHERE 1 = 0":                "--query gives no rows",
			"SELECT 'a', 1, 1 UNION ALL SELECT 'a', 2, 1": `row 2, "a": it is there twice, row 1 too`,
			"SELECT 'good', 1, 1 UNION ALL SELECT 'a b', 1, 1 UNION ALL SELECT 'b', 1, -1": `row 2, "a b": as the name`,
		} {
			code := 1
			if strings.Contains(want, "columns") || strings.HasPrefix(from, "DELETE") {
				code = 2
			}
			got := m.importsFrom(t, code, from)
			if !strings.Contains(got, "firn: error: "+want) {
				t.Errorf("%s\nprinted\n%swant %s", from, got, want)
			}
			if n := strings.Count(from, "UNION"); n == 2 && !strings.Contains(got, `firn: error: row 3, "b": the step`) {
				t.Errorf("%s\nprinted %s", from, got)
			}
		}
		m.exec(t, "INSERT INTO %s VALUES ('a', 1, 1)")
		if got := m.importsFrom(t, 2, "DELETE FROM "+m.table+" RETURNING biz_tag, max_id, step"); !strings.Contains(got, "--query is no query") {
			t.Errorf("DELETE RETURNING: %s", got)
		}
		if got := m.imports(t, 0, "--dry-run"); !strings.Contains(got, "begin") { // it is there yet, and nothing here
			t.Errorf("after the faults: %s", got)
		}
	})
}

// A series that is there is not what the row says.
func TestSeriesImportOther(t *testing.T) {
	t.Chdir(t.TempDir())
	m := &importing{url: testserver.Shared(t, testserver.MariaDB).URL(), store: "sqlite:ids.db"}
	for args, want := range map[string]string{
		"a --cache 500":                             "the series is there, with cache 500, not 100: firn series set a --cache 100",
		"b --cache 100 --increment 2":               "the series is there, with an increment of 2",
		"c --cache 100 --max 9999":                  "the series is there, with max 9999",
		"d --cache 100 --order strict":              "the series is there, and its order is not the same",
		"e --cache 100":                             "", // nobody has drawn: it is raised
		"f --cache 100 --first 9223372036854775800": "",
	} {
		m.firn(t, 0, append([]string{"series", "create"}, strings.Fields(strings.Replace(args, " ", " --kind sequence ", 1))...)...)
		code := 0
		if want != "" {
			code = 1
		}
		if got := m.importsFrom(t, code, "SELECT '"+args[:1]+"', 100, 100"); !strings.Contains(got, want) {
			t.Errorf("%s: %swant %s", args, got, want)
		}
	}
	if got := m.firn(t, 0, "series", "ls", "--json"); !strings.Contains(got, `"series":"e","kind":"sequence","granted":"200"`) || !strings.Contains(got, `"series":"f","kind":"sequence","granted":"9223372036854775799"`) {
		t.Error(got)
	}
}

// What firn.yaml says of a series counts, and what it says of another kind is refused.
func TestSeriesImportConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	m := &importing{url: testserver.Shared(t, testserver.MariaDB).URL(), store: "sqlite:ids.db"}
	for series, want := range map[string]string{
		"a: { kind: flake }":                             "firn.yaml:2 says that it is a flake",
		"a: { kind: sequence, first: 1 }":                "firn.yaml has another first than 201, where it begins",
		"a: { kind: sequence, first: 201 }":              "a       100    100   201         begin",
		"b: { kind: sequence, max: 200 }":                "201, where it begins, is above the max of 200 in firn.yaml",
		"b: { kind: sequence, increment: 3 }":            "firn.yaml has an increment of 3",
		"b: { kind: sequence, max: 300, max-unused: 7 }": "b       100    100   201         begin",
		"z: { kind: sequence } # c":                      "firn: hint: firn.yaml lacks c: { kind: sequence }",
	} {
		write(t, ".", "firn.yaml", "series:\n  "+series+"\n")
		name := series[:1]
		if name == "z" {
			name = "c"
		}
		code := 0
		if !strings.Contains(want, "begin") || strings.Contains(want, "begins") {
			code = 1
		}
		if name == "c" {
			code = 0
		}
		if got := m.importsFrom(t, code, "SELECT '"+name+"', 100, 100"); !strings.Contains(got, want) {
			t.Errorf("%s: %swant %s", series, got, want)
		}
	}

	write(t, ".", "firn.yaml", "series:\n  t: { kind: sequence, stores: [sqlite:ids.db, sqlite:b.db] }\n")
	if got := m.importsFrom(t, 1, "SELECT 't', 100, 100"); !strings.Contains(got, "firn.yaml:2 says that it is spread over several stores") {
		t.Error(got)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"series", "create", "t", "--kind", "sequence"}, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	write(t, ".", "firn.yaml", "store: sqlite:ids.db\n") // and nobody knows of the ticket
	if got := m.importsFrom(t, 1, "SELECT 't', 100, 100"); !strings.Contains(got, "the series is there, and is spread over 2 stores") {
		t.Error(got)
	}
	if got := m.firn(t, 0, "series", "ls", "--json", "--config", "firn.yaml"); !strings.Contains(got, `"series":"b","kind":"sequence","granted":"200","cache":100,"rate":0,"first":"201","max":"300"`) {
		t.Error(got)
	}
}

// On a lossy store it has to be accepted, for every series at once.
func TestSeriesImportLossy(t *testing.T) {
	t.Chdir(t.TempDir())
	m := &importing{url: testserver.Shared(t, testserver.MariaDB).URL(), store: testserver.Redis(t).URL()}
	got := m.importsFrom(t, 1, "SELECT 'a', 100, 100")
	if !strings.Contains(got, `firn: error: series "a": the store is lossy: it can lose a write that it acknowledged (redis`) || !strings.Contains(got, "--on-lossy-store may-repeat") {
		t.Error(got)
	}
	m.importsFrom(t, 0, "SELECT 'a', 100, 100", "--on-lossy-store", "may-repeat")
	if got := m.firn(t, 0, "series", "ls"); !strings.Contains(got, "0/s   lossy ") {
		t.Error(got)
	}
}

// An import that is broken off goes on where it ended.
func TestSeriesImportBrokenOff(t *testing.T) {
	t.Chdir(t.TempDir())
	m := &importing{url: testserver.Shared(t, testserver.MariaDB).URL(), store: "sqlite:ids.db"}
	m.importsFrom(t, 0, "SELECT 'b', 100, 100") // as if it had ended after this one
	got := m.importsFrom(t, 0, "SELECT 'a', 100, 100 UNION ALL SELECT 'b', 100, 100 UNION ALL SELECT 'c', 100, 100")
	if !strings.Contains(got, "series: 2 begun, 0 raised, 1 kept") {
		t.Error(got)
	}
}
