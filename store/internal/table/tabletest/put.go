package tabletest

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// testWait lets a Put wait for a lock: what it judges and writes is the time when
// the wait is over, whether or not the record has changed meanwhile.
func testWait(t *testing.T, x Server) {
	const wait = 400 * time.Millisecond
	for _, level := range x.Levels {
		for _, under := range []string{`SELECT * FROM firn_records FOR UPDATE`, `UPDATE firn_records SET value = '0'`} {
			for _, within := range []time.Duration{0, wait / 2, time.Hour} {
				d := x.Fresh(t)
				s, db := x.New(x.open(t, d, level...)), x.open(t, d)
				r := MustPut(t, s, "k", `1`, store.Condition{})
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
						t.Errorf("%s, %s, within %v: %v", level, under, within, err)
					}
				case err != nil:
					t.Errorf("%s, %s, within %v: %v", level, under, within, err)
				case got.Written.Before(at.Add(-10 * time.Millisecond)):
					t.Errorf("%s, %s, within %v: written %v before the lock was released", level, under, within, at.Sub(got.Written))
				}
			}
		}
	}
}

// testWaitChanged lets a Put wait for one that changes the record.
func testWaitChanged(t *testing.T, x Server) {
	for _, level := range x.Levels {
		d := x.Fresh(t)
		s, db := x.New(x.open(t, d, level...)), x.open(t, d)
		r := MustPut(t, s, "k", `1`, store.Condition{})
		for end, do := range map[string]func(*sql.Tx) error{"COMMIT": (*sql.Tx).Commit, "ROLLBACK": (*sql.Tx).Rollback} {
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			other := string(store.NewVersion())
			if _, err := tx.Exec(`UPDATE firn_records SET version = '` + other + `'`); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			go func() {
				time.Sleep(100 * time.Millisecond)
				ended <- do(tx)
			}()
			put, err := s.Put(t.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
			if e := <-ended; e != nil {
				t.Fatal(e)
			}
			if want := end == "COMMIT"; errors.Is(err, store.ErrConflict) != want || err != nil && !want {
				t.Errorf("%s, after a %s: %v", level, end, err)
			}
			got, err := s.Get(t.Context(), "k")
			if err != nil || end == "COMMIT" && string(got.Version) != other || end == "ROLLBACK" && got.Version != put.Version {
				t.Errorf("%s, after a %s: %+v, %v", level, end, got, err)
			}
			r = got
		}
	}
}

// testSentOnce has a driver that says, after a statement was carried out, that the
// connection was bad, as some do where a *sql.DB would send it again.
func testSentOnce(t *testing.T, x Server) {
	d := x.Fresh(t)
	s := x.New(x.open(t, d))
	r := MustPut(t, s, "k", `0`, store.Condition{})
	var sent atomic.Int64
	bad := Watch(t, x.Driver, d.DSN(t, d.Addr), &Hooks{After: func() error {
		if sent.Add(1) == 1 {
			return driver.ErrBadConn
		}
		return nil
	}})
	put, err := x.New(bad).Put(t.Context(), "k", []byte(`1`), store.Condition{Version: r.Version})
	Says(t, "Put", err, "connection was lost")
	if n := sent.Load(); n != 1 {
		t.Errorf("sent %d times", n)
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != put.Version {
		t.Errorf("tried %q, and the record is %+v, %v", put.Version, got, err)
	}
}

// testLost loses requests and replies one by one.
func testLost(t *testing.T, x Server) {
	d := x.Fresh(t)
	proxy := testserver.NewProxy(t, d.Addr)
	s, good := x.New(x.through(t, d, proxy)), x.New(x.open(t, d))
	MustPut(t, good, "k", `0`, store.Condition{})
	for _, lose := range []func(int){proxy.LoseRequests, proxy.LoseReplies} {
		for _, key := range []string{"k", "new"} {
			Works(t, s)
			was, err := good.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			lose(1)
			put, err := s.Put(t.Context(), key, []byte(`2`), store.Condition{Version: was.Version})
			Says(t, "Put", err, "connection was lost")
			now, gerr := good.Get(t.Context(), key)
			if gerr != nil || put.Version == "" || now.Version != was.Version && now.Version != put.Version {
				t.Errorf("%s: tried %q, %v; was %q, is %q, %v", key, put.Version, err, was.Version, now.Version, gerr)
			}
		}
	}
}

// testValues refuses what is no JSON, before it is sent.
func testValues(t *testing.T, x Server) {
	s, _ := x.fresh(t)
	for _, v := range []string{"\"\xff\"", "\"\x00\""} {
		if r, err := s.Put(t.Context(), "k", []byte(v), store.Condition{}); err == nil || r.Version != "" {
			t.Errorf("%q: %+v, %v", v, r, err)
		}
	}
}
