package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	modernc "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/firn-id/firn/store"
)

const (
	// patience bounds the wait for a file that another process has locked,
	// counted from the beginning of a call, which may first wait for others.
	patience = 5 * time.Second

	// The wait between two tries doubles from the first to the last of these,
	// each half left to chance, so that many processes do not march in step.
	busyFirst = 250 * time.Microsecond
	busyLast  = 16 * time.Millisecond
)

// The id comes with every answer: a file that was overwritten in place with
// another store's is told from this one by nothing else. So do the number of writes and the
// sums: by these a file is known that was overwritten with an older state of this store, in
// whole or in part. All records of the key's bucket come with it, to be summed.
const (
	sqlGet = `SELECT s.id, s.writes, s.sums, r.key, CASE WHEN r.key = ?2 THEN r.value END, r.version, r.written
		FROM store s LEFT JOIN record r ON r.bucket = ?1`
	sqlList = `SELECT s.id, s.writes, CASE WHEN r.key IS NULL OR r.key = (SELECT min(key) FROM record) THEN s.sums END,
		r.key, CASE WHEN r.key >= ?1 AND r.key < ?2 THEN r.value END, r.version, r.written
		FROM store s LEFT JOIN record r ON true ORDER BY r.key`
	sqlWrite = `INSERT INTO record (key, value, version, written, bucket) VALUES (?1, ?2, ?3, ?4, ?5)
		ON CONFLICT (key) DO UPDATE SET value = ?2, version = ?3, written = ?4`
	sqlCount    = `UPDATE store SET writes = writes + 1, sums = ?1 RETURNING writes`
	sqlWrites   = `SELECT writes FROM store`
	sqlUsed     = `SELECT EXISTS (SELECT 1 FROM record)`
	sqlBegin    = `BEGIN IMMEDIATE`
	sqlCommit   = `COMMIT`
	sqlRollback = `ROLLBACK`
)

// A session is one connection with its prepared statements, used by one
// goroutine at a time. Statements run to their end: the driver would answer an
// interrupted COMMIT with the ctx's error whether or not it was carried out,
// and nothing in SQLite interrupts the disk anyway.
type session struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// source opens connections to file. SQLite is told never to create it.
func source(file string, params ...string) string {
	p := filepath.ToSlash(file)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // C:/ids.db
	}
	u := url.URL{Scheme: "file", Path: p, RawQuery: strings.Join(params, "&")}
	return u.String()
}

// openDB returns a DB of which every connection lives exactly as long as its
// sql.Conn: a pool would bring back one that was given up.
func openDB(dsn string) (*sql.DB, error) {
	c, err := modernc.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxIdleConns(-1)
	return db, nil
}

// readWrite is how a store's own connections are opened. SQLite's own busy
// timeout is off because it cannot be cut short; patiently waits instead. The
// fullfsync pragmas matter on macOS only, where fsync alone does not reach the disk.
func readWrite(file string) string {
	return source(file, "mode=rw", "_dqs=0", "_error_rc=1",
		"_pragma=busy_timeout(0)", "_pragma=synchronous(FULL)", "_pragma=wal_autocheckpoint(1)",
		"_pragma=fullfsync(1)", "_pragma=checkpoint_fullfsync(1)", "_pragma=trusted_schema(0)")
}

func newSession(db *sql.DB) (*session, error) {
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	return &session{conn: conn, stmts: make(map[string]*sql.Stmt)}, nil
}

func (c *session) stmt(query string) (*sql.Stmt, error) {
	if st, ok := c.stmts[query]; ok {
		return st, nil
	}
	st, err := c.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = st
	return st, nil
}

func (c *session) exec(query string, args ...any) error {
	st, err := c.stmt(query)
	if err != nil {
		return err
	}
	_, err = st.Exec(args...)
	return err
}

func (c *session) query(query string, args ...any) (*sql.Rows, error) {
	st, err := c.stmt(query)
	if err != nil {
		return nil, err
	}
	return st.Query(args...)
}

func (c *session) row(query string, dest ...any) error {
	return c.conn.QueryRowContext(context.Background(), query).Scan(dest...)
}

// count counts one more write of the transaction that is open, after which the sums are these.
func (c *session) count(now *sums) (writes int64, err error) {
	st, err := c.stmt(sqlCount)
	if err != nil {
		return 0, err
	}
	err = st.QueryRow(now.bytes()).Scan(&writes)
	return writes, err
}

