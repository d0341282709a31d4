package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// TestWait lets a Put wait for a lock: what it judges and writes is the time when
// the wait is over, whether or not the record has changed meanwhile.
func TestWait(t *testing.T) {
	const wait = 400 * time.Millisecond
	for _, level := range []string{"REPEATABLE-READ", "READ-COMMITTED"} {
		for _, under := range []string{`SELECT * FROM firn_records FOR UPDATE`, `UPDATE firn_records SET value = '0'`} {
			for _, within := range []time.Duration{0, wait / 2, time.Hour} {
				_, db, c := fresh(t)
				s := New(connect(t, with(c, func(c *mysql.Config) { c.Params = map[string]string{"tx_isolation": "'" + level + "'"} })))
				r := mustPut(t, s, "k", `1`, store.Condition{})
				tx, err := db.Begin()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec(under); err != nil {
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
						t.Errorf("%s, within %v: %v", under, within, err)
					}
				case err != nil:
					t.Errorf("%s, within %v: %v", under, within, err)
				case got.Written.Before(at.Add(-10 * time.Millisecond)):
					t.Errorf("%s, within %v: written %v before the lock was released", under, within, at.Sub(got.Written))
				}
			}
		}
	}
}

// TestWaitChanged lets a Put wait for one that changes the record.
func TestWaitChanged(t *testing.T) {
	_, db, c := fresh(t)
	// The default from MariaDB 11.6 on.
	s := New(connect(t, with(c, func(c *mysql.Config) { c.Params = map[string]string{"innodb_snapshot_isolation": "1"} })))
	r := mustPut(t, s, "k", `1`, store.Condition{})
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(`UPDATE firn_records SET version = REVERSE(version)`); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			time.Sleep(100 * time.Millisecond)
			ended <- end(tx)
		}()
		put, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
		if e := <-ended; e != nil {
			t.Fatal(e)
		}
		got, gerr := s.Get(t.Context(), "k")
		if gerr != nil {
			t.Fatal(gerr)
		}
		if changed := string(got.Value) == "1"; changed != errors.Is(err, store.ErrConflict) || !changed && got.Version != put.Version {
			t.Errorf("%+v, %v; %+v", put, err, got)
		}
		r = got
	}
}

// TestTime: neither the time zone nor a change of it in between matters.
func TestTime(t *testing.T) {
	s, db, c := fresh(t)
	r := mustPut(t, s, "k", `1`, store.Condition{})
	for _, zone := range []string{"+00:00", "-09:30", "+13:00"} {
		s := New(connect(t, with(c, func(c *mysql.Config) { c.Params = map[string]string{"time_zone": "'" + zone + "'"} })))
		got, err := s.Get(t.Context(), "k")
		if err != nil || !got.Written.Equal(r.Written) || got.Read.Sub(r.Read).Abs() > time.Minute {
			t.Errorf("%s: %+v, %v", zone, got, err)
		}
		r = mustPut(t, s, "k", `1`, store.Condition{Version: r.Version, Within: time.Minute})
		if off := time.Since(r.Written).Abs(); off > time.Minute {
			t.Errorf("%s: written %v ago", zone, off)
		}
	}
	for local, want := range map[string]string{ // NOW and SYSDATE; how long that is
		"'2026-01-01 00:00:00', '2026-01-01 00:00:00.000123'": "123",
		"'2026-01-01 00:00:00', '2026-01-01 00:28:00'":        "1680000000",
		"'2026-03-29 01:59:59', '2026-03-29 03:00:01'":        "2000000",
		"'2026-10-25 02:59:59', '2026-10-25 02:00:01'":        "2000000",
		"'2026-04-05 01:59:59', '2026-04-05 01:30:01'":        "2000000", // Lord Howe
		"'2026-01-01 00:00:00', '2025-12-31 23:59:58'":        "-2000000",
	} {
		expr := strings.Replace(sqlNow, sqlBegan, "0", 1)
		now, sysdate, _ := strings.Cut(local, ", ")
		expr = strings.NewReplacer("NOW(6)", now, "SYSDATE(6)", sysdate).Replace(expr)
		var got string
		if err := db.QueryRow("SELECT " + expr).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %s, %v, not %s", local, got, err, want)
		}
	}
}

