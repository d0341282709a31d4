package postgres

import (
	"errors"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

// TestUpdateUsual: the caller's connections come back as they were.
func TestUpdateUsual(t *testing.T) {
	s, _ := fresh(t)
	s.db.SetMaxOpenConns(1)
	mustPut(t, s, "k", `0`, store.Condition{})
	if _, err := s.Update(t.Context(), "k", tabletest.To2); err != nil {
		t.Error(err)
	}
	var timeout string
	if err := s.db.QueryRow(`SHOW idle_in_transaction_session_timeout`).Scan(&timeout); err != nil || timeout != "0" {
		t.Errorf("the caller's connection keeps a timeout of %s, %v", timeout, err)
	}
}

// TestUpdateRefused has the server, or the table, refuse.
func TestUpdateRefused(t *testing.T) {
	s, db := fresh(t)
	r := mustPut(t, s, "k", `0`, store.Condition{})
	var path, name string
	if err := db.QueryRow(`SELECT current_setting('search_path'), current_database()`).Scan(&path, &name); err != nil {
		t.Fatal(err)
	}
	with := func(option string) *Store {
		return New(connect(t, at(t, inDatabase(t, shared(t).URL(), name), "search_path="+path, option)))
	}
	refused := func(what string, s *Store, f func(store.Record) ([]byte, error), want string) {
		t.Helper()
		put, err := s.Update(t.Context(), "k", f)
		says(t, what, err, want)
		if put.Version != "" {
			t.Errorf("%s: for certain not carried out, and there is a Version", what)
		}
		if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	refused("read-only", with("default_transaction_read_only=on"), tabletest.To2, "default_transaction_read_only")
	refused("no JSON", s, func(store.Record) ([]byte, error) { return []byte("\xff"), nil }, "not JSON")
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT FROM firn_records FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	refused("lock_timeout", with("lock_timeout=50"), tabletest.To2, "another transaction holds a lock")
	refused("statement_timeout", with("statement_timeout=50"), tabletest.To2, "statement_timeout")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"repeatable read", "serializable"} { // those who wait are not refused
		s := with("default_transaction_isolation=" + level)
		if r, err = s.Update(t.Context(), "k", tabletest.To2); err != nil {
			t.Errorf("%s: %v", level, err)
		}
	}
	do(t, db, `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
		`CREATE TRIGGER no BEFORE UPDATE ON firn_records FOR EACH ROW EXECUTE FUNCTION no()`)
	refused("a trigger that drops", s, tabletest.To2, "has the table a trigger")
	do(t, db, `DROP TRIGGER no ON firn_records`, `CREATE OR REPLACE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE unique_violation; END'`,
		`CREATE CONSTRAINT TRIGGER no AFTER UPDATE ON firn_records DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION no()`)
	refused("a commit that fails", s, tabletest.To2, "unique_violation")
}

// TestUpdateStandby: a standby holds nothing.
func TestUpdateStandby(t *testing.T) {
	primary := testserver.Postgres(t)
	mustPut(t, New(connect(t, primary.URL())), "k", `1`, store.Condition{})
	s := New(connect(t, testserver.PostgresStandby(t, primary).URL()))
	for _, key := range []string{"k", "new"} {
		r, err := s.Update(t.Context(), key, func(store.Record) ([]byte, error) {
			t.Error("f is called")
			return nil, errors.New("never")
		})
		says(t, key, err, "connect to the primary")
		if r.Version != "" {
			t.Error("a standby wrote, or may have")
		}
	}
}
