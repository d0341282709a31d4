package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store/internal/table"
)

// sqlPath is the search_path, which of its schemas do not exist, whether any does, and which
// other schemas have a table firn_records. The catalog shows them to roles without rights.
const sqlPath = `
WITH ` + sqlPlaces + `
SELECT current_setting('search_path'),
	coalesce((SELECT string_agg(path.schema, chr(10) ORDER BY place) FROM path
		WHERE path.schema <> current_user AND path.schema NOT IN (SELECT nspname::text FROM pg_namespace)), ''),
	EXISTS (SELECT FROM path JOIN pg_namespace AS n ON n.nspname::text = path.schema),
	coalesce((SELECT string_agg(n.nspname::text, chr(10) ORDER BY n.nspname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relname = 'firn_records' AND c.relkind IN ('r', 'p', 'v') AND n.nspname NOT LIKE 'pg\_%' AND to_regclass('firn_records') IS NULL), '')`

// A path is where a role without a table looked for it, and where there is one.
type path struct {
	text      string
	missing   []string // schemas of the path that do not exist
	any       bool     // one does
	elsewhere []string // schemas that have a table, outside of the path
}

func pathOf(ctx context.Context, q table.Querier) (p path, err error) {
	err = rows(ctx, q, sqlPath, nil, func(r *sql.Rows) error {
		var missing, elsewhere string
		err := r.Scan(&p.text, &missing, &p.any, &elsewhere)
		p.missing, p.elsewhere = lines(missing), lines(elsewhere)
		return err
	})
	return p, err
}

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// A pathError says that no schema of the search_path exists.
type pathError struct{ path }

func (e *pathError) Error() string {
	what := "no schema of it exists"
	if len(e.missing) == 1 {
		what = fmt.Sprintf("there is no schema %q in this database", e.missing[0])
	}
	return fmt.Sprintf("search_path is %s, and %s", e.text, what)
}

// SQLState is the server's code for what it refuses to create there.
func (e *pathError) SQLState() string { return "3F000" }

func (e *pathError) advice() string {
	if len(e.elsewhere) == 0 {
		return "correct search_path, or create the schema first"
	}
	return "correct search_path; a table firn_records is in schema " + strings.Join(e.elsewhere, ", ")
}

// Elsewhere helps to find a mistyped search_path. It returns the search_path, those of its
// schemas that do not exist, and the other schemas of the database that have a table
// firn_records. Nothing is returned where the search_path finds the table.
func (s *Store) Elsewhere(ctx context.Context) (searchPath string, missing, schemas []string, err error) {
	var there bool
	if err := s.db.QueryRowContext(ctx, `SELECT to_regclass('firn_records') IS NOT NULL`).Scan(&there); err != nil || there {
		return "", nil, nil, s.table.Explain(ctx, s.db, err)
	}
	p, err := pathOf(ctx, s.db)
	return p.text, p.missing, p.elsewhere, s.table.Explain(ctx, s.db, err)
}
