package setup_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// TestInitWithoutFunctions: where a role may not call a function of PostgreSQL that firn's functions call, the plan
// says so, as the dry run does, before anything is made; and what it says to type is enough.
func TestInitWithoutFunctions(t *testing.T) {
	for _, function := range []string{"pg_current_wal_lsn()", "pg_walfile_name(pg_lsn)", "pg_control_system()"} {
		a := newDatabase(t)
		name := a.Config().Database
		owner, app := "owner_"+name, "app_"+name
		a.must(t, "DROP ROLE IF EXISTS "+owner+"; DROP ROLE IF EXISTS "+app+"; CREATE ROLE "+owner+" LOGIN; CREATE ROLE "+app+"; GRANT CREATE ON DATABASE "+name+" TO "+owner+"; REVOKE EXECUTE ON FUNCTION "+function+" FROM PUBLIC")
		servers := serversOf(&database{url: strings.Replace(a.url, "t@", owner+"@", 1)})
		for _, role := range []string{owner, app} { // what the owner lacks is said first
			err := dryInit(t, servers, setup.Wish{Count: 2, Roles: []string{app}})
			var rights *setup.RightsError
			var of *topology.ServerError
			if !errors.As(err, &rights) || !errors.As(err, &of) || of.Server != "a" || !strings.Contains(err.Error(), "the role "+role+" may not call "+strings.Split(function, "(")[0]+"()") {
				t.Fatalf("%s, %s: %v", function, role, err)
			}
			if got := a.one(t, "SELECT count(*)::text FROM pg_namespace WHERE nspname ~ '^firn$|^insta'"); got != "0" {
				t.Errorf("%s: %s schemas were made", function, got)
			}
			_, sql, _ := strings.Cut(rights.Do, ": ")
			sql, _, _ = strings.Cut(sql, ". Then")
			a.must(t, sql)
		}
		mustInit(t, servers, setup.Wish{Count: 2, Roles: []string{app}})
	}
}

// dryInit is the error of a plan that is not locked, as that of a dry run.
func dryInit(t *testing.T, servers []topology.Server, w setup.Wish) error {
	t.Helper()
	s, err := setup.Open(t.Context(), servers, false)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Init(w)
	return err
}
