package move

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// This file says what a schema is that is in the way of a shard which is to come to a server.

// OldCopyHint says what to do about a schema with the copy of a shard that firn shards reopen
// has closed on a server.
func OldCopyHint(server, schema string) string {
	return fmt.Sprintf("compare its rows with those of the server that serves the shard, and keep what only this copy has. Then on %s: %s", server, dropSchema(schema))
}

func dropSchema(schema string) string { return "DROP SCHEMA " + identifier(schema) + " CASCADE" }

const oldCopyRows = `SELECT coalesce(sum(greatest(c.reltuples, pg_stat_get_live_tuples(c.oid), 0)), 0)::bigint FROM firn.relations($1) AS r JOIN pg_class AS c ON c.oid = r.relation WHERE r.rows`

// oldCopyText says what such a schema is, and about how many rows it has, by the server's estimate.
func oldCopyText(ctx context.Context, c *pgx.Conn, schema string) (string, error) {
	var rows int64
	if err := c.QueryRow(ctx, oldCopyRows, schema).Scan(&rows); err != nil {
		return "", err
	}
	return fmt.Sprintf("the schema %s is an old copy that serves nothing, with about %d rows: a reopen on another server took the shard away from it", schema, rows), nil
}

// A schema that is in the way, of which kind it is.
const inWaySQL = `
SELECT EXISTS (SELECT FROM firn.generator AS g JOIN pg_class AS c ON c.oid = g."offset" WHERE g.shard = $1 AND c.relnamespace = to_regnamespace(quote_ident($2))),
	coalesce((SELECT s.attempt IS NULL FROM firn.shard AS s WHERE s.shard = $1), false)`

// inWay says what a schema on a server is that is in the way of a shard, and what to do about it.
func inWay(ctx context.Context, c *pgx.Conn, server string, n int64, schema string) (text, do string, copied bool, err error) {
	var told bool
	if err := c.QueryRow(ctx, inWaySQL, n, schema).Scan(&copied, &told); err != nil {
		return "", "", false, err
	}
	text = "there is a schema " + schema + " already, "
	switch {
	case copied && told:
		old, err := oldCopyText(ctx, c, schema)
		return text + "and no move has left it: " + old, OldCopyHint(server, schema), true, err
	case copied:
		return text + "a copy that a move has left", "to drop it: firn shards doctor --clean", true, nil
	}
	return text + "and it is no copy of the shard", fmt.Sprintf("keep it under another name, if somebody needs it. Else, on %s: %s", server, dropSchema(schema)), false, nil
}

// An InWayError says that the schema of a shard cannot be made on the target, because there is
// one of that name.
type InWayError struct {
	Shard        int64
	Server, What string
	Do           string
	Copy         bool // it is a copy of the shard, which ending the move drops
	Err          error
}

func (e *InWayError) Error() string {
	return fmt.Sprintf("shard %d: server %s: %s", e.Shard, e.Server, e.What)
}
func (e *InWayError) Unwrap() error { return e.Err }

// inWay is an error of a shard that was to be loaded, told from others where a schema is in the way.
func (m *Mover) inWay(ctx context.Context, c *pgx.Conn, p pairOf, err error) error {
	if sqlstate(err) != "42P06" {
		return err
	}
	text, do, copied, asked := inWay(ctx, c, m.target.Name, p.shard, p.source.schema)
	if asked != nil {
		return errors.Join(err, asked)
	}
	return &InWayError{p.shard, m.target.Name, text, do, copied, err}
}
