package lease

import (
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
	storeopen "github.com/firn-id/firn/store/open"
)

// A shop has leases of one pool on one PostgreSQL server, each with a connection
// of its own, and issues with all of them until it is closed.
type shop struct {
	*testing.T
	mu     sync.Mutex
	seen   map[firn.ID]string
	log    safeBuffer
	stop   chan struct{}
	issues sync.WaitGroup
}

func newShop(t *testing.T, url string) *shop {
	if testing.Short() {
		t.Skip("servers are not started with -short")
	}
	s := &shop{T: t, seen: map[firn.ID]string{}, stop: make(chan struct{})}
	st := s.connect(url)
	p := term.Pool{V: 1, ID: "founded", Layout: firn.Default().String(), Workers: "0-15", Outage: 2000, Limit: 2000}
	if _, err := st.Put(t.Context(), term.KeyPool(pool.Default), p.Encode(), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shop) connect(url string) store.Store {
	s.Helper()
	st, err := storeopen.URL(s.Context(), url)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { st.Close() })
	return st
}

// lease opens a lease and issues with it. Calls that fail do no harm.
func (s *shop) lease(name, url string) *Lease {
	s.Helper()
	l, err := Open(s.Context(), s.connect(url), &Options{
		Name: name, Outage: 2 * time.Second, Renew: 500 * time.Millisecond, TTL: 2 * time.Second, Wait: 10 * time.Second,
		Logger: slog.New(slog.NewTextHandler(&s.log, nil)).With("by", name), look: time.Second,
	})
	if err != nil {
		s.Error(err)
		return nil
	}
	s.Cleanup(func() { l.Close() })
	s.issues.Go(func() {
		for {
			select {
			case <-s.stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			ids := make([]firn.ID, 0, 20)
			for range cap(ids) {
				if id, err := l.try(); err == nil {
					ids = append(ids, id)
				}
			}
			s.mu.Lock()
			for _, id := range ids {
				if other, twice := s.seen[id]; twice {
					s.Errorf("%d was issued by %s and by %s", id, other, name)
				}
				s.seen[id] = name
			}
			s.mu.Unlock()
		}
	})
	return l
}

// close ends issuing and returns how many ids there are.
func (s *shop) close() int {
	close(s.stop)
	s.issues.Wait()
	return len(s.seen)
}

// becomes waits until a lease goes by the rules for such a store, and issues.
func (s *shop) becomes(l *Lease, durable bool, within time.Duration) {
	s.Helper()
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		st := l.State()
		_, err := l.try()
		if st.Durable == durable && err == nil {
			return
		}
		if time.Now().After(end) {
			s.Errorf("not durable=%t and issuing within %s: %+v, %v", durable, within, st, err)
			return
		}
	}
}

// goesOn waits until a lease issues, by whatever rules.
func (s *shop) goesOn(l *Lease, within time.Duration) {
	s.Helper()
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		if _, err := l.try(); err == nil {
			return
		} else if time.Now().After(end) {
			s.Errorf("not issuing within %s: %+v, %v", within, l.State(), err)
			return
		}
	}
}

// A standby that lags is connected while leases are held: within a look they go by
// the lossy rules. It is promoted without the last extensions, and stands alone:
// who comes then, and sees a durable store, repeats nothing. TestStoreBecomesLossy has the same
// in one process, and the tests of store/postgres see what standbys there are.
func TestPostgresGetsAStandby(t *testing.T) {
	testserver.OnlyLong(t)
	t.Parallel()
	primary := testserver.Postgres(t)
	front := testserver.NewProxy(t, primary.Addr())
	url := strings.Replace(primary.URL(), primary.Addr(), front.Addr(), 1)
	s := newShop(t, url)
	var leases []*Lease
	for _, name := range []string{"a", "b", "c", "d"} {
		l := s.lease(name, url)
		s.becomes(l, true, 20*time.Second)
		leases = append(leases, l)
	}
	began := time.Now()
	standby := testserver.PostgresStandby(t, primary)
	for _, l := range leases {
		s.becomes(l, false, time.Minute)
	}
	t.Logf("the standby is there and all go by the lossy rules after %s", time.Since(began).Round(10*time.Millisecond))
	if n := strings.Count(s.log.String(), "the store can lose writes that it acknowledged"); n != 4 {
		t.Errorf("said %d times, not 4:\n%s", n, s.log.String())
	}
	time.Sleep(time.Second) // the mark is there, too
	standby.Link.Hang(true)
	time.Sleep(3 * time.Second)
	primary.Kill(t)
	front.Refuse(true)
	front.Cut()
	standby.Promote(t)
	front.Target(standby.Addr())
	front.Refuse(false)
	promoted := time.Now()
	next := s.lease("e", url) // when it has waited
	if d := time.Since(promoted); d < 11*time.Second {
		t.Errorf("a process that came after the failover waited for %s", d)
	}
	for _, l := range append(leases, next) {
		s.becomes(l, false, time.Minute)
	}
	if st := next.State(); !strings.HasPrefix(st.Why, "seen by another process: ") {
		t.Errorf("what was promoted stands alone, and is seen as %+v", st)
	}
	t.Logf("%d ids", s.close())
}

