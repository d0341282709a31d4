package mysql

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
func statements() []string {
	return strings.Split(strings.TrimSuffix(strings.TrimSpace(schema), ";"), ";\n\n")
}

// Init makes the table and the views if they are not there. It returns whether it
// made the table. The user needs CREATE and CREATE VIEW, and DROP where the views
// are there already.
func (s *Store) Init(ctx context.Context) (made bool, err error) {
	conn, err := table.Conn(ctx, s.db)
	if err != nil {
		return false, s.table.Explain(ctx, s.db, err)
	}
	defer conn.Close()
	const there = `SELECT COUNT(*) = 0 FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'firn_records'`
	if err := conn.QueryRowContext(ctx, there).Scan(&made); err != nil {
		return false, s.table.Explain(ctx, conn, err)
	}
	for _, q := range statements() {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			return false, s.table.Explain(ctx, conn, err)
		}
	}
	s.table.See()
	return made, nil
}

// create creates the table unless it is there.
func create(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, statements()[0])
	return err
}
