package postgres

import "context"

// sqlMissing names the privileges that the role lacks on the table, and the statement that
// grants them. Privileges on all columns do as well as those on the table.
const sqlMissing = `
SELECT coalesce(string_agg(p, ', ' ORDER BY n), ''),
	coalesce('GRANT ' || string_agg(p, ', ' ORDER BY n) || format(' ON %s TO %I', to_regclass('firn_records')::text, current_user), '')
FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) WITH ORDINALITY AS need (p, n)
WHERE to_regclass('firn_records') IS NOT NULL AND EXISTS (
	SELECT FROM unnest(ARRAY['key', 'value', 'version', 'written']) AS c
	WHERE NOT has_column_privilege(to_regclass('firn_records'), c, p))`

// MissingPrivileges returns which privileges the role lacks on the table firn_records, and
// the statement with which the table's owner grants them. Both are empty where the role has
// all, and where there is no table. It changes nothing.
func (s *Store) MissingPrivileges(ctx context.Context) (missing, grant string, err error) {
	err = s.db.QueryRowContext(ctx, sqlMissing).Scan(&missing, &grant)
	return missing, grant, explain(ctx, s.db, err)
}
