package mysql

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table/tabletest"
)

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
	_, err = s.Update(t.Context(), "k", tabletest.To2)
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

// TestRoundTrips counts what is sent to the server, when all is as usual.
func TestRoundTrips(t *testing.T) {
	_, _, c := fresh(t)
	var sent atomic.Int64
	c = with(c, func(c *mysql.Config) {
		c.DialFunc = tabletest.CountingDial(&sent)
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
