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
	"fmt"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/table"
)

// A Store is a [store.Store] in one table. The *sql.DB belongs to the caller.
//
// When the cause of an error goes away, so does the error: there is nothing to
// reopen. An error with the zero Version means that nothing was written.
type Store struct {
	db    *sql.DB
	table table.Table
}

var _ store.Store = (*Store)(nil)

// New returns a Store in the database that db leads to. It sends nothing.
func New(db *sql.DB) *Store { return &Store{db, table.Table{DB: db, Server: server}} }

var server = table.Server{
	Name: "mysql", Write: write, Create: create, Begin: begin,
	Missing: missing, Repeat: repeat, Refused: refused,
	Advice: advise, Denied: lacksRight,
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
	return a.Record(key), nil
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
	return a.List, err
}

// read runs one of the statements that begin with sqlOn. What it returns is on the
// server's disk.
func (s *Store) read(ctx context.Context, query string) (a table.Answer, err error) {
	if err := ctx.Err(); err != nil {
		return table.Answer{}, err
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
		return table.Answer{}, s.table.Explain(ctx, s.db, err)
	}
	return a, nil
}

// find runs one of the statements that begin with sqlOn. What it returns may not be
// on the server's disk yet.
func (s *Store) find(ctx context.Context, q table.Querier, query string) (table.Answer, error) {
	return s.table.Find(ctx, q,
		func() (table.Answer, error) { return records(ctx, q, query) },
		func() (table.Answer, error) { return records(ctx, q, sqlNone) })
}

// records runs a statement that begins with sqlRead.
func records(ctx context.Context, q table.Querier, query string) (table.Answer, error) {
	_, ours := q.(tx)
	var all table.Reading
	err := table.Rows(ctx, q, query, nil, func(r *sql.Rows) error {
		var readOnly string
		var autocommit, inTx bool
		var row table.Row
		if err := r.Scan(&readOnly, &autocommit, &inTx, &row.Before, &row.After, &row.Key, &row.Value, &row.Version, &row.Written); err != nil {
			return err
		}
		switch {
		case readOnly != "0" && readOnly != "OFF":
			return errReadOnly
		case !autocommit:
			return errAutocommit
		case inTx && !ours:
			return errInTx
		}
		all.Add(row)
		return nil
	})
	return all.Answer(), err
}

// Put implements [store.Store]. Its clock is the server's.
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	return s.table.Put(ctx, key, value, cond)
}

// A tx is a transaction at READ COMMITTED. It is ended by statements like any other: for
// the answer to those of a *sql.Tx the driver waits whatever ctx says, and a COMMIT hangs
// as long as the server's disk does.
type tx struct{ *sql.Conn }

func begin(ctx context.Context, conn *sql.Conn) (table.Tx, error) {
	t := tx{conn}
	err := t.exec(ctx, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
	if err == nil {
		err = t.exec(ctx, "START TRANSACTION")
	}
	return t, err
}

func (t tx) End(ctx context.Context) error  { return t.exec(ctx, "COMMIT") }
func (t tx) Undo(ctx context.Context) error { return t.exec(ctx, "ROLLBACK") }

// exec closes a connection of which it is not known any more whether a transaction is
// open on it.
func (t tx) exec(ctx context.Context, query string) error {
	_, err := t.ExecContext(ctx, query)
	if err != nil {
		discard(t.Conn)
	}
	return err
}

// write carries out one Put, and completes next with the time.
func write(ctx context.Context, q table.Querier, next *store.Record, cond store.Condition) error {
	query := sqlCreate(*next)
	if cond.Version != "" {
		query = sqlReplace(*next, cond)
	}
	if _, ours := q.(tx); ours {
		query += sqlInTx
	} else {
		query += sqlCommits
	}
	result, err := q.ExecContext(ctx, query)
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
