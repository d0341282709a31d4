package takeover

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A LeftOut are sequences of PostgreSQL that a role may not read. The view pg_sequences shows NULL
// in place of their numbers, as of a sequence that was never used.
type LeftOut struct {
	Sequences []string // with their schemas, as SQL writes them
	Role      string   // as SQL writes it
}

// Grant is what the owner of the sequences types.
func (l *LeftOut) Grant() string {
	return fmt.Sprintf("GRANT SELECT ON SEQUENCE %s TO %s", strings.Join(l.Sequences, ", "), l.Role)
}

// unreadableSQL finds what pg_sequences shows as NULL.
const unreadableSQL = `
SELECT pg_catalog.quote_ident(nspname) || '.' || pg_catalog.quote_ident(relname), relname, pg_catalog.quote_ident(current_user)
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace
WHERE CASE WHEN relkind = 'S' THEN NOT pg_catalog.has_sequence_privilege(c.oid, 'SELECT,USAGE') ELSE false END AND NOT pg_catalog.pg_is_other_temp_schema(n.oid)
ORDER BY 1`

var literalText = regexp.MustCompile(`'([^']*)'`)

// leftOut returns which sequences a query over pg_sequences cannot read: nil if it can read all.
// One that the query names is an error.
func leftOut(ctx context.Context, tx *sql.Tx, query string) (*LeftOut, error) {
	if !slices.Contains(namesIn(namedThing(), withoutQuotes(query)), "pg_sequences") {
		return nil, nil
	}
	literals := literalText.FindAllStringSubmatch(query, -1)
	rows, err := tx.QueryContext(ctx, unreadableSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all, named LeftOut
	for rows.Next() {
		var whole, name string
		if err := rows.Scan(&whole, &name, &all.Role); err != nil {
			return nil, err
		}
		all.Sequences = append(all.Sequences, whole)
		if slices.ContainsFunc(literals, func(l []string) bool { return l[1] == name }) {
			named.Sequences = append(named.Sequences, whole)
		}
	}
	if named.Role = all.Role; len(named.Sequences) > 0 {
		return nil, failed("--query names %s, which the role %s may not read: pg_sequences shows NULL for it", strings.Join(named.Sequences, ", "), named.Role).
			hint("have the owner type: %s", named.Grant())
	}
	if len(all.Sequences) == 0 {
		return nil, rows.Err()
	}
	return &all, rows.Err()
}
