package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"github.com/firn-id/firn/store/internal/table"
)

// sqlPath is the search_path, which of its schemas do not exist, whether any does, and which
// schemas outside of it have a table firn_records. The catalog shows them to roles without rights.
// It also shows a table that was created this moment, which to_regclass does not find yet.
const sqlPath = `
WITH ` + sqlPlaces + `
SELECT current_setting('search_path'),
	coalesce((SELECT string_agg(path.schema, chr(10) ORDER BY place) FROM path
		WHERE path.schema <> current_user AND path.schema NOT IN (SELECT nspname::text FROM pg_namespace)), ''),
	EXISTS (SELECT FROM path JOIN pg_namespace AS n ON n.nspname::text = path.schema),
	coalesce((SELECT string_agg(n.nspname::text, chr(10) ORDER BY n.nspname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relname = 'firn_records' AND c.relkind IN ('r', 'p', 'v') AND n.nspname NOT LIKE 'pg\_%' AND to_regclass('firn_records') IS NULL
		AND n.nspname::text NOT IN (SELECT schema FROM path)), ''),
	quote_ident(current_user), quote_ident(current_database())`

// A path is where a role without a table looked for it, and where there is one.
type path struct {
	text      string
	role      string   // as SQL writes it
	database  string   // as SQL writes it
	missing   []string // schemas of the path that do not exist
	any       bool     // one does
	elsewhere []string // schemas that have a table, outside of the path
}

func pathOf(ctx context.Context, q table.Querier) (p path, err error) {
	err = rows(ctx, q, sqlPath, nil, func(r *sql.Rows) error {
		var missing, elsewhere string
		err := r.Scan(&p.text, &missing, &p.any, &elsewhere, &p.role, &p.database)
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

// Retryable is false: somebody has to change the search_path; see firn.Retryable.
func (*pathError) Retryable() bool { return false }

func (e *pathError) advice() string {
	if len(e.elsewhere) == 0 {
		return "correct search_path, or create the schema first"
	}
	return "correct search_path; a table firn_records is in schema " + strings.Join(e.elsewhere, ", ")
}

// An elsewhereError says that the search_path finds no table, and that another schema of the
// database has one: whoever created a table here would begin a second set of records.
type elsewhereError struct{ path }

func (e *elsewhereError) Error() string {
	unmade := ""
	if len(e.missing) > 0 {
		unmade = "there is no schema " + strings.Join(e.missing, ", ") + ", and "
	}
	return fmt.Sprintf("no table firn_records in the search_path of role %s, which is %s; %sthere is one in schema %s", e.role, e.text, unmade, strings.Join(e.elsewhere, ", "))
}

// Retryable is false: somebody has to change the search_path; see firn.Retryable.
func (*elsewhereError) Retryable() bool { return false }

func (e *elsewhereError) advice() string {
	schema := "SCHEMA"
	if len(e.elsewhere) == 1 {
		schema = quoted(e.elsewhere[0])
	}
	path := schema
	if strings.Trim(e.text, `" `) != "" {
		path = e.text + ", " + schema
	}
	return fmt.Sprintf("if that is the store of your programs: ALTER ROLE %s IN DATABASE %s SET search_path = %s, or name that schema in the URL of firn's connection (search_path=%s), and connect again. "+
		"Only for a second store, whose ids may equal those of the first: firn store setup --second", e.role, e.database, path, schema)
}

// quoted is a name as SQL writes it.
func quoted(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// A severalError says that the search_path finds more than one table: a role with another name,
// or with other rights, finds another one first.
type severalError struct {
	schemas string
	path    string
}

func (e *severalError) Error() string {
	return fmt.Sprintf("the search_path is %s, and more than one schema of it has a table firn_records: %s; programs of other roles may use another one of them, and repeat ids", e.path, e.schemas)
}

// Retryable is false: somebody has to change the search_path; see firn.Retryable.
func (*severalError) Retryable() bool { return false }

func (e *severalError) advice() string {
	return "find out which one all programs use (SELECT max(written) FROM SCHEMA.firn_records), and name only that schema in the URL of firn's connection (search_path=SCHEMA), or with ALTER ROLE ... SET search_path"
}

// Elsewhere helps to find a mistyped search_path. It returns the search_path and those of its
// schemas that do not exist. Nothing is returned where the search_path finds the table.
func (s *Store) Elsewhere(ctx context.Context) (searchPath string, missing []string, err error) {
	var there bool
	if err := s.db.QueryRowContext(ctx, `SELECT to_regclass('firn_records') IS NOT NULL`).Scan(&there); err != nil || there {
		return "", nil, s.table.Explain(ctx, s.db, err)
	}
	p, err := pathOf(ctx, s.db)
	return p.text, p.missing, s.table.Explain(ctx, s.db, err)
}