// Two roles see two promises at one time: who comes after one has seen a lossy one
// goes by that, and a crash that forgets its last writes repeats nothing. make full has three
// crashes.
func TestPostgresRoles(t *testing.T) {
	t.Parallel()
	primary := testserver.Postgres(t)
	db, err := sql.Open("pgx", primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, do := range []string{`CREATE ROLE hasty LOGIN SUPERUSER`, `ALTER ROLE hasty SET synchronous_commit = off`} {
		if _, err := db.ExecContext(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	hasty := strings.Replace(primary.URL(), "//t@", "//hasty@", 1)
	s := newShop(t, primary.URL())
	early := s.lease("early", primary.URL())
	s.becomes(early, true, 20*time.Second)
	quick := s.lease("hasty", hasty)
	s.becomes(quick, false, time.Minute)
	late := s.lease("late", primary.URL())
	s.becomes(late, false, time.Minute)
	if st := late.State(); !strings.HasPrefix(st.Why, "seen by another process: ") {
		t.Errorf("%+v", st)
	}
	crashes := 1
	if testserver.Long() {
		crashes = 3
	}
	for range crashes {
		primary.Kill(t)
		primary.Start(t)
		for _, l := range []*Lease{early, quick, late} {
			s.goesOn(l, time.Minute)
		}
	}
	// Until it sees the mark it is on a durable store, where nobody is refused an extension.
	if st := early.State(); st.Durable && st.Term != 1 {
		t.Errorf("%+v", st)
	}
	t.Logf("%d ids", s.close())
}

// A right is taken from the role of a program and given back. A program that runs goes on by
// itself when the right is back; one that starts meanwhile is told at once.
func TestPostgresRightsRevoked(t *testing.T) {
	t.Parallel()
	primary := testserver.Postgres(t)
	s := newShop(t, primary.URL())
	db, err := sql.Open("pgx", primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	do := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	do(`CREATE ROLE app LOGIN`)
	do(`GRANT SELECT, INSERT, UPDATE ON firn_records TO app`)
	app := strings.Replace(primary.URL(), "//t@", "//app@", 1)
	first, second := s.lease("first", app), s.lease("second", app)
	for round, right := range []string{"SELECT", "SELECT, INSERT, UPDATE"} {
		s.goesOn(first, time.Minute)
		s.goesOn(second, time.Minute)
		do(`REVOKE ` + right + ` ON firn_records FROM app`)
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if _, err := first.Next(t.Context()); errors.Is(err, store.ErrDenied) {
				break
			} else if time.Now().After(end) {
				t.Fatalf("round %d: it does not end, or for another reason: %v", round, err)
			}
		}
		began := time.Now()
		l, err := Open(t.Context(), s.connect(app), &Options{Wait: time.Minute})
		if !errors.Is(err, store.ErrDenied) || time.Since(began) > 20*time.Second {
			t.Errorf("round %d: a program that starts gets %v, %v after %s", round, l, err, time.Since(began))
		}
		do(`GRANT ` + right + ` ON firn_records TO app`)
	}
	s.goesOn(first, time.Minute)
	s.goesOn(second, time.Minute)
	t.Logf("%d ids", s.close())
}
