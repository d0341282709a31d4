package postgres

import "context"

// sqlMissing names the privileges that the role lacks on the table, and the statement that
// grants them. Privileges on all columns do as well as those on the table.
const sqlMissing = `
SELECT coalesce(string_agg(p, ', ' ORDER BY n), ''),
	coalesce('GRANT ' || string_agg(p, ', ' ORDER BY n) || format(' ON %s.firn_records TO %I',
		(SELECT relnamespace::regnamespace FROM pg_class WHERE oid = to_regclass('firn_records')), current_user), '')
FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) WITH ORDINALITY AS need (p, n)
WHERE to_regclass('firn_records') IS NOT NULL AND EXISTS (
	SELECT FROM unnest(ARRAY['key', 'value', 'version', 'written']) AS c
	WHERE NOT has_column_privilege(to_regclass('firn_records'), c, p))`

// sqlUnmade is whether there is no table, and the role may not create one.
const sqlUnmade = `SELECT to_regclass('firn_records') IS NULL AND NOT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)`

// An unmadeError says that there is no table, and that the role may not create one.
type unmadeError struct{}

func (unmadeError) Error() string { return "there is no table firn_records" }

// SQLState is the server's code for a refusal like this one.
func (unmadeError) SQLState() string { return "42501" }

// MissingPrivileges returns which privileges the role lacks on the table firn_records, and
// the statement with which the table's owner grants them. Both are empty where the role has
// all, and where there is no table. If there is no table, and the role may not create one, the
// error is [store.ErrDenied]. It changes nothing.
func (s *Store) MissingPrivileges(ctx context.Context) (missing, grant string, err error) {
	var unmade bool
	err = s.db.QueryRowContext(ctx, sqlUnmade).Scan(&unmade)
	if err == nil && unmade {
		// A schema that does not exist, or that the role may not use, is why there is none.
		if err = hidden(ctx, s.db); err == nil {
			err = unmadeError{}
		}
	}
	if err == nil {
		err = s.db.QueryRowContext(ctx, sqlMissing).Scan(&missing, &grant)
	}
	return missing, grant, s.table.Explain(ctx, s.db, err)
}

// Grant is what the owner of the table types for another role that is to use it: ROLE stands
// for that one. It names the schema where the search_path finds the table, or ” if there is
// no table.
func (s *Store) Grant(ctx context.Context) (string, error) {
	var schema string
	err := s.db.QueryRowContext(ctx, `SELECT coalesce((SELECT quote_ident(n.nspname) FROM pg_class AS c
		JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('firn_records')), '')`).Scan(&schema)
	if err != nil || schema == "" {
		return "", s.table.Explain(ctx, s.db, err)
	}
	return "GRANT USAGE ON SCHEMA " + schema + " TO ROLE; GRANT SELECT, INSERT, UPDATE ON " + schema + ".firn_records TO ROLE;", nil
}
