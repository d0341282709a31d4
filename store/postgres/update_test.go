package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// to2 is what an Update writes whatever it is given.
func to2(store.Record) ([]byte, error) { return []byte(`2`), nil }

// TestUpdateLost loses the request or the reply of each statement of an Update.
func TestUpdateLost(t *testing.T) {
	pg := shared(t)
	address := at(t, pg.URL(), "search_path="+newSchema(t, pg.URL()))
	proxy := testserver.NewProxy(t, pg.Addr())
	good := New(connect(t, address))
	mustPut(t, good, "k", `0`, store.Condition{})
	landed := map[string]bool{}
	for _, c := range []struct {
		name string
		when string
		lose func(int)
	}{
		{"BEGIN", "begin", proxy.LoseReplies},
		{"UPDATE lost", "update", proxy.LoseRequests},
		{"UPDATE unanswered", "update", proxy.LoseReplies},
		{"COMMIT lost", "commit", proxy.LoseRequests},
		{"COMMIT unanswered", "commit", proxy.LoseReplies},
	} {
		lose := map[string]func(){c.when: func() { c.lose(1) }}
		db := sql.OpenDB(&txConnector{through(t, address, proxy.Addr()), lose})
		defer db.Close()
		s := New(db)
		if err := use(t, New(connect(t, through(t, address, proxy.Addr()))), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		was, err := good.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		put, err := s.Update(t.Context(), "k", func(store.Record) ([]byte, error) {
			if f := lose["update"]; f != nil {
				f()
			}
			return []byte(`2`), nil
		})
		says(t, c.name, err, "connection was lost")
		if unknown := c.when == "commit"; unknown != (put.Version != "") {
			t.Errorf("%s: tried %q", c.name, put.Version)
		}
		// The row is free again, and has what was tried or what it had.
		now, err := good.Update(t.Context(), "k", func(r store.Record) ([]byte, error) {
			landed[c.name] = r.Version != was.Version
			if landed[c.name] && r.Version != put.Version {
				t.Errorf("%s: tried %q, was %q, is %q", c.name, put.Version, was.Version, r.Version)
			}
			return []byte(`3`), nil
		})
		if err != nil || now.Version == "" {
			t.Errorf("%s: and then %v", c.name, err)
		}
	}
	if landed["COMMIT lost"] || !landed["COMMIT unanswered"] {
		t.Errorf("carried out: %v", landed)
	}
}

// A txConnector says when a transaction begins and when it is committed.
type txConnector struct {
	address string
	before  map[string]func()
}

func (c *txConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := stdlib.GetDefaultDriver().Open(c.address)
	if err != nil {
		return nil, err
	}
	return &txConn{conn.(*stdlib.Conn), c.before}, nil
}

func (c *txConnector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

type txConn struct {
	*stdlib.Conn
	before map[string]func()
}

func (c *txConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if f := c.before["begin"]; f != nil {
		f()
	}
	tx, err := c.Conn.BeginTx(ctx, o)
	return &commitTx{tx, c.before["commit"]}, err
}

type commitTx struct {
	driver.Tx
	before func()
}

func (tx *commitTx) Commit() error {
	if tx.before != nil {
		tx.before()
	}
	return tx.Tx.Commit()
}

// TestUpdateNoTable: where nothing was ever written there is nothing to hold, and
// where there was a table it was forgotten.
func TestUpdateNoTable(t *testing.T) {
	s, db := fresh(t)
	calls := 0
	f := func(r store.Record) ([]byte, error) {
		if calls++; r.Version != "" || r.Key != "k" || r.Read.IsZero() {
			t.Errorf("f is given %+v", r)
		}
		return []byte(`1`), nil
	}
	for _, made := range []bool{false, true} {
		calls = 0
		if r, err := s.Update(t.Context(), "k", f); !errors.Is(err, store.ErrConflict) || r.Version != "" || calls != 1 {
			t.Errorf("table: %t: %+v, %v after %d calls", made, r, err, calls)
		}
		mine := errors.New("mine")
		if _, err := s.Update(t.Context(), "k", func(store.Record) ([]byte, error) { return nil, mine }); err != mine {
			t.Errorf("table: %t: %v", made, err)
		}
		if exists(t, db, "firn_records") != made {
			t.Error("an Update makes no table")
		}
		mustPut(t, s, "other", `1`, store.Condition{Version: versionOf(t, s, "other")})
	}
	updated := New(db)
	if _, err := updated.Update(t.Context(), "other", to2); err != nil {
		t.Error(err)
	}
	do(t, db, `DROP TABLE firn_records`)
	for _, s := range []*Store{s, updated} {
		calls = 0
		var forgot *store.ForgotError
		if r, err := s.Update(t.Context(), "k", f); !errors.As(err, &forgot) || r.Version != "" || calls != 0 {
			t.Errorf("%+v, %v after %d calls", r, err, calls)
		}
	}
}

// versionOf is the Version that the store has.
func versionOf(t *testing.T, s *Store, key string) store.Version {
	t.Helper()
	r, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return r.Version
}

// TestUpdateStopped stops a process that holds the row: the others go on, and it
// learns that it wrote nothing.
func TestUpdateStopped(t *testing.T) {
	s, db := fresh(t)
	mustPut(t, s, "k", `0`, store.Condition{})
	other := New(db)
	holds, thaw := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		r, err := s.Update(t.Context(), "k", func(store.Record) ([]byte, error) {
			close(holds)
			<-thaw // as a process that is stopped
			return []byte(`1`), nil
		})
		if r.Version != "" {
			t.Errorf("COMMIT was not sent, and there is the Version %s", r.Version)
		}
		ended <- err
	}()
	<-holds
	start := time.Now()
	r, err := other.Update(t.Context(), "k", to2)
	if took := time.Since(start); err != nil || took < time.Second || took > time.Minute {
		t.Errorf("after %v: %v", took, err)
	}
	close(thaw)
	says(t, "Update", <-ended, "the process stood still", "connection was lost")
	if got, err := other.Get(t.Context(), "k"); err != nil || got.Version != r.Version {
		t.Errorf("%+v, %v", got, err)
	}
	works(t, s)
	var timeout string
	if err := s.db.QueryRow(`SHOW idle_in_transaction_session_timeout`).Scan(&timeout); err != nil || timeout != "0" {
		t.Errorf("the caller's connection keeps a timeout of %s, %v", timeout, err)
	}
}

// TestUpdateGivesUp: one that waits for the row returns by its deadline, and
// neither has it later nor keeps a connection.
func TestUpdateGivesUp(t *testing.T) {
	s, db := fresh(t)
	mustPut(t, s, "k", `0`, store.Condition{})
	s.db.SetMaxOpenConns(2)
	holder := New(db)
	_, err := holder.Update(t.Context(), "k", func(store.Record) ([]byte, error) {
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			r, err := s.Update(ctx, "k", func(store.Record) ([]byte, error) {
				t.Error("f is called")
				return nil, errors.New("never")
			})
			if !errors.Is(err, context.DeadlineExceeded) || r.Version != "" || time.Since(start) > 20*time.Second {
				t.Errorf("%+v, %v after %v", r, err, time.Since(start))
			}
		}
		return []byte(`1`), nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := s.Update(t.Context(), "k", to2); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if r, err := s.Update(ctx, "k", func(store.Record) ([]byte, error) { cancel(); return []byte(`9`), nil }); err == nil || r.Version != "" {
		t.Errorf("cancelled by f: %+v, %v", r, err)
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || string(got.Value) != `2` {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestUpdateRefused has the server, or the table, refuse.
func TestUpdateRefused(t *testing.T) {
	s, db := fresh(t)
	r := mustPut(t, s, "k", `0`, store.Condition{})
	path := ""
	if err := db.QueryRow(`SHOW search_path`).Scan(&path); err != nil {
		t.Fatal(err)
	}
	with := func(option string) *Store {
		return New(connect(t, at(t, shared(t).URL(), "search_path="+path, option)))
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
	refused("read-only", with("default_transaction_read_only=on"), to2, "default_transaction_read_only")
	refused("no JSON", s, func(store.Record) ([]byte, error) { return []byte("\xff"), nil }, "not JSON")
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT FROM firn_records FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	refused("lock_timeout", with("lock_timeout=50"), to2, "another transaction holds a lock")
	refused("statement_timeout", with("statement_timeout=50"), to2, "statement_timeout")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"repeatable read", "serializable"} { // those who wait are not refused
		s := with("default_transaction_isolation=" + level)
		if r, err = s.Update(t.Context(), "k", to2); err != nil {
			t.Errorf("%s: %v", level, err)
		}
	}
	do(t, db, `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
		`CREATE TRIGGER no BEFORE UPDATE ON firn_records FOR EACH ROW EXECUTE FUNCTION no()`)
	refused("a trigger that drops", s, to2, "has the table a trigger")
	do(t, db, `DROP TRIGGER no ON firn_records`, `CREATE OR REPLACE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE unique_violation; END'`,
		`CREATE CONSTRAINT TRIGGER no AFTER UPDATE ON firn_records DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION no()`)
	refused("a commit that fails", s, to2, "unique_violation")
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
