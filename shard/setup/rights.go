package setup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// A RightsError says what the role of a connection lacks on a server. It is in a [*topology.ServerError].
type RightsError struct {
	What string
	Do   string // what to type; a whole sentence
}

func (e *RightsError) Error() string { return e.What }

// An uncallable is a function of PostgreSQL that some roles may not call, though firn's functions call it with the
// rights of the role that asks.
type uncallable struct {
	Function string // with its arguments, as GRANT takes it
	Public   bool   // each role may call it that is made from now on
	Roles    []string
}

// A server where all may be called by all, as PostgreSQL has it, has no row.
const uncallableSQL = `
SELECT x.function, has_function_privilege('public', x.function, 'EXECUTE'), ARRAY(SELECT r.rolname::text FROM pg_roles AS r WHERE NOT has_function_privilege(r.oid, x.function, 'EXECUTE'))
FROM unnest(ARRAY['pg_control_system()', 'pg_current_wal_lsn()', 'pg_walfile_name(pg_lsn)']) AS x(function)
WHERE NOT has_function_privilege('public', x.function, 'EXECUTE') ORDER BY 1`

// findUncallable finds the functions that some roles may not call, and fails where this role is one of them: what
// is asked of the server next calls them.
func (t *site) findUncallable(ctx context.Context, c *pgx.Conn) error {
	rows, err := c.Query(ctx, uncallableSQL)
	if err == nil {
		t.uncallable, err = pgx.CollectRows(rows, pgx.RowToStructByPos[uncallable])
	}
	if err == nil && len(t.uncallable) > 0 {
		err = c.QueryRow(ctx, "SELECT current_user::text, ARRAY(SELECT rolname::text FROM pg_roles)").Scan(&t.user, &t.roles)
	}
	if err != nil {
		return &topology.ServerError{Server: t.server.Name, Err: err}
	}
	return t.mayCall(t.user)
}

// mayCall says which function of PostgreSQL a role may not call, or nil. A role that is not there yet is made, and may
// call what all may.
func (t *site) mayCall(role string) error {
	for _, u := range t.uncallable {
		there, create := slices.Contains(t.roles, role), ""
		switch {
		case there && !slices.Contains(u.Roles, role), !there && u.Public:
			continue
		case !there:
			create = "CREATE ROLE " + identifier(role) + " NOLOGIN; "
		}
		name, _, _ := strings.Cut(u.Function, "(")
		return &topology.ServerError{Server: t.server.Name, Err: &RightsError{
			fmt.Sprintf("the role %s may not call %s(), which firn's functions call", role, name),
			fmt.Sprintf("on server %s, as a superuser: %sGRANT EXECUTE ON FUNCTION pg_catalog.%s TO %s. Then run the same command again", t.server.Name, create, u.Function, identifier(role)),
		}}
	}
	return nil
}

const ownerSQL = `SELECT current_user::text, pg_get_userbyid(n.nspowner)::text, pg_has_role(n.nspowner, 'USAGE') FROM pg_namespace AS n WHERE n.nspname = 'firn'`

const barredSQL = `SELECT n.nspname::text, pg_get_userbyid(n.nspowner)::text FROM pg_namespace AS n WHERE n.nspname = ANY ($1) AND NOT has_schema_privilege(n.oid, 'USAGE') ORDER BY 1 LIMIT 1`

// mayWork says which right the roles of the connections lack, before anything is taken from a server.
func (r *Reopening) mayWork(ctx context.Context, conn *pgx.Conn, others map[string]*pgx.Conn) error {
	all := maps.Clone(others)
	all[r.Server] = conn
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := r.rightsOn(ctx, name, all[name]); err != nil {
			return &topology.ServerError{Server: name, Err: err}
		}
	}
	return nil
}

func (r *Reopening) rightsOn(ctx context.Context, server string, c *pgx.Conn) error {
	var user, owner string
	var owns bool
	if err := c.QueryRow(ctx, ownerSQL).Scan(&user, &owner, &owns); err != nil {
		return err
	}
	if !owns {
		return &RightsError{
			fmt.Sprintf("the schema firn belongs to the role %s, and this is %s", owner, user),
			fmt.Sprintf("give the address of server %s with that role: --server %[1]s=postgres://%s@HOST/DATABASE, or in firn.yaml. Then run the same command again", server, owner),
		}
	}
	if server != r.Server {
		return nil
	}
	schemas := make([]string, len(r.Shards))
	for i, row := range r.Shards {
		schemas[i] = row.Schema
	}
	var schema string
	err := c.QueryRow(ctx, barredSQL, schemas).Scan(&schema, &owner)
	if err == pgx.ErrNoRows {
		return nil
	} else if err != nil {
		return err
	}
	return &RightsError{
		fmt.Sprintf("the role %s may not use the schema %s, which belongs to the role %s", user, schema, owner),
		fmt.Sprintf("on server %s, as a superuser: ALTER SCHEMA %s OWNER TO %s. Then run the same command again", server, identifier(schema), identifier(user)),
	}
}
