package open_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store/open"
)

// What is wrong with the URL of a database is said without its secrets, and before
// anything is opened.
func TestDatabaseURL(t *testing.T) {
	for url, want := range map[string]string{
		"":                                    "not a URL of a SQL database; it is postgres://",
		"redis://cache":                       "not a URL of a SQL database",
		"postgres:///x":                       "no host",
		"postgres://a:hush@db/x?assume=lossy": "option assume is for a store",
		"mysql://a:hush@db/x?assume=lossy":    "option assume is for a store",
		"mysql://a:hush@db":                   "which database?",
		"mysql://a:hush@db/x?tsl=true":        `no option "tsl"; is it tls?`,
		"sqlite:":                             "no path",
		"sqlite:a.db?mode=rw":                 "there are no options",
	} {
		db, err := open.Database(url)
		var wrong *open.URLError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, want) {
			t.Errorf("%s: %v, %v, want %s", url, db, err, want)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error shows the password: %v", url, err)
		}
	}
}

// A SQLite file is only read: one that is not there is not made, and one that is is
// not changed. Its path is taken as it is.
func TestDatabaseSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?%41#.db")
	if _, err := open.Database("sqlite:" + path); err == nil {
		t.Error("a path with a ? is not supported, and taken")
	}
	path = filepath.Join(t.TempDir(), "a b%41#'.db")
	db, err := open.Database("sqlite:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.PingContext(t.Context()); err == nil {
		t.Error("a file that is not there can be read")
	}
	if files, err := os.ReadDir(filepath.Dir(path)); len(files) > 0 || err != nil {
		t.Errorf("it made %v, %v", files, err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil { // an empty file is an empty database
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE a (b)"); err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Errorf("CREATE TABLE: %v", err)
	}
}

// A database of a server is opened with the options of a store's URL.
func TestDatabaseServers(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...string) *testserver.Server{
		"postgres": testserver.Postgres, "mysql": testserver.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			db, err := open.Database(testserver.Shared(t, start).URL())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var n int
			if err := db.QueryRowContext(t.Context(), "SELECT 1").Scan(&n); err != nil || n != 1 {
				t.Errorf("%d, %v", n, err)
			}
		})
	}
}

// An option of PostgreSQL may have spaces, and a plus.
func TestDatabaseOptions(t *testing.T) {
	server := testserver.Shared(t, testserver.Postgres).URL()
	sign := "?"
	if strings.Contains(server, "?") {
		sign = "&"
	}
	db, err := open.Database(server + sign + "application_name=a%20b%2Bc")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var name string
	if err := db.QueryRowContext(t.Context(), "SHOW application_name").Scan(&name); err != nil || name != "a b+c" {
		t.Errorf("%q, %v", name, err)
	}
}
