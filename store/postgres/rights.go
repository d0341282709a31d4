package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/firn-id/firn/store/internal/table"
)

// PostgreSQL passes over a schema of the search_path that the role may not use, without a
// word. A table there looks as if it were missing, or a table of a later schema as if it
// were the store: then two programs would have two stores. So the schemas that hide one are
// found by the catalog, which everybody may read.

// sqlPlaces is the table's places along the search_path: in which schemas it is, and
// whether the role may use them.
const sqlPlaces = `
path AS (
	SELECT place, CASE WHEN trim(both '"' from part) = '$user' THEN current_user::text
		WHEN part LIKE '"%' THEN replace(substr(part, 2, length(part) - 2), '""', '"') ELSE lower(part) END AS schema
	FROM (SELECT place, trim(both from s) AS part FROM regexp_split_to_table(current_setting('search_path'), ',') WITH ORDINALITY AS p (s, place)) AS parts
), places AS (
	SELECT place, n.nspname::text AS schema, has_schema_privilege(n.oid, 'USAGE') AS usable
	FROM path JOIN pg_namespace AS n ON n.nspname::text = path.schema
	JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = 'firn_records' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
)`

// sqlSeveral is the schemas whose tables the role may use, if there are several, or ”.
const sqlSeveral = `coalesce((SELECT string_agg(quote_ident(schema), ', ' ORDER BY place) FROM
	(SELECT schema, min(place) AS place FROM places WHERE usable GROUP BY schema) AS found HAVING count(*) > 1), '')`

// sqlHidden is the first schema that hides a table from this role, or ”.
const sqlHidden = `coalesce((SELECT schema FROM places WHERE NOT usable
	AND place < coalesce((SELECT min(place) FROM places WHERE usable), place + 1) ORDER BY place LIMIT 1), '')`

// sqlRole is the role, as SQL writes its name, and the schema that has the table, or ”.
const sqlRole = `
WITH ` + sqlPlaces + `
SELECT ` + sqlHidden + `, quote_ident(current_user),
	coalesce((SELECT quote_ident(schema) FROM places ORDER BY place LIMIT 1), '')`

// A hiddenError says that the table is in a schema that the role may not use.
type hiddenError struct{ schema string }

func (e *hiddenError) Error() string { return fmt.Sprintf("permission denied for schema %s", e.schema) }

// SQLState is the server's code for a refusal like this one.
func (e *hiddenError) SQLState() string { return "42501" }

// hidden says why a table that was not found may be there nevertheless: a [*hiddenError] if a
// schema hides one from the role, a [*pathError] if the search_path names no schema that exists,
// an [*elsewhereError] if another schema has one.
func hidden(ctx context.Context, q table.Querier) error {
	schema, _, _, err := roleOf(ctx, q)
	switch {
	case err != nil:
		return err
	case schema != "":
		return &hiddenError{schema}
	}
	p, err := pathOf(ctx, q)
	switch {
	case err != nil:
		return err
	case !p.any:
		return &pathError{p}
	case len(p.elsewhere) > 0:
		return &elsewhereError{p}
	}
	return nil
}

// roleOf is the first schema that hides a table from this role, the role, and the schema that
// has the first table.
func roleOf(ctx context.Context, q table.Querier) (hides, role, schema string, err error) {
	err = rows(ctx, q, sqlRole, nil, func(r *sql.Rows) error { return r.Scan(&hides, &role, &schema) })
	return hides, role, schema, err
}

// rights is what the owner of the table types so that this role may use it.
func rights(ctx context.Context, q table.Querier) string {
	_, role, schema, err := roleOf(ctx, q)
	switch {
	case err != nil:
		return ""
	case schema == "":
		current := "SCHEMA"
		if rows(ctx, q, `SELECT coalesce(quote_ident(current_schema()), 'SCHEMA')`, nil, func(r *sql.Rows) error { return r.Scan(&current) }) != nil {
			return ""
		}
		return fmt.Sprintf("role %s may not make the table firn_records, and there is none in its search_path; "+
			"a role that may runs \"firn store setup\" with its own name in --store, or what \"firn store setup --print\" prints, "+
			"and then GRANT USAGE on the schema and GRANT SELECT, INSERT, UPDATE ON firn_records TO %s; or the owner of the schema types GRANT CREATE ON SCHEMA %s TO %s", role, role, current, role)
	}
	return fmt.Sprintf("role %s lacks a privilege: the owner of the table types GRANT USAGE ON SCHEMA %s TO %s; GRANT SELECT, INSERT, UPDATE ON %s.firn_records TO %s",
		role, schema, role, schema, role)
}
