// Package mysql keeps records in a table of a MySQL (8.0.22 or later) or MariaDB
// (10.5 or later) database. Start with [New], which is given the *sql.DB that the
// program has.
//
//	db, err := sql.Open("mysql", "app:secret@tcp(db:3306)/app")
//	s := mysql.New(db)
//
// # Table
//
// The InnoDB table firn_records is made in the connection's database by the first
// Put, or beforehand by [Store.Init], which also makes views for people; [SQL] is
// the text of both. A user of a table that somebody else made needs SELECT, INSERT
// and UPDATE on it.
//
// # Connections
//
// A Put is one statement, outside of any transaction and without prepared statements.
// A Get or List that finds something is two, the second of which writes: InnoDB shows
// a commit to others before it is on the disk, and a crash would lose what was read.
// Where the server refuses to write because the row changed meanwhile, that is
// followed by a transaction at READ COMMITTED. Whatever the driver does, a Put is sent
// once. Nothing depends on the connection's time
// zone, character set, isolation level (but READ UNCOMMITTED, which [Store.Durability]
// reports), parseTime, interpolateParams or clientFoundRows. With autocommit off
// nothing is written, and reads say so. The same goes for a connection that came back
// to the pool with a transaction open that somebody began by hand, but MySQL, unlike
// MariaDB, cannot tell: there a Put would be taken for committed.
//
// What a read finds on a replica may be old: each asks whether the server is
// read_only, as a replica should be, and fails. Use no proxy that divides reads
// from writes.
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table"
)

// A Store is a [store.Store] in one table. The *sql.DB belongs to the caller.
//
// When the cause of an error goes away, so does the error: there is nothing to
// reopen. An error with the zero Version means that nothing was written.
type Store struct {
	db   *sql.DB
	seen atomic.Bool // the table was there: it is never made again
}

var _ store.Store = (*Store)(nil)

// New returns a Store in the database that db leads to. It sends nothing.
func New(db *sql.DB) *Store { return &Store{db: db} }

// A querier runs one statement that reads: a *sql.DB, a *sql.Conn or a tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

const (
	// sqlBegan is the time at which the statement began, in microseconds.
	sqlBegan = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`

	// sqlNow is the time at which it is evaluated, which for a row that is locked is
	// after the wait: SYSDATE is the only clock that goes on during a statement.
	// It is local, so it is compared with NOW, which is local too and stands still.
	// Between the two the local time may have been put forward or back: that is by
	// half an hour or a multiple, which is taken out: what is left is taken for -1 to 29
	// minutes, as no statement lasts longer.
	sqlNow = `(` + sqlBegan + ` + MOD(TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) + 86460000000, 1800000000) - 60000000)`

	// sqlRead is completed by a source of rows. Columns are read as bytes: the
	// connection's character set may be unable to hold them.
	sqlRead = `SELECT @@global.read_only, @@autocommit, /*M! @@in_transaction OR */ FALSE, ` + sqlBegan + `, ` + sqlNow + `,
	CAST(r.` + "`key`" + ` AS BINARY), CAST(r.value AS BINARY), CAST(r.version AS BINARY), r.written
