package takeover

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/store/open"
)

// A Row is a row of another system's table of counters, as its texts are.
type Row [3]sql.NullString

// The columns of a Row.
const (
	columnName = iota
	columnNumber
	columnStep
)

// maxCounters is how many rows are taken: a table with more is another one.
const maxCounters = 100_000

// Read returns what a query gives in the database of a URL, and which sequences the query could
// not read, nil if there are none. It changes nothing.
func Read(ctx context.Context, url, query string) (all []Row, left *LeftOut, err error) {
	if err := checkQuery(query); err != nil {
		return nil, nil, err
	}
	db, err := open.Database(url)
	if err != nil {
		var wrong *open.URLError
		if errors.As(err, &wrong) {
			return nil, nil, bad("--db: %s", phrase.WithoutPackage(wrong.Error())).hint("--db mysql://USER:PASSWORD@HOST/DATABASE, postgres://... or sqlite:PATH")
		}
		return nil, nil, failed("--db: %w", err)
	}
	defer db.Close()
	wrong := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var said *Error
		if errors.As(err, &said) {
			return err
		}
		return failed("--query: %w", err).hint("is it a SELECT that %s runs?", open.Redact(url))
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, nil, failed("--db %s: %w", open.Redact(url), err)
	}
	defer tx.Rollback()
	switch {
	case strings.HasPrefix(url, "postgres"):
		if err = checkCalls(ctx, tx, query); err == nil {
			left, err = leftOut(ctx, tx, query)
		}
	case strings.HasPrefix(url, "mysql"):
		err = checkMySQLCalls(ctx, tx, query)
	}
	if err != nil {
		return nil, nil, wrong(err)
	}
	all, err = rowsOf(ctx, tx, query, wrong)
	return all, left, err
}

// rowsOf runs the query. An error of the database is as wrong says.
func rowsOf(ctx context.Context, tx *sql.Tx, query string, wrong func(error) error) (all []Row, err error) {
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
		return nil, bad("--query gives %s (%s), and there have to be three: name, highest number given, step",
			phrase.Plural(len(columns), "column"), strings.Join(columns, ", ")).hint("a step for all can stand there as a number: SELECT name, value, 1000 FROM ...")
	}
	for rows.Next() {
		var r Row
		if err := rows.Scan(&r[columnName], &r[columnNumber], &r[columnStep]); err != nil {
			return nil, wrong(fmt.Errorf("row %d: %w", len(all)+1, err))
		}
		if all = append(all, r); len(all) > maxCounters {
			return nil, failed("--query gives more than %d rows: is that a table of counters?", maxCounters)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, wrong(err)
	}
	if len(all) == 0 {
		return nil, failed("--query gives no rows")
	}
	return all, nil
}
