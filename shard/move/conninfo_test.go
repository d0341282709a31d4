package move

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestConninfo: the other server is told all by which this process finds the right one.
func TestConninfo(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://firn@h1:1,h2:2/app?target_session_attrs=read-write&sslmode=disable": "host='h1,h2' port='1,2' user='firn' dbname='app' connect_timeout=10 sslmode='disable' target_session_attrs='read-write'",
		"postgres://firn@h1:1/my%20app?sslmode=prefer":                                  "host='h1' port='1' user='firn' dbname='my app' connect_timeout=10 sslmode='prefer'",
	} {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		if got := conninfo(config, true); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	if got := option("postgres://h/app?sslrootcert=/c%2B+/my%20ca", "sslrootcert"); got != "/c++/my ca" {
		t.Errorf("a file is %s", got)
	}
}
