package postgres

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	_ "embed"

	"github.com/firn-id/firn/store/internal/table"
)

// schema is the table, then the views, each ended by a semicolon and a blank line.
//
//go:embed schema.sql
var schema string

// SQL returns the statements with which [Store.Init] makes the table and the views,
// for whoever runs them by hand.
func SQL() string { return schema }

// statements are those of schema.
func statements() []string { return strings.Split(strings.TrimSpace(schema), ";\n\n") }

// Init makes the table and the views if they are not there. It returns whether it
// made the table. A table that the search_path finds is the store's, in whichever of its
// schemas it is: the views are made beside it. The role needs CREATE on that schema; where
// the views are there already, they must be its own. A role that has all that it needs of a
// table that is there has nothing to make. Where the search_path finds no table, and another
// schema of the database has one, Init fails: see [Store.InitSecond].
func (s *Store) Init(ctx context.Context) (made bool, err error) { return s.init(ctx, hidden) }

// InitSecond is Init for a second store in a database: it makes a table though another schema
// has one. Ids and numbers of the two stores may be equal.
func (s *Store) InitSecond(ctx context.Context) (made bool, err error) {
	return s.init(ctx, func(ctx context.Context, q table.Querier) error {
		err := hidden(ctx, q)
		var other *elsewhereError
		if errors.As(err, &other) {
			return nil
		}
		return err
	})
}

// init makes what Init makes, unless hidden says why it must not.
func (s *Store) init(ctx context.Context, hidden func(context.Context, table.Querier) error) (made bool, err error) {
	conn, err := table.Conn(ctx, s.db)
	if err != nil {
		return false, s.table.Explain(ctx, s.db, err)
	}
	defer conn.Close()
	if err := hidden(ctx, conn); err != nil {
		return false, s.table.Explain(ctx, conn, err)
	}
	var schema string
	if err := conn.QueryRowContext(ctx, sqlSchema).Scan(&schema); err != nil {
		return false, s.table.Explain(ctx, conn, err)
	}
	for _, q := range statements() {
		if err := define(ctx, beside{conn, schema}, q); err != nil {
			if schema != "" && state(err) == "42501" && s.usable(ctx) {
				return false, nil // its owner has set it up
			}
			return false, s.table.Explain(ctx, conn, err)
		}
	}
	s.table.See()
	return schema == "", nil
}

// usable reports whether the role has all that it needs of the table that is there.
func (s *Store) usable(ctx context.Context) bool {
	missing, _, err := s.MissingPrivileges(ctx)
	return err == nil && missing == ""
}

// sqlSchema is the schema that has the table, or ” where there is none.
const sqlSchema = `SELECT coalesce((SELECT n.nspname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('firn_records')), '')`

// An executor runs a statement.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A beside runs statements so that what they make is in one schema, which need not be the
// first of the search_path. Without a schema it is as the connection is.
type beside struct {
	conn   *sql.Conn
	schema string
}

func (b beside) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if b.schema == "" {
		return b.conn.ExecContext(ctx, query, args...)
	}
	tx, err := b.conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `SELECT set_config('search_path', quote_ident($1), true)`, b.schema); err != nil {
		return nil, err
	}
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return result, tx.Commit()
}

// create creates the table unless it is there.
func create(ctx context.Context, conn *sql.Conn) error { return define(ctx, conn, statements()[0]) }

// define runs a statement that makes something unless it is there. Where others do
// so at the same time, PostgreSQL may refuse all but one; then it is tried again.
func define(ctx context.Context, conn executor, statement string) error {
	for try := 1; ; try++ {
		_, err := conn.ExecContext(ctx, statement)
		switch state(err) {
		case "23505", "42P07", "42710", "40001", "XX000": // XX000: tuple concurrently updated
			if try < 10 {
				continue
			}
		}
		return err
	}
}
