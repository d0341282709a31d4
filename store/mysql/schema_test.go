package mysql

import (
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

// TestPrivileges uses a table as a user that can do nothing else.
func TestPrivileges(t *testing.T) {
	_, db, c := fresh(t)
	user := c.DBName + "@'127.0.0.1'"
	do(t, db, "CREATE USER "+user+" IDENTIFIED BY 'right'", "CREATE TABLE other (n INT)", "GRANT SELECT ON other TO "+user)
	t.Cleanup(func() { do(t, db, "DROP USER "+user) })
	s := New(connect(t, with(c, func(c *mysql.Config) { c.User, c.Passwd = c.DBName, "right" })))
	_, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	says(t, "Put without a table", err, `one that may create tables runs "firn store setup --store URL" with the URL of its own account`)
	if _, err := s.Init(t.Context()); err == nil {
		t.Error("Init by one who may not")
	}
	if made, err := New(db).Init(t.Context()); err != nil || !made {
		t.Fatal(made, err)
	}
	_, get := s.Get(t.Context(), "k")
	_, list := s.List(t.Context(), "")
	_, put := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	for what, err := range map[string]error{"Get": get, "List": list, "Put": put} {
		says(t, what+" without rights", err, "GRANT SELECT, INSERT, UPDATE ON `"+c.DBName+"`.firn_records TO '"+c.DBName+"'@'127.0.0.1'")
	}

	mustPut(t, New(db), "there", `1`, store.Condition{})
	lacks := func(want string) {
		t.Helper()
		missing, grant, err := s.MissingPrivileges(t.Context())
		if err != nil || missing != want || want == "" && grant != "" {
			t.Errorf("missing privileges: %q, %q, %v; want %q", missing, grant, err, want)
		}
		if grant != "" { // it can be typed
			do(t, db, grant)
		}
	}
	do(t, db, "GRANT SELECT, UPDATE ON firn_records TO "+user)
	lacks("INSERT")
	lacks("")
	do(t, db, "REVOKE INSERT, UPDATE, SELECT ON firn_records FROM "+user)
	lacks("SELECT, INSERT, UPDATE")
	lacks("")
	do(t, db, "REVOKE INSERT, UPDATE ON firn_records FROM "+user)
	_, err = s.Get(t.Context(), "there")
	says(t, "Get of one who may not write", err, "it needs SELECT, INSERT and UPDATE on the table firn_records")
	do(t, db, "GRANT INSERT, UPDATE ON firn_records TO "+user)
	r := mustPut(t, s, "k", `1`, store.Condition{})
	r = mustPut(t, s, "k", `2`, store.Condition{Version: r.Version})
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 2 {
		t.Errorf("%v, %v", l, err)
	}
	p, err := s.Durability(t.Context())
	if err != nil || !p.Durable || p.Instance == "" || !strings.Contains(p.Why, "no replica") {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestInit makes table and views twice, and reads the views.
func TestInit(t *testing.T) {
	s, db, c := fresh(t)
	for _, want := range []bool{true, false} {
		if made, err := s.Init(t.Context()); err != nil || made != want {
			t.Errorf("made %t, %v", made, err)
		}
	}
	do(t, connect(t, with(c, func(c *mysql.Config) { c.MultiStatements = true })), SQL())
	w := tabletest.Fill(t, s)

	var rows string
	if err := db.QueryRow(`SELECT GROUP_CONCAT(CONCAT_WS(' ', pool, layout, workers, floor)) FROM firn_pools`).Scan(&rows); err != nil {
		t.Error(err)
	} else if rows != "web time:41@1ms,worker:10,seq:12 0-1023 7" {
		t.Error(rows)
	}
	const workers = `SELECT GROUP_CONCAT(CONCAT_WS(' ', pool, worker, name, owner, term, horizon, written_utc = ?) ORDER BY worker SEPARATOR ';') FROM firn_workers`
	if err := db.QueryRow(workers, w.Written.Format("2006-01-02 15:04:05.000000")).Scan(&rows); err != nil {
		t.Error(err)
	} else if rows != "web 17 host-1 ab 18446744073709551615 9223372036854775807 1;web 18 3 5 0" {
		t.Error(rows)
	}
}
