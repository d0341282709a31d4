package setup_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/golden"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// setSQLVersion makes the functions of a database say that they have another version.
func setSQLVersion(t *testing.T, d *database, version int) {
	t.Helper()
	d.must(t, fmt.Sprintf("CREATE OR REPLACE FUNCTION firn.sql_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS\n$$ SELECT %d $$", version))
}

// TestInitOfOlderFirn: where one server has functions of a newer firn, init, its dry run, add-server and adopt refuse
// before they change any server. The shards still give ids.
func TestInitOfOlderFirn(t *testing.T) {
	a, b, c := newDatabase(t), newDatabase(t), newDatabase(t)
	servers := serversOf(a, b)
	mustInit(t, servers, setup.Wish{Count: 4})
	setSQLVersion(t, b, install.SQLVersion+1)
	a.must(t, "UPDATE firn.server SET code = 'older'") // there would be work on a
	const want = "server b: a newer firn wrote its functions: they have version 2, and this firn would write version 1. Nothing was changed"
	for what, f := range map[string]func() error{
		"init":    func() error { _, err := tryInit(t.Context(), servers, setup.Wish{}); return err },
		"dry run": func() error { return dryInit(t, servers, setup.Wish{}) },
		"add": func() error {
			return withAll(t, serversOf(a, b, c), func(s *setup.Servers) error { _, err := s.Add([]string{"c"}, nil); return err })
		},
		"adopt": func() error {
			return withAll(t, servers, func(s *setup.Servers) error { _, err := s.Adopt(t.Context(), setup.Wish{}); return err })
		},
	} {
		refuses(t, want, func() error {
			err := f()
			if !errors.As(err, new(*setup.NewerError)) {
				t.Errorf("%s: %v", what, err)
			}
			return err
		}, a, b, c)
	}
	if got := b.one(t, "SELECT (firn.decode(insta3.next_id())).shard::text"); got != "3" {
		t.Errorf("an id of shard %s", got)
	}
}

// withAll looks at servers and locks them.
func withAll(t *testing.T, servers []topology.Server, f func(*setup.Servers) error) error {
	t.Helper()
	s, err := setup.Open(t.Context(), servers, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return f(s)
}

// TestInitAfterOlderFirn: functions that say a lower version, or none, are brought up to date.
func TestInitAfterOlderFirn(t *testing.T) {
	a := newDatabase(t)
	servers := serversOf(a)
	mustInit(t, servers, setup.Wish{Count: 2})
	before := describe(t, a)
	for _, older := range []func(){
		func() { setSQLVersion(t, a, install.SQLVersion-1) },
		func() { a.must(t, "DROP FUNCTION firn.sql_version()") },
	} {
		older()
		a.must(t, "UPDATE firn.server SET code = 'older'")
		mustInit(t, servers, setup.Wish{})
		if got := strings.Join(describe(t, a), "\n"); got != strings.Join(before, "\n") {
			t.Errorf("%s\nwant\n%s", got, strings.Join(before, "\n"))
		}
	}
}

// TestSQLOfOlderFirn: the SQL itself refuses a database with functions of a newer firn, also in the hands of a role
// that may call none of them, and after the commands have looked.
func TestSQLOfOlderFirn(t *testing.T) {
	a := newDatabase(t)
	name := a.Config().Database
	owner := "newer_owner_" + name
	a.must(t, "DROP ROLE IF EXISTS "+owner+"; CREATE ROLE "+owner+"; GRANT CREATE ON DATABASE "+name+" TO "+owner+"; SET ROLE "+owner)
	var sql bytes.Buffer
	if err := install.WriteSQL(&sql, firn.Sharded(), install.Definition{Number: 5, Schema: "insta5"}); err != nil {
		t.Fatal(err)
	}
	a.must(t, sql.String())
	a.must(t, sql.String())
	setSQLVersion(t, a, install.SQLVersion+1)
	a.must(t, "REVOKE EXECUTE ON FUNCTION firn.sql_version() FROM PUBLIC, "+owner)
	before := describe(t, a)
	_, err := a.Exec(t.Context(), sql.String())
	if err == nil || !strings.Contains(err.Error(), "the functions of this database have version 2, and this SQL has version 1") {
		t.Errorf("got %v", err)
	}
	a.must(t, "ROLLBACK")
	if got := strings.Join(describe(t, a), "\n"); got != strings.Join(before, "\n") {
		t.Errorf("something was changed:\n%s", got)
	}
	v, err := topology.Look(t.Context(), a.Conn)
	if err != nil || v.SQL != install.SQLVersion+1 {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestInitAfterRelease: a server that a released version has set up is brought up to date, gives ids meanwhile, and
// later ids are above earlier ones.
func TestInitAfterRelease(t *testing.T) {
	files, err := filepath.Glob("../install/testdata/*/shards.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		a := newDatabase(t)
		a.must(t, "DO $$ BEGIN CREATE ROLE firn_app NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
		a.must(t, string(golden.Read(t, file)))
		a.must(t, "SELECT firn.create_shard(0, 'insta0')")
		last := a.one(t, "SELECT insta0.next_id()::text")
		mustInit(t, serversOf(a), setup.Wish{Count: 2})
		if got := a.one(t, "SELECT (insta0.next_id() > "+last+" AND (firn.decode("+last+")).shard = 0)::text"); got != "true" {
			t.Errorf("%s: an id below %s", file, last)
		}
	}
}
