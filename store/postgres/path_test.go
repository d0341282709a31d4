package postgres

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// TestTableElsewhere: a role whose search_path does not find the table is told where it is. No
// call begins a second set of records, which would repeat ids.
func TestTableElsewhere(t *testing.T) {
	t.Parallel()
	address := own(t)
	ids := newSchema(t, address)
	admin := connect(t, at(t, address, "search_path="+ids))
	if made, err := New(admin).Init(t.Context()); err != nil || !made {
		t.Fatal(made, err)
	}
	role := "r_" + ids
	do(t, admin, `CREATE ROLE `+role+` LOGIN`, `CREATE SCHEMA AUTHORIZATION `+role)
	t.Cleanup(func() { do(t, admin, `DROP OWNED BY `+role+` CASCADE`, `DROP ROLE `+role) })
	do(t, admin, `GRANT USAGE ON SCHEMA `+ids+` TO `+role, `GRANT SELECT, INSERT, UPDATE ON firn_records TO `+role)
	program := func() *Store { return New(connect(t, asRole(t, address, role))) }

	s := program()
	_, get := s.Get(t.Context(), "k")
	_, list := s.List(t.Context(), "")
	_, put := s.Put(t.Context(), "k", []byte(`1`), store.Condition{})
	_, update := s.Update(t.Context(), "k", func(store.Record) ([]byte, error) { return []byte(`1`), nil })
	_, durability := s.Durability(t.Context())
	_, made := s.Init(t.Context())
	cure := func(path string) string { return "SET search_path = " + path + ", " + ids + "," }
	refused := func(of string, err error, path string) {
		t.Helper()
		for _, want := range []string{"search_path of role " + role + ", which is " + path, "there is one in schema " + ids, "ALTER ROLE " + role + " IN DATABASE ", cure(path), "search_path=" + ids} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", of, err, want)
			}
		}
		if firn.Retryable(err) || !errors.Is(err, store.ErrDenied) {
			t.Errorf("%s: no attempt helps before somebody changes the search_path: %v", of, err)
		}
	}
	for of, err := range map[string]error{"Get": get, "List": list, "Put": put, "Update": update, "Durability": durability, "Init": made} {
		refused(of, err, `"$user", public`)
	}

	// The database's setting, and then the role's, count for connections from then on.
	var name string
	if err := admin.QueryRow(`SELECT current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	do(t, admin, `ALTER DATABASE `+name+` SET search_path = public`)
	_, err := program().Get(t.Context(), "k")
	refused("ALTER DATABASE", err, "public")
	do(t, admin, fmt.Sprintf(`ALTER ROLE %s IN DATABASE %s SET search_path = "$user", public, %s`, role, name, ids))
	works(t, program())
	var tables int
	if err := admin.QueryRow(`SELECT count(*) FROM pg_class WHERE relname = 'firn_records'`).Scan(&tables); err != nil || tables != 1 {
		t.Errorf("%d tables, %v", tables, err)
	}
}

// TestTableComesMeanwhile: while a table is being created, its row in the catalog is seen a moment
// before its name is. That moment is no reason to speak of another schema. make full has more such
// moments.
func TestTableComesMeanwhile(t *testing.T) {
	t.Parallel()
	address := own(t)
	schema := newSchema(t, address)
	path := at(t, address, "search_path="+schema)
	creator := connect(t, path)
	do(t, creator, statements()[0])
	var done atomic.Bool
	var asking sync.WaitGroup
	for range 3 {
		conn, err := connect(t, path).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		asking.Go(func() {
			for !done.Load() && !t.Failed() {
				if err := hidden(t.Context(), conn); err != nil {
					t.Error(err)
				}
			}
		})
	}
	times := 60
	if testserver.Long() {
		times = 200
	}
	for i := 0; i < times && !t.Failed(); i++ {
		do(t, creator, `DROP TABLE firn_records`, statements()[0])
	}
	done.Store(true)
	asking.Wait()
}

// TestSecondStore: a second store in a database is made on purpose, in another schema.
func TestSecondStore(t *testing.T) {
	t.Parallel()
	address := own(t)
	first, second := newSchema(t, address), newSchema(t, address)
	one, two := New(connect(t, at(t, address, "search_path="+first))), New(connect(t, at(t, address, "search_path="+second)))
	works(t, one)
	if _, err := two.Init(t.Context()); err == nil {
		t.Error("Init made a second store")
	}
	for _, want := range []bool{true, false} {
		if made, err := two.InitSecond(t.Context()); err != nil || made != want {
			t.Errorf("made %t, %v", made, err)
		}
	}
	works(t, two)
	for _, s := range []*Store{one, two} {
		if _, err := s.Durability(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestTwoTables: a search_path that finds two tables is refused when a program starts, because
// another role may find the other one first. A process that runs is not stopped by it.
func TestTwoTables(t *testing.T) {
	t.Parallel()
	address := own(t)
	first, second := newSchema(t, address), newSchema(t, address)
	both := func() *Store {
		return New(connect(t, at(t, address, "search_path="+first+","+second+","+second)))
	}
	running := both()
	if _, err := New(connect(t, at(t, address, "search_path="+second))).Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := running.Durability(t.Context()); err != nil {
		t.Errorf("a schema that is named twice: %v", err)
	}
	if _, err := New(connect(t, at(t, address, "search_path="+first))).InitSecond(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := both().Durability(t.Context())
	says(t, "two tables", err, first+", "+second)
	if firn.Retryable(err) {
		t.Errorf("somebody has to change the search_path: %v", err)
	}
	var forgot *store.ForgotError
	if _, err := running.Durability(t.Context()); errors.As(err, &forgot) || err != nil {
		t.Errorf("a process that runs: %v", err)
	}
}
