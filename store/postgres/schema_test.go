package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

// TestPrivileges uses a table as a role that can do nothing else.
func TestPrivileges(t *testing.T) {
	address := own(t)
	schema := newSchema(t, address)
	db := connect(t, at(t, address, "search_path="+schema))
	role := "r_" + schema
	do(t, db, `CREATE ROLE `+role+` LOGIN`, `GRANT USAGE ON SCHEMA `+schema+` TO `+role)
	t.Cleanup(func() { do(t, db, `DROP OWNED BY `+role, `DROP ROLE `+role) })
	s := New(connect(t, at(t, address, "search_path="+schema, "user="+role)))
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	r, err := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	says(t, "Put without a table", err, `a role that may runs "firn store setup"`)
	if r.Version != "" {
		t.Error("nothing was sent, and there is a Version")
	}
	if _, err := s.Init(t.Context()); err == nil {
		t.Error("Init by one who may not")
	}
	if _, _, err := s.MissingPrivileges(t.Context()); !errors.Is(err, store.ErrDenied) {
		t.Errorf("missing privileges without a table: %v", err)
	}
	if missing, grant, err := New(db).MissingPrivileges(t.Context()); err != nil || missing != "" || grant != "" {
		t.Errorf("missing privileges of one who may create the table: %q, %q, %v", missing, grant, err)
	}
	if made, err := New(db).Init(t.Context()); err != nil || !made {
		t.Fatal(made, err)
	}
	_, get := s.Get(t.Context(), "k")
	_, list := s.List(t.Context(), "")
	_, put := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	for what, err := range map[string]error{"Get": get, "List": list, "Put": put} {
		says(t, what+" without rights", err, "types GRANT USAGE ON SCHEMA "+schema+" TO "+role+"; GRANT SELECT, INSERT, UPDATE ON "+schema+".firn_records TO "+role)
		if strings.Contains(err.Error(), "store setup") {
			t.Errorf("%s: the table is there: %v", what, err)
		}
	}

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
	lacks("SELECT, INSERT, UPDATE")
	lacks("")
	do(t, db, `REVOKE INSERT ON firn_records FROM `+role)
	lacks("INSERT")
	do(t, db, `REVOKE SELECT ON firn_records FROM `+role, `GRANT SELECT (key, value, version) ON firn_records TO `+role)
	lacks("SELECT")
	lacks("")
	r = mustPut(t, s, "k", `1`, store.Condition{})
	r = mustPut(t, s, "k", `2`, store.Condition{Version: r.Version})
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 1 {
		t.Errorf("%v, %v", l, err)
	}
	p, err := s.Durability(t.Context())
	if err != nil || !p.Durable || strings.HasPrefix(p.Instance, "/") {
		t.Errorf("%+v, %v", p, err)
	}
	do(t, db, `REVOKE UPDATE ON firn_records FROM `+role)
	_, err = s.Put(t.Context(), "k", []byte(`3`), store.Condition{Version: r.Version})
	says(t, "Put without UPDATE", err, "GRANT SELECT, INSERT, UPDATE ON "+schema+".firn_records TO "+role)
}

// TestInit makes table and views twice, by both ways, and reads the views.
func TestInit(t *testing.T) {
	s, db := fresh(t)
	for _, want := range []bool{true, false} {
		if made, err := s.Init(t.Context()); err != nil || made != want {
			t.Errorf("made %t, %v", made, err)
		}
	}
	do(t, db, SQL())
	w := tabletest.Fill(t, s)

	var rows string
	if err := db.QueryRow(`SELECT string_agg(concat_ws(' ', pool, layout, workers, floor), ';') FROM firn_pools`).Scan(&rows); err != nil {
		t.Error(err)
	} else if rows != "web time:41@1ms,worker:10,seq:12 0-1023 7" {
		t.Error(rows)
	}
	const workers = `SELECT string_agg(concat_ws(' ', pool, worker, name, owner, term, horizon, (extract(epoch FROM written) * 1000000)::bigint = $1), ';'
		ORDER BY worker) FROM firn_workers`
	if err := db.QueryRow(workers, w.Written.UnixMicro()).Scan(&rows); err != nil {
		t.Error(err)
	} else if rows != "web 17 host-1 ab 18446744073709551615 9223372036854775807 t;web 18 3 5 f" {
		t.Error(rows)
	}
}

// TestListUsesIndex: a prefix is a range of the key's index.
func TestListUsesIndex(t *testing.T) {
	s, db := fresh(t)
	mustPut(t, s, "k", `1`, store.Condition{})
	do(t, db, `INSERT INTO firn_records SELECT 'k/' || i, '1', 'x', now() FROM generate_series(1, 10000) AS i`, `ANALYZE firn_records`)
	for _, q := range []string{sqlGet, sqlList} {
		args := []any{"k/77", "k/77\x7f"}[:strings.Count(q, "$")]
		rows, err := db.Query("EXPLAIN "+q, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var plan strings.Builder
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(line + "\n")
		}
		if !strings.Contains(plan.String(), "Index") || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("%s", plan.String())
		}
	}
}
