package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/store/open"
)

// A counterRow is a row of another system's table of counters, as its texts are.
type counterRow [3]sql.NullString

// The columns of a counterRow.
const (
	columnName = iota
	columnNumber
	columnStep
)

// maxCounters is how many rows are taken: a table with more is another one.
const maxCounters = 100_000

// readCounters returns what a query gives. It changes nothing.
func readCounters(ctx context.Context, url, query string) (all []counterRow, err error) {
	if err := checkQuery(query); err != nil {
		return nil, err
	}
	db, err := open.Database(url)
	if err != nil {
		var wrong *open.URLError
		if errors.As(err, &wrong) {
			return nil, ui.Bad("--db: %s", phrase.WithoutPackage(wrong.Error())).Hint("--db mysql://USER:PASSWORD@HOST/DATABASE, postgres://... or sqlite:PATH")
		}
		return nil, ui.Failed("--db: %w", err)
	}
	defer db.Close()
	wrong := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var said *ui.Failure
		if errors.As(err, &said) {
			return err
		}
		return ui.Failed("--from: %w", err).Hint("is it a SELECT that %s runs?", open.Redact(url))
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, ui.Failed("--db %s: %w", open.Redact(url), err)
	}
	defer tx.Rollback()
	switch {
	case strings.HasPrefix(url, "postgres"):
		err = checkCalls(ctx, tx, query)
	case strings.HasPrefix(url, "mysql"):
		err = checkMySQLCalls(ctx, tx, query)
	}
	if err != nil {
		return nil, wrong(err)
	}
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, wrong(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, wrong(err)
	}
	if len(columns) != 3 {
		return nil, ui.Bad("--from gives %s (%s), and there have to be three: name, highest number given, step",
			phrase.Plural(len(columns), "column"), strings.Join(columns, ", ")).Hint("a step for all can stand there as a number: SELECT name, value, 1000 FROM ...")
	}
	for rows.Next() {
		var r counterRow
		if err := rows.Scan(&r[columnName], &r[columnNumber], &r[columnStep]); err != nil {
			return nil, wrong(fmt.Errorf("row %d: %w", len(all)+1, err))
		}
		if all = append(all, r); len(all) > maxCounters {
			return nil, ui.Failed("--from gives more than %d rows: is that a table of counters?", maxCounters)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, wrong(err)
	}
	if len(all) == 0 {
		return nil, ui.Failed("--from gives no rows")
	}
	return all, nil
}
