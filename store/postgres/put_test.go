package postgres

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

// TestCommitFails lets the commit of a Put fail after its row was returned.
func TestCommitFails(t *testing.T) {
	s, db := fresh(t)
	r := mustPut(t, s, "k", `1`, store.Condition{})
	do(t, db, `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not today''; END'`,
		`CREATE CONSTRAINT TRIGGER no AFTER INSERT OR UPDATE ON firn_records DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION no()`)
	for key, cond := range map[string]store.Condition{"k": {Version: r.Version}, "new": {}} {
		got, err := s.Put(t.Context(), key, []byte(`2`), cond)
		says(t, "Put", err, "not today")
		if got.Version == "" {
			t.Error("a Put that failed in its commit has no Version: the outcome is taken for certain")
		}
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRoundTrips counts what is sent to the server, when all is as usual.
func TestRoundTrips(t *testing.T) {
	address := own(t)
	path := "search_path=" + newSchema(t, address)
	for mode, level := range map[string]string{
		"cache_statement": "read committed", "exec": "read committed", "simple_protocol": "read committed",
		"cache_describe": "serializable",
	} {
		config, err := pgx.ParseConfig(at(t, address, path, "default_query_exec_mode="+mode, "default_transaction_isolation="+level))
		if err != nil {
			t.Fatal(err)
		}
		var sent atomic.Int64
		config.DialFunc = tabletest.CountingDial(&sent)
		db := stdlib.OpenDB(*config)
		defer db.Close()
		s := New(db)
		var r store.Record
		calls := map[string]func() error{
			"Get":  func() (err error) { r, err = s.Get(t.Context(), mode); return err },
			"List": func() error { _, err := s.List(t.Context(), mode); return err },
			"Put": func() (err error) {
				r, err = s.Put(t.Context(), mode, []byte(`1`), store.Condition{Version: r.Version})
				return err
			},
			"conflict": func() error {
				_, err := s.Put(t.Context(), mode, []byte(`1`), store.Condition{Version: store.NewVersion()})
				if errors.Is(err, store.ErrConflict) {
					return nil
				}
				return errors.Join(errors.New("no conflict"), err)
			},
		}
		for range 3 { // the first makes the table, the second prepares
			for what, call := range calls {
				if err := call(); err != nil {
					t.Fatalf("%s: %s: %v", mode, what, err)
				}
			}
		}
		for what, call := range calls {
			before := sent.Load()
			if err := call(); err != nil {
				t.Fatal(err)
			}
			if n := sent.Load() - before; n != 1 {
				t.Errorf("%s: %s takes %d round trips", mode, what, n)
			}
		}
	}
}
