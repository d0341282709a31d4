package postgres

import (
	"context"
	"database/sql"
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
// made the table. The role needs CREATE on the schema; where the views are there
// already, they must be its own.
func (s *Store) Init(ctx context.Context) (made bool, err error) {
	conn, err := table.Conn(ctx, s.db)
	if err != nil {
		return false, explain(ctx, s.db, err)
	}
	defer conn.Close()
	if err := conn.QueryRowContext(ctx, `SELECT to_regclass('firn_records') IS NULL`).Scan(&made); err != nil {
		return false, explain(ctx, conn, err)
	}
	for _, q := range statements() {
		if err := define(ctx, conn, q); err != nil {
			return false, explain(ctx, conn, err)
		}
	}
	s.seen.Store(true)
	return made, nil
}

// makeTable is for the first Put. It makes none where there was one.
func (s *Store) makeTable(ctx context.Context, conn *sql.Conn) error {
	if s.seen.Load() {
		return nil
	}
	if err := define(ctx, conn, statements()[0]); err != nil {
		return err
	}
	s.seen.Store(true)
	return nil
}

// define runs a statement that makes something unless it is there. Where others do
// so at the same time, PostgreSQL may refuse all but one; then it is tried again.
func define(ctx context.Context, conn *sql.Conn, statement string) error {
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