// TestAutocommit: with autocommit off nothing is written that looks as if it were.
func TestAutocommit(t *testing.T) {
	good, _, c := fresh(t)
	r := mustPut(t, good, "k", `1`, store.Condition{})
	s := New(connect(t, with(c, func(c *mysql.Config) { c.Params = map[string]string{"autocommit": "0"} })))
	_, err := s.Get(t.Context(), "k")
	says(t, "Get", err, "leave out autocommit")
	_, err = s.List(t.Context(), "")
	says(t, "List", err, "leave out autocommit")
	for key, v := range map[string]store.Version{"k": r.Version, "new": ""} {
		if _, err := s.Put(t.Context(), key, []byte(`2`), store.Condition{Version: v}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("Put %s: %v", key, err)
		}
	}
	s.db.Close() // what it did not commit is taken back
	if l, err := good.List(t.Context(), ""); err != nil || len(l) != 1 || l[0].Version != r.Version {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestBegun: on a connection on which somebody began a transaction by hand nothing is
// written that looks as if it were committed.
func TestBegun(t *testing.T) {
	good, _, c := fresh(t)
	r := mustPut(t, good, "k", `1`, store.Condition{})
	s := New(connect(t, c))
	s.db.SetMaxOpenConns(1)
	do(t, s.db, "BEGIN")
	_, err := s.Get(t.Context(), "k")
	says(t, "Get", err, "before its transaction has ended")
	_, err = s.Update(t.Context(), "k", to2)
	says(t, "Update", err, "before its transaction has ended")
	for key, v := range map[string]store.Version{"k": r.Version, "new": ""} {
		if _, err := s.Put(t.Context(), key, []byte(`2`), store.Condition{Version: v}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("Put %s: %v", key, err)
		}
	}
	do(t, s.db, "COMMIT")
	if l, err := good.List(t.Context(), ""); err != nil || len(l) != 1 || l[0].Version != r.Version {
		t.Errorf("%+v, %v", l, err)
	}
	works(t, s)
}

// TestPacket: a server that takes no large statements refuses a large value.
func TestPacket(t *testing.T) {
	s := New(connect(t, config(t, testserver.MariaDB(t, "--max-allowed-packet=65536"))))
	r := mustPut(t, s, "k", `1`, store.Condition{})
	put, err := s.Put(t.Context(), "k", fmt.Appendf(nil, `"%0*d"`, 40000, 0), store.Condition{Version: r.Version})
	says(t, "Put", err, "max_allowed_packet is too small")
	if put.Version != "" {
		t.Error("for certain not carried out, and there is a Version")
	}
	works(t, s)
}

// TestSentOnce has a driver that says, after a statement was carried out, that the
// connection was bad, as some do where a *sql.DB would send it again.
func TestSentOnce(t *testing.T) {
	s, _, c := fresh(t)
	r := mustPut(t, s, "k", `0`, store.Condition{})
	connector := &badConnector{dsn: c.FormatDSN()}
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
	dsn  string
	sent atomic.Int64
}

func (c *badConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := mysql.MySQLDriver{}.Open(c.dsn)
	return &badConn{conn, &c.sent}, err
}

func (c *badConnector) Driver() driver.Driver { return mysql.MySQLDriver{} }

type badConn struct {
	driver.Conn
	sent *atomic.Int64
}

func (c *badConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if c.sent.Add(1) == 1 && err == nil {
		return nil, driver.ErrBadConn
	}
	return result, err
}

// TestRoundTrips counts what is sent to the server, when all is as usual.
func TestRoundTrips(t *testing.T) {
	_, _, c := fresh(t)
	var sent atomic.Int64
	c = with(c, func(c *mysql.Config) {
		c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return &countedConn{conn, &sent}, err
		}
	})
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	s := New(db)
	r := mustPut(t, s, "k", `1`, store.Condition{})
	want := map[string]int64{"Get": 2, "Get none": 1, "List": 2, "List none": 1, "Put": 1, "create": 1}
	for range 2 {
		for what, call := range map[string]func() error{
			"Get":       func() error { _, err := s.Get(t.Context(), "k"); return err },
			"Get none":  func() error { _, err := s.Get(t.Context(), "none"); return err },
			"List":      func() error { _, err := s.List(t.Context(), "k"); return err },
			"List none": func() error { _, err := s.List(t.Context(), "none"); return err },
			"Put": func() (err error) {
				r, err = s.Put(t.Context(), "k", []byte(`1`), store.Condition{Version: r.Version, Within: time.Hour})
				return err
			},
			"create": func() error {
				_, err := s.Put(t.Context(), string(store.NewVersion()), []byte(`1`), store.Condition{})
				return err
			},
		} {
			before := sent.Load()
			if err := call(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if n := sent.Load() - before; n != want[what] {
				t.Errorf("%s takes %d round trips", what, n)
			}
		}
	}
}

// A countedConn counts writes: the driver makes one for each statement.
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
	good, _, c := fresh(t)
	proxy := testserver.NewProxy(t, c.Addr)
	s := New(connect(t, through(c, proxy)))
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

// TestListUsesIndex: a key, and a prefix, is looked for in the key's index.
func TestListUsesIndex(t *testing.T) {
	s, db, _ := fresh(t)
	mustPut(t, s, "k", `1`, store.Condition{})
	do(t, db, "INSERT INTO firn_records SELECT CONCAT('k/', seq), '1', 'x', 0 FROM seq_1_to_10000", "ANALYZE TABLE firn_records")
	for _, q := range []string{sqlGet("k/77"), sqlList("k/77")} {
		rows, err := db.Query("EXPLAIN " + q)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		found := false
		for rows.Next() {
			var id, kind, table, access, possible, key, length, ref, n, extra sql.NullString
			if err := rows.Scan(&id, &kind, &table, &access, &possible, &key, &length, &ref, &n, &extra); err != nil {
				t.Fatal(err)
			}
			if table.String == "r" {
				found = key.String == "PRIMARY" && (access.String == "const" || access.String == "range")
				t.Log(access.String, key.String, n.String, extra.String)
			}
		}
		if !found {
			t.Errorf("reads all: %s", q)
		}
	}
}
