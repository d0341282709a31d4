// Package postgres keeps records in a table of a PostgreSQL database, 13 or later.
// Start with [New], which is given the *sql.DB that the program has; the package
// compiles no driver.
//
//	db, err := sql.Open("pgx", "postgres://app@db/app") // import _ "github.com/jackc/pgx/v5/stdlib"
//	s := postgres.New(db)
//
// # Table
//
// The table firn_records is made by the first Put, or beforehand by [Store.Init],
// which also makes views for people; [SQL] is the text of both. All are found by
// the search_path of the connection. Where it finds no table, and another schema of the
// database has one, every call fails, and names that schema: a table that was made here would
// be a second store, which repeats the ids of the first. [Store.InitSecond] makes one on
// purpose. A search_path that finds two tables is refused by the first Durability. A
// role that uses a table somebody else made needs USAGE on its schema, and SELECT, INSERT and
// UPDATE on it. A schema of the search_path that has such a table and that the role may not
// use is an error, because the server would pass over it to another store.
//
// # Connections
//
// Get, Put and List are one statement each, outside of any transaction; where the
// connection's isolation level is above READ COMMITTED and the server refuses one
// for that, it is followed by a transaction at READ COMMITTED. Whatever the driver
// does, a Put is sent once. It is not used on a standby: what a read there finds
// may be old, so each asks, and fails. Use target_session_attrs=read-write where
// the address has more than one host, and nothing that divides reads from writes.
//
// Through PgBouncer in transaction mode the driver must not prepare statements:
// with pgx that is default_query_exec_mode=exec in the URL, with lib/pq
// binary_parameters=yes.
package postgres

import (
	"context"
	"database/sql"
	"sync/atomic"

	"github.com/firn-id/firn/internal/trouble"
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

	chosen   atomic.Bool             // the search_path found one table, and no other
	standbys atomic.Pointer[[]other] // those of the last look that were no passing backup
}

var _ store.Store = (*Store)(nil)

// New returns a Store in the database that db leads to. It sends nothing.
func New(db *sql.DB) *Store { return &Store{db: db, table: table.Table{DB: db, Server: server}} }

var server = table.Server{
	Name: "postgres", Write: write, Create: create, Begin: func(ctx context.Context, conn *sql.Conn) (table.Tx, error) { return begin(ctx, conn) },
	Missing: missing, Hidden: hidden, Repeat: isolated, Refused: refused,
	Advice: advise, Denied: denied, Cause: trouble.Cause,
}

const (
	// sqlRead finds the record that a condition on r.key names, or a row without
	// one, which still says what the clock is and who answers. The statement's time
	// is before its snapshot, clock_timestamp() is after it.
	//
	// Where commits wait for standbys, one whose wait was given up, or was cut short by
	// a crash, can be seen on this server alone: a failover would lose what was read. So
	// the read writes a message to the log, after its snapshot, and thereby waits as well.
	sqlRead = `
SELECT pg_is_in_recovery(),
	(extract(epoch FROM statement_timestamp()) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
	one.message IS NOT NULL,
	r.key, r.value, r.version, (extract(epoch FROM r.written) * 1000000)::bigint
FROM (
	SELECT CASE WHEN current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
		THEN pg_logical_emit_message(true, 'firn', '') END AS message
) AS one LEFT JOIN firn_records AS r ON `
	sqlGet  = sqlRead + `r.key = $1`
	sqlList = sqlRead + `r.key >= $1 AND r.key < $2 ORDER BY r.key`

	// sqlNone is what sqlRead returns of an empty table, where there is none.
	sqlNone = `
SELECT pg_is_in_recovery(),
	(extract(epoch FROM statement_timestamp()) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
	false, NULL::text, NULL::text, NULL::text, NULL::bigint`

	sqlCreate = `
INSERT INTO firn_records AS r (key, value, version, written)
VALUES ($1, $2, $3, clock_timestamp())
ON CONFLICT (key) DO NOTHING
RETURNING (extract(epoch FROM r.written) * 1000000)::bigint`

	// sqlReplace takes the row's lock first and looks at the clock after, so that
	// Within is judged, and the time written, when the wait is over. A plain UPDATE
	// does both before it waits, and again only if the row was changed meanwhile.
	// The fifth argument is Within in microseconds, -1 for none.
	sqlReplace = `
WITH locked AS MATERIALIZED (
	SELECT version, written FROM firn_records WHERE key = $1 FOR NO KEY UPDATE
)
UPDATE firn_records AS r SET value = $2, version = $3, written = clock_timestamp()
FROM locked
WHERE r.key = $1 AND locked.version = $4
	AND ($5::bigint < 0 OR locked.written >= clock_timestamp() - $5::bigint * interval '1 microsecond')
RETURNING (extract(epoch FROM r.written) * 1000000)::bigint`
)

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	a, err := s.read(ctx, sqlGet, key)
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
	// Every byte of a key is below 0x7f, so this range is exactly the prefix.
	a, err := s.read(ctx, sqlList, prefix, prefix+"\x7f")
	return a.List, err
}

