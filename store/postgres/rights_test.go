package postgres

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
)

// TestHiddenTable: a role that may not use the schema of the table is told so. The server
// passes over the schema without a word: the table must neither look missing, nor another
// one, of a later schema, take its place.
func TestHiddenTable(t *testing.T) {
	t.Parallel()
	address := own(t)
	ids, own, role := newSchema(t, address), newSchema(t, address), newSchema(t, address)
	admin := connect(t, at(t, address, "search_path="+ids))
	if _, err := New(admin).Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, admin, `CREATE ROLE `+role+` LOGIN`)
	t.Cleanup(func() { do(t, admin, `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	do(t, admin, `GRANT SELECT, INSERT, UPDATE ON firn_records TO `+role)
	do(t, admin, `GRANT USAGE, CREATE ON SCHEMA `+own+` TO `+role)
	as := func(path string) *Store {
		return New(connect(t, at(t, asRole(t, address, role), "search_path="+path)))
	}
	grant := "GRANT USAGE ON SCHEMA " + ids + " TO " + role
	denied := func(what string, s *Store) {
		t.Helper()
		_, get := s.Get(t.Context(), "k")
		put, wrote := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
		_, update := s.Update(t.Context(), "k", func(store.Record) ([]byte, error) { return []byte(`1`), nil })
		_, durability := s.Durability(t.Context())
		for of, err := range map[string]error{"Get": get, "Put": wrote, "Update": update, "Durability": durability} {
			var forgot *store.ForgotError
			if err == nil || !strings.Contains(err.Error(), grant) || errors.As(err, &forgot) {
				t.Errorf("%s, %s: %v, want %q", what, of, err, grant)
			}
		}
		if put.Version != "" {
			t.Errorf("%s: it may have written", what)
		}
	}
	denied("the only schema", as(ids))
	denied("before one where it may make a table", as(ids+", "+own))
	do(t, connect(t, at(t, address, "search_path="+own)), `CREATE TABLE firn_records (LIKE `+ids+`.firn_records INCLUDING ALL)`)
	do(t, connect(t, at(t, address, "search_path="+own)), `GRANT SELECT, INSERT, UPDATE ON firn_records TO `+role)
	if _, err := as(ids + "," + own).Durability(t.Context()); err == nil || !strings.Contains(err.Error(), grant) {
		t.Errorf("a table of a later schema took its place: %v", err)
	}
	if _, err := as(own + "," + ids).Durability(t.Context()); err != nil {
		t.Errorf("a table of an earlier schema is the store: %v", err)
	}
	do(t, admin, grant)
	running := as(ids)
	works(t, running)
	do(t, admin, `REVOKE USAGE ON SCHEMA `+ids+` FROM `+role)
	denied("while it runs", running)
	do(t, admin, grant)
	works(t, running)
	do(t, admin, `REVOKE INSERT ON firn_records FROM `+role)
	_, err := running.Put(t.Context(), "new", []byte(`1`), store.Condition{})
	says(t, "without INSERT", err, "GRANT SELECT, INSERT, UPDATE ON "+ids+".firn_records TO "+role)
}

// TestInitBeside: a schema that comes to be before that of the table on the search_path, such as
// one of the role's name, gets no table of its own.
func TestInitBeside(t *testing.T) {
	t.Parallel()
	address := own(t)
	first, second := newSchema(t, address), newSchema(t, address)
	if made, err := New(connect(t, at(t, address, "search_path="+second))).Init(t.Context()); err != nil || !made {
		t.Fatal(made, err)
	}
	db := connect(t, at(t, address, "search_path="+first+","+second))
	do(t, db, `DROP VIEW firn_workers`)
	if made, err := New(db).Init(t.Context()); err != nil || made {
		t.Errorf("made %t, %v", made, err)
	}
	for schema, want := range map[string]bool{first: false, second: true} {
		for _, name := range []string{"firn_records", "firn_pools", "firn_workers"} {
			if got := exists(t, connect(t, at(t, address, "search_path="+schema)), name); got != want {
				t.Errorf("%s in the schema of the table is %t, in the other one the opposite: %t", name, want, got)
			}
		}
	}
}

// asRole returns address with another user.
func asRole(tb testing.TB, address, role string) string {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}
