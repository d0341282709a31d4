package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// TestWait lets a Put wait for a lock: what it judges and writes is the time when
// the wait is over, whether or not the record has changed meanwhile.
func TestWait(t *testing.T) {
	const wait = 400 * time.Millisecond
	for name, under := range map[string]func(tx *sql.Tx) error{
		"locked":  func(tx *sql.Tx) error { _, err := tx.Exec(`SELECT FROM firn_records FOR UPDATE`); return err },
		"touched": func(tx *sql.Tx) error { _, err := tx.Exec(`UPDATE firn_records SET value = '0'`); return err },
	} {
		for _, within := range []time.Duration{0, wait / 2, time.Hour} {
			s, db := fresh(t)
			r := mustPut(t, s, "k", `1`, store.Condition{})
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if err := under(tx); err != nil {
				t.Fatal(err)
			}
			released := make(chan time.Time)
			go func() {
				time.Sleep(wait)
				now := time.Now()
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
				released <- now
			}()
			got, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version, Within: within})
			at := <-released
			switch {
			case within == wait/2:
				if !errors.Is(err, store.ErrConflict) {
					t.Errorf("%s, within %v: %v", name, within, err)
				}
			case err != nil:
				t.Errorf("%s, within %v: %v", name, within, err)
			case got.Written.Before(at.Add(-10 * time.Millisecond)):
				t.Errorf("%s, within %v: written %v before the lock was released", name, within, at.Sub(got.Written))
			}
		}
	}
}

// TestWaitChanged lets a Put wait for one that changes the record.
func TestWaitChanged(t *testing.T) {
	s, db := fresh(t)
	r := mustPut(t, s, "k", `1`, store.Condition{})
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := string(store.NewVersion())
		for _, q := range []string{"BEGIN", `UPDATE firn_records SET version = '` + other + `'`} {
			if _, err := conn.ExecContext(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error)
		go func() {
			time.Sleep(100 * time.Millisecond)
			_, err := conn.ExecContext(t.Context(), end)
			ended <- errors.Join(err, conn.Close())
		}()
		_, err = s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
		if e := <-ended; e != nil {
			t.Fatal(e)
		}
		if want := end == "COMMIT"; errors.Is(err, store.ErrConflict) != want || err != nil && !want {
			t.Errorf("after a %s: %v", end, err)
		}
		if r, err = s.Get(t.Context(), "k"); err != nil || end == "COMMIT" && string(r.Version) != other {
			t.Errorf("after a %s: %+v, %v", end, r, err)
		}
	}
}

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

// TestSentOnce has a driver that says, after a statement was carried out, that the
// connection was bad, as some do where a *sql.DB would send it again.
func TestSentOnce(t *testing.T) {
	address := at(t, shared(t).URL(), "search_path="+newSchema(t, shared(t).URL()))
	s := New(connect(t, address))
	r := mustPut(t, s, "k", `0`, store.Condition{})
	connector := &badConnector{address: address}
	bad := sql.OpenDB(connector)
	defer bad.Close()
	put, err := New(bad).Put(t.Context(), "k", []byte(`1`), store.Condition{Version: r.Version})
	says(t, "Put", err, "connection was lost")
	if n := connector.sent.Load(); n != 1 {
		t.Errorf("sent %d times", n)
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != put.Version {
		t.Errorf("tried %q, and the record is %+v, %v", put.Version, got, err)
	}
}

type badConnector struct {
	address string
	sent    atomic.Int64
}

func (c *badConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := stdlib.GetDefaultDriver().Open(c.address)
	if err != nil {
		return nil, err
	}
	return &badConn{conn.(*stdlib.Conn), &c.sent}, nil
}

func (c *badConnector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

type badConn struct {
	*stdlib.Conn
	sent *atomic.Int64
}

func (c *badConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, query, args)
	if c.sent.Add(1) == 1 && err == nil {
		rows.Close()
		return nil, driver.ErrBadConn
	}
	return rows, err
}

// TestRoundTrips counts what is sent to the server, when all is as usual.
func TestRoundTrips(t *testing.T) {
	pg := shared(t)
	path := "search_path=" + newSchema(t, pg.URL())
	for mode, level := range map[string]string{
		"cache_statement": "read committed", "exec": "read committed", "simple_protocol": "read committed",
		"cache_describe": "serializable",
	} {
		config, err := pgx.ParseConfig(at(t, pg.URL(), path, "default_query_exec_mode="+mode, "default_transaction_isolation="+level))
		if err != nil {
			t.Fatal(err)
		}
		var sent atomic.Int64
		config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return &countedConn{c, &sent}, err
		}
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

// A countedConn counts writes: pgx makes one for all that it sends at once.
type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

// TestLost loses requests and replies one by one.
func TestLost(t *testing.T) {
	pg := shared(t)
	address := at(t, pg.URL(), "search_path="+newSchema(t, pg.URL()))
	proxy := testserver.NewProxy(t, pg.Addr())
	s, good := New(connect(t, through(t, address, proxy.Addr()))), New(connect(t, address))
	mustPut(t, good, "k", `0`, store.Condition{})
	for _, lose := range []func(int){proxy.LoseRequests, proxy.LoseReplies} {
		for _, key := range []string{"k", "new"} {
			works(t, s)
			was, err := good.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			lose(1)
			put, err := s.Put(t.Context(), key, []byte(`2`), store.Condition{Version: was.Version})
			says(t, "Put", err, "connection was lost")
			now, gerr := good.Get(t.Context(), key)
			if gerr != nil || put.Version == "" || now.Version != was.Version && now.Version != put.Version {
				t.Errorf("%s: tried %q, %v; was %q, is %q, %v", key, put.Version, err, was.Version, now.Version, gerr)
			}
		}
	}
}