// read runs one of the statements that begin with sqlRead.
func (s *Store) read(ctx context.Context, query string, args ...any) (table.Answer, error) {
	if err := ctx.Err(); err != nil {
		return table.Answer{}, err
	}
	look := func() (a table.Answer, err error) {
		err = table.Alive(ctx, func() error {
			a, err = records(ctx, s.db, query, args...)
			if isolated(err) {
				a, err = s.readCommitted(ctx, query, args...)
			}
			return err
		})
		return a, err
	}
	none := func() (table.Answer, error) { return records(ctx, s.db, sqlNone) }
	a, err := s.table.Find(ctx, s.db, look, none)
	if err != nil {
		return table.Answer{}, s.table.Explain(ctx, s.db, err)
	}
	return a, nil
}

// readCommitted is a read at the isolation level where none fails because of what
// others write.
func (s *Store) readCommitted(ctx context.Context, query string, args ...any) (table.Answer, error) {
	t, err := begin(ctx, s.db)
	if err != nil {
		return table.Answer{}, err
	}
	defer t.Undo(ctx)
	a, err := records(ctx, t, query, args...)
	if err != nil {
		return table.Answer{}, err
	}
	return a, t.End(ctx) // which waits for standbys
}

// records reads the rows of a statement like sqlRead, and the server's clock.
func records(ctx context.Context, q table.Querier, query string, args ...any) (table.Answer, error) {
	var all table.Reading
	err := rows(ctx, q, query, args, func(r *sql.Rows) error {
		var standby, waited bool
		var row table.Row
		if err := r.Scan(&standby, &row.Before, &row.After, &waited, &row.Key, &row.Value, &row.Version, &row.Written); err != nil {
			return err
		}
		if standby {
			return errStandby
		}
		all.Add(row)
		return nil
	})
	return all.Answer(), err
}

// rows calls f for each row.
func rows(ctx context.Context, q table.Querier, query string, args []any, f func(*sql.Rows) error) error {
	return acknowledged(ctx, table.Rows(ctx, q, query, args, f))
}

// acknowledged is what came of a statement or a commit that the server has answered so.
// At the end of ctx a driver may have the server cancel it, as lib/pq does: that ends a
// commit's wait for standbys, and is answered as a success.
func acknowledged(ctx context.Context, err error) error {
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// Put implements [store.Store]. Its clock is the server's.
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	return s.table.Put(ctx, key, value, cond)
}

// A tx is a transaction at READ COMMITTED.
type tx struct{ *sql.Tx }

func begin(ctx context.Context, on beginner) (tx, error) {
	t, err := on.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	return tx{t}, err
}

// A beginner begins transactions: a *sql.DB or a *sql.Conn.
type beginner interface {
	BeginTx(ctx context.Context, options *sql.TxOptions) (*sql.Tx, error)
}

func (t tx) End(ctx context.Context) error { return acknowledged(ctx, t.Commit()) }
func (t tx) Undo(context.Context) error    { return t.Rollback() }

// write carries out one Put, and completes next with the time.
func write(ctx context.Context, q table.Querier, next *store.Record, cond store.Condition) error {
	query, args := sqlCreate, []any{next.Key, string(next.Value), string(next.Version)}
	if cond.Version != "" {
		within := int64(-1)
		if cond.Within != 0 {
			within = cond.Within.Microseconds()
		}
		query, args = sqlReplace, append(args, string(cond.Version), within)
	}
	written := int64(-1)
	err := rows(ctx, q, query, args, func(r *sql.Rows) error { return r.Scan(&written) })
	switch {
	case err != nil:
		return err
	case written < 0:
		return store.ErrConflict
	}
	next.Written, next.Read = table.Instant(written), table.Instant(written)
	return nil
}
