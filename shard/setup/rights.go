package setup

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// A RightsError says what the role of a connection lacks on a server. It is in a [*topology.ServerError].
type RightsError struct {
	What string
	Do   string // what to type; a whole sentence
}

func (e *RightsError) Error() string { return e.What }

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