FROM (SELECT 1) AS one LEFT JOIN `

	// sqlOn finds the record that a condition on r.key names, or a row without one,
	// which still says what the clock is and who answers; sqlNone only that.
	sqlOn   = sqlRead + `firn_records AS r ON r.` + "`key`"
	sqlNone = sqlRead + "(SELECT NULL AS `key`, NULL AS value, NULL AS version, NULL AS written) AS r ON FALSE"
)

// Texts are sent in hexadecimal, which needs no quoting, whatever the SQL mode and
// the character set are, and no prepared statement.

func ascii[T ~string](s T) string { return fmt.Sprintf("_ascii X'%x'", string(s)) }

func sqlGet(key string) string { return sqlOn + " = " + ascii(key) }

// sqlList has every key with a prefix: each byte of one is below 0x7f.
func sqlList(prefix string) string {
	return sqlOn + " >= " + ascii(prefix) + " AND r.`key` < " + ascii(prefix+"\x7f") + " ORDER BY r.`key`"
}

// LAST_INSERT_ID is how a statement that writes can return a number: the time.

// An acknowledgement counts only if the statement was committed, so one that would
// not be writes nothing. Only MariaDB can say whether a transaction is open.
const (
	sqlCommits = " @@autocommit /*M! AND NOT @@in_transaction */"
	sqlInTx    = " @@autocommit"
)

func sqlCreate(next store.Record) string {
	return fmt.Sprintf("INSERT INTO firn_records (`key`, value, version, written) SELECT %s, _utf8mb4 X'%x', %s, LAST_INSERT_ID(%s) FROM DUAL WHERE",
		ascii(next.Key), next.Value, ascii(next.Version), sqlNow)
}

func sqlReplace(next store.Record, cond store.Condition) string {
	q := fmt.Sprintf("UPDATE firn_records SET value = _utf8mb4 X'%x', version = %s, written = LAST_INSERT_ID(%s) WHERE `key` = %s AND version = %s",
		next.Value, ascii(next.Version), sqlNow, ascii(next.Key), ascii(cond.Version))
	if cond.Within != 0 {
		q += fmt.Sprintf(" AND written >= %s - %d", sqlNow, cond.Within.Microseconds())
	}
	return q + " AND"
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	a, err := s.read(ctx, sqlGet(key))
	if err != nil {
		return store.Record{}, err
	}
	return a.record(key), nil
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Record, error) {
	if len(prefix) > store.MaxKey {
		return nil, ctx.Err()
	}
	if prefix != "" {
		if err := store.CheckKey(prefix); err != nil {
			return nil, err
		}
	}
	a, err := s.read(ctx, sqlList(prefix))
	return a.list, err
}

// read runs one of the statements that begin with sqlOn. What it returns is on the
// server's disk.
func (s *Store) read(ctx context.Context, query string) (a answer, err error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	err = table.Alive(ctx, func() error {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		a, err = s.durable(ctx, conn, query)
		return err
	})
	if err != nil {
		return answer{}, explainTo(ctx, s.db, err)
	}
	return a, nil
}

// find runs one of the statements that begin with sqlOn. What it returns may not be
// on the server's disk yet.
func (s *Store) find(ctx context.Context, q querier, query string) (answer, error) {
	seen := s.seen.Load() // before the server looks: others may make the table after that
	a, err := records(ctx, q, query)
	switch {
	case err == nil:
		s.seen.Store(true)
	case missing(err) && seen:
		err = forgotten()
	case missing(err): // nobody has made the table yet: nothing was ever written
		a, err = records(ctx, q, sqlNone)
	}
	return a, err
}

// An answer is what a statement that begins with sqlRead found, and when by the
// server's clock.
type answer struct {
	list []store.Record
	read time.Time
}

// record is the only one, or that of a key that was never written.
func (a answer) record(key string) store.Record {
	if len(a.list) == 0 {
		return store.Record{Key: key, Read: a.read}
	}
	return a.list[0]
}

// records runs a statement that begins with sqlRead.
//
// Read is the time before the query: one after it would make records look older
// than they are if the server paused in between. Only where a record was written
// in that moment it is as late as that.
func records(ctx context.Context, q querier, query string) (a answer, err error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return a, err
	}
	defer rows.Close()
	_, ours := q.(tx)
	var before, after, latest int64
	for rows.Next() {
		var readOnly string
		var autocommit, inTx bool
		var key, value, version sql.Null[string]
		var written sql.Null[int64]
		if err := rows.Scan(&readOnly, &autocommit, &inTx, &before, &after, &key, &value, &version, &written); err != nil {
			return a, err
		}
		if readOnly != "0" && readOnly != "OFF" {
			return a, errReadOnly
		}
		if !autocommit {
			return a, errAutocommit
		}
		if inTx && !ours {
			return a, errInTx
		}
		if !key.Valid {
			continue
		}
		a.list = append(a.list, store.Record{
			Key: key.V, Value: []byte(value.V), Version: store.Version(version.V), Written: table.Instant(written.V),
		})
		if written.V <= after {
			latest = max(latest, written.V)
		}
	}
	if err := rows.Err(); err != nil {
		return a, err
	}
	a.read = table.Instant(max(before, latest))
	for i := range a.list {
		a.list[i].Read = a.read
	}
	return a, rows.Close()
}

// Put implements [store.Store]. Its clock is the server's.
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if err := table.Check(key, value); err != nil {
		return store.Record{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Record{}, err
	}
	if !table.Possible(cond) {
		return store.Record{}, store.ErrConflict
	}
	// A *sql.DB sends a statement again if the driver says that the connection was
	// bad. A connection of one's own does not.
	conn, err := table.Conn(ctx, s.db)
	if err != nil {
		return store.Record{}, explain(err)
	}
	defer conn.Close()
	next := store.Record{Key: key, Value: slices.Clone(value), Version: store.NewVersion()}
	err = s.put(ctx, conn, &next, cond)
	switch {
	case err == nil:
		return next, nil
	case certain(err):
		return store.Record{}, explainTo(ctx, conn, err)
	}
	return store.Record{Key: key, Version: next.Version}, explain(err)
}

// put sends one Put. If there is no table yet it makes that, and sends the Put again.
func (s *Store) put(ctx context.Context, conn *sql.Conn, next *store.Record, cond store.Condition) error {
	seen := s.seen.Load() // before the server looks: others may make the table after that
	send := func(e execer) error { return write(ctx, e, next, cond) }
	err := attempt(ctx, conn, send)
	if missing(err) && !seen {
		if cond.Version != "" {
			return store.ErrConflict // no table, no record of that Version
		}
		if err := s.makeTable(ctx, conn); err != nil {
			return &table.UnsentError{Err: err}
		}
		err = attempt(ctx, conn, send)
	}
	if missing(err) {
		return &table.UnsentError{Err: forgotten()}
	}
	if err == nil || errors.Is(err, store.ErrConflict) {
		s.seen.Store(true)
	}
	return err
}

// attempt sends a statement that writes, and once more at READ COMMITTED after the
// server refused it, for certain, because the row changed while it waited: MariaDB
// does so with innodb_snapshot_isolation.
func attempt(ctx context.Context, conn *sql.Conn, send func(execer) error) error {
	err := send(conn)
	if number(err) != changed {
		return err
	}
	t, err := begin(ctx, conn)
	if err != nil {
		return &table.UnsentError{Err: err}
	}
	if err := send(t); err != nil {
		t.rollback(ctx)
		return err
	}
	return t.commit(ctx)
}

// A tx is a transaction at READ COMMITTED. It is ended by statements like any other: for
// the answer to those of a *sql.Tx the driver waits whatever ctx says, and a COMMIT hangs
// as long as the server's disk does.
type tx struct{ *sql.Conn }

func begin(ctx context.Context, conn *sql.Conn) (tx, error) {
	t := tx{conn}
	err := t.exec(ctx, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
	if err == nil {
		err = t.exec(ctx, "START TRANSACTION")
	}
	return t, err
}

func (t tx) commit(ctx context.Context) error   { return t.exec(ctx, "COMMIT") }
func (t tx) rollback(ctx context.Context) error { return t.exec(ctx, "ROLLBACK") }

// exec closes a connection of which it is not known any more whether a transaction is
// open on it.
func (t tx) exec(ctx context.Context, query string) error {
	_, err := t.ExecContext(ctx, query)
	if err != nil {
		discard(t.Conn)
	}
	return err
}

// An execer runs one statement: a *sql.Conn or a tx.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// write carries out one Put, and completes next with the time.
func write(ctx context.Context, conn execer, next *store.Record, cond store.Condition) error {
	query := sqlCreate(*next)
	if cond.Version != "" {
		query = sqlReplace(*next, cond)
	}
	if _, ours := conn.(tx); ours {
		query += sqlInTx
	} else {
		query += sqlCommits
	}
	result, err := conn.ExecContext(ctx, query)
	if number(err) == duplicate {
		return store.ErrConflict
	}
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if n == 0 {
		return store.ErrConflict
	}
	written, err := result.LastInsertId()
	if err != nil {
		return err
	}
	next.Written, next.Read = table.Instant(written), table.Instant(written)
	return nil
}
