//go:build !windows

package main

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A session is one in which a test looks at a database, again and again: to begin one costs
// PostgreSQL more than most statements do.
type session struct {
	sync.Mutex
	conn *pgx.Conn
}

// sessions are those of all tests, by the test's name and the address.
var sessions sync.Map

// inSession calls f with a session of the test's on the database, as fresh as a new one.
func inSession(t *testing.T, address string, f func(*pgx.Conn)) {
	t.Helper()
	kept, _ := sessions.LoadOrStore(t.Name()+" "+address, &session{})
	s := kept.(*session)
	s.Lock()
	defer s.Unlock()
	if s.conn == nil || s.conn.Ping(t.Context()) != nil {
		s.connect(t, address)
	}
	defer s.reset()
	f(s.conn)
}

// connect begins a session, which ends with the test, in the place of one that was ended.
func (s *session) connect(t *testing.T, address string) {
	t.Helper()
	s.close()
	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // a table may be another one the next time
	if s.conn, err = pgx.ConnectConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Lock()
		defer s.Unlock()
		s.close()
	})
}

// reset makes the session as a new one is, or ends it.
func (s *session) reset() {
	if s.conn.PgConn().TxStatus() != 'I' {
		s.conn.Exec(context.Background(), "ROLLBACK")
	}
	if _, err := s.conn.Exec(context.Background(), "DISCARD ALL"); err != nil {
		s.close()
	}
}

func (s *session) close() {
	if s.conn != nil {
		s.conn.Close(context.Background())
		s.conn = nil
	}
}

// onDatabase runs statements.
func onDatabase(t *testing.T, address, sql string) {
	t.Helper()
	inSession(t, address, func(c *pgx.Conn) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
	})
}

// one is the value that a statement gives.
func one[T any](t *testing.T, address, sql string) (v T) {
	t.Helper()
	inSession(t, address, func(c *pgx.Conn) {
		t.Helper()
		if err := c.QueryRow(t.Context(), sql).Scan(&v); err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
	})
	return v
}

// sqlCode is the SQLSTATE with which a statement fails, or nothing.
func sqlCode(t *testing.T, address, sql string) (code string) {
	t.Helper()
	inSession(t, address, func(c *pgx.Conn) {
		_, err := c.Exec(t.Context(), sql)
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			code = pg.Code
		}
	})
	return code
}