// sums returns what the database says of its records, and what they are.
func (c *session) sums() (said, is sums, err error) {
	var b []byte
	if err := c.row(`SELECT sums FROM store`, &b); err != nil {
		return said, is, err
	}
	if err := said.set(b); err != nil {
		return said, is, err
	}
	rows, err := c.conn.QueryContext(context.Background(), `SELECT key, version FROM record`)
	if err != nil {
		return said, is, err
	}
	defer rows.Close()
	for rows.Next() {
		var key, version string
		if err := rows.Scan(&key, &version); err != nil {
			return said, is, err
		}
		is.add(key, store.Version(version))
	}
	return said, is, rows.Err()
}

func (c *session) close() error {
	var errs []error
	for _, st := range c.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

// abandon ends the transaction c is in without a commit. It returns nil, having
// closed the connection, unless c is certainly as good as before: what is wrong
// with a connection (opened while the file was read-only, a failed commit) must
// not outlive its cause.
func (c *session) abandon(broken bool) *session {
	if !broken && c.exec(sqlRollback) == nil {
		return c
	}
	c.close() // rolls back, if nothing else did
	return nil
}

// acquire takes a slot, which may be nil. The caller must put it back.
func (s *Store) acquire(ctx context.Context, slots chan *session) (*session, error) {
	select {
	case c := <-slots:
		return c, nil
	case <-ctx.Done():
		return nil, s.at.explain(fmt.Errorf("waiting for other calls: %w", ctx.Err()))
	case <-s.closing:
		return nil, s.at.explain(errClosed)
	}
}

// connect opens a session and makes sure that it is to the file of this Store.
func (s *Store) connect() (*session, error) {
	// SQLite would open the file for reading then, and leave journals beside it
	// that nobody can write either when the cause is gone.
	if err := writable(s.at.file); err != nil && !missing(err) {
		return nil, err
	}
	// Nobody would notice that the file was put back to what it was before our writes.
	if err := writable(s.at.sidecar()); err != nil && !missing(err) {
		return nil, err
	}
	c, err := newSession(s.db)
	if err != nil {
		return nil, err
	}
	// The path was checked before. If it leads to the same file now, that is
	// the one SQLite found in between; the id that comes with every answer
	// speaks for the rest.
	if err := s.check(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// begin opens *c if need be, and a transaction on it that holds the write lock.
func (s *Store) begin(c **session) error {
	if *c == nil {
		fresh, err := s.connect()
		if err != nil {
			return err
		}
		*c = fresh
	}
	if err := s.noteAgain(); err != nil {
		return err
	}
	err := (*c).exec(sqlBegin)
	if err != nil && !busy(err) {
		*c = (*c).abandon(true)
	}
	return err
}

// reading calls f with a session to read from, again if the file was locked.
func (s *Store) reading(ctx context.Context, f func(*session) error) error {
	deadline := time.Now().Add(s.patience)
	c, err := s.acquire(ctx, s.read)
	if err != nil {
		return err
	}
	defer func() { s.read <- c }()
	return s.patiently(ctx, deadline, func() error {
		err := s.check()
		if err == nil && c == nil {
			c, err = s.connect()
		}
		if err == nil {
			if err = f(c); err != nil && !busy(err) {
				c.close()
				c = nil
			}
		}
		return err
	})
}

// patiently calls f, which must not have written anything, until it finds the
// file unlocked, ctx ends, the Store is closed or the deadline has passed.
func (s *Store) patiently(ctx context.Context, deadline time.Time, f func() error) error {
	for wait := busyFirst; ; wait = min(2*wait, busyLast) {
		err := f()
		if err == nil {
			return nil
		}
		if !busy(err) {
			// A file that has just gone has many ways to fail.
			if gone := s.check(); gone != nil {
				return gone
			}
			return s.at.explain(err)
		}
		if time.Now().After(deadline) {
			return s.at.explain(err)
		}
		t := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return s.at.explain(fmt.Errorf("%w; %w", err, ctx.Err()))
		case <-s.closing:
			t.Stop()
			return s.at.explain(errClosed)
		}
	}
}

// busy says whether err is about a lock that somebody else holds.
func busy(err error) bool {
	switch code(err) {
	case codes.SQLITE_BUSY, codes.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// code returns SQLite's primary result code, or 0.
func code(err error) int {
	var e *modernc.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}
