package postgres

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table"
)

// TestFirstUse lets many processes write to a store that has no table yet.
func TestFirstUse(t *testing.T) {
	pg := shared(t)
	for range 3 {
		address := at(t, pg.URL(), "search_path="+newSchema(t, pg.URL()))
		var wg sync.WaitGroup
		for i := range 16 {
			s := New(connect(t, address))
			wg.Go(func() {
				if i%4 == 0 {
					if _, err := s.Init(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if _, err := s.Put(t.Context(), fmt.Sprint(i), []byte(`1`), store.Condition{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if l, err := New(connect(t, address)).List(t.Context(), ""); err != nil || len(l) != 16 {
			t.Errorf("%d records, %v", len(l), err)
		}
	}
}

// TestNoTable reads from a store that nobody wrote to, which makes nothing.
func TestNoTable(t *testing.T) {
	s, db := fresh(t)
	r, err := s.Get(t.Context(), "k")
	if err != nil || r.Version != "" || r.Read.IsZero() {
		t.Errorf("Get: %+v, %v", r, err)
	}
	if l, err := s.List(t.Context(), ""); err != nil || len(l) != 0 {
		t.Errorf("List: %v, %v", l, err)
	}
	if p, err := s.Durability(t.Context()); err != nil || !p.Durable {
		t.Errorf("Durability: %+v, %v", p, err)
	}
	_, err = s.Put(t.Context(), "k", []byte(`1`), store.Condition{Version: store.NewVersion()})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("Put on a Version: %v", err)
	}
	if exists(t, db, "firn_records") {
		t.Error("a table was made")
	}
	mustPut(t, s, "k", `1`, store.Condition{})
	if !exists(t, db, "firn_records") || exists(t, db, "firn_workers") {
		t.Error("the first Put makes the table, and nothing else")
	}
}

// TestDropped drops the table under open Stores: they have forgotten, and do not
// make it again. One made anew has never seen anything.
func TestDropped(t *testing.T) {
	address := at(t, shared(t).URL(), "search_path="+newSchema(t, shared(t).URL()))
	db := connect(t, address)
	written, created, read, listed := New(db), New(db), New(db), New(db)
	r := mustPut(t, written, "k", `1`, store.Condition{})
	if made, err := created.Init(t.Context()); err != nil || made {
		t.Fatal(made, err)
	}
	if _, err := read.Get(t.Context(), "none"); err != nil {
		t.Fatal(err)
	}
	if _, err := listed.List(t.Context(), "none"); err != nil {
		t.Fatal(err)
	}
	do(t, db, `DROP TABLE firn_records CASCADE`)
	for range 2 {
		for _, s := range []*Store{written, created, read, listed} {
			_, get := s.Get(t.Context(), "k")
			_, list := s.List(t.Context(), "")
			replaced, replace := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
			made, create := s.Put(t.Context(), "k", []byte(`2`), store.Condition{})
			_, durability := s.Durability(t.Context())
			for what, err := range map[string]error{"Get": get, "List": list, "replace": replace, "create": create, "Durability": durability} {
				var forgot *store.ForgotError
				if !errors.As(err, &forgot) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if replaced.Version+made.Version != "" {
				t.Error("nothing was sent, and there is a Version")
			}
		}
	}
	// One that saw it only after its Put had not found it does not either.
	conn, err := table.Conn(t.Context(), written.db)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(written.makeTable(t.Context(), conn), conn.Close()); err != nil {
		t.Error(err)
	}
	if exists(t, db, "firn_records") {
		t.Fatal("the table was made again")
	}
	mustPut(t, New(db), "other", `1`, store.Condition{})
	for _, s := range []*Store{written, read} { // it is another one by now
		if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != "" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version}); !errors.Is(err, store.ErrConflict) {
			t.Error(err)
		}
	}
}

// TestPrivileges uses a table as a role that can do nothing else.
func TestPrivileges(t *testing.T) {
	pg := shared(t)
	schema := newSchema(t, pg.URL())
	db := connect(t, at(t, pg.URL(), "search_path="+schema))
	role := "r_" + schema
	do(t, db, `CREATE ROLE `+role+` LOGIN`, `GRANT USAGE ON SCHEMA `+schema+` TO `+role)
	t.Cleanup(func() { do(t, db, `DROP OWNED BY `+role, `DROP ROLE `+role) })
	s := New(connect(t, at(t, pg.URL(), "search_path="+schema, "user="+role)))
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
	mustPut(t, s, "store", `{"v":1,"floor":"2026-01-01T00:00:00Z"}`, store.Condition{})
	mustPut(t, s, "pool/web", `{"v":1,"id":"x","layout":"time:41@1ms,worker:10,seq:12","workers":"0-1023","floor":7}`, store.Condition{})
	mustPut(t, s, "pool/web/fresh", `{"v":1,"next":3}`, store.Condition{})
	w := mustPut(t, s, "pool/web/worker/17", `{"v":1,"term":18446744073709551615,"owner":"ab","name":"host-1","horizon":9223372036854775807}`, store.Condition{})
	mustPut(t, s, "pool/web/worker/18", `{"v":1,"term":3,"horizon":5}`, store.Condition{})

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
