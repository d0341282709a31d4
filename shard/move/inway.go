package move

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// This file says what a schema is that is in the way of a shard which is to come to a server.

// OldCopyHint says what to do about the rows that firn shard reopen has left on a server when another
// server opened the shard.
func OldCopyHint(n int64) string {
	return fmt.Sprintf("to drop the copy, after a comparison of its rows with those of the server that serves the shard: firn shard finish %d", n)
}

// oldCopyRows is how many rows the server thinks a schema has, and whether it has no idea of one of
// the tables: a crash takes the statistics, and reltuples may be of a time when the table was smaller.
const oldCopyRows = `SELECT
	coalesce(sum(CASE WHEN live > 0 OR pages <= 0 OR size = 0 THEN greatest(live, CASE WHEN size > 0 THEN tuples END, 0) ELSE greatest(tuples, 0) * (size / current_setting('block_size')::float8) / pages END), 0)::bigint,
	coalesce(bool_or(size > 0 AND live = 0 AND (tuples < 0 OR pages <= 0)), false)
FROM (SELECT c.reltuples AS tuples, c.relpages AS pages, pg_stat_get_live_tuples(c.oid) AS live, pg_relation_size(c.oid) AS size
	FROM firn.relations($1) AS r JOIN pg_class AS c ON c.oid = r.relation WHERE r.rows AND c.relkind <> 'p') AS t`

// oldCopyText says what such a schema is, and about how many rows it has, by the server's estimate.
func oldCopyText(ctx context.Context, c *pgx.Conn, schema string) (string, error) {
	var rows int64
	var unknown bool
	if err := c.QueryRow(ctx, oldCopyRows, schema).Scan(&rows, &unknown); err != nil {
		return "", err
	}
	has := fmt.Sprintf("with about %d rows", rows)
	switch {
	case unknown:
		has = "and the number of its rows is not known"
	case rows == 1:
		has = "with about 1 row"
	}
	return fmt.Sprintf("the schema %s is an old copy that serves nothing, %s: a reopen found that another server has the shard", schema, has), nil
}

// A schema that is in the way, of which kind it is.
const inWaySQL = `
SELECT EXISTS (SELECT FROM firn.generator AS g JOIN pg_class AS c ON c.oid = g."offset" WHERE g.shard = $1 AND c.relnamespace = to_regnamespace(quote_ident($2))),
	coalesce((SELECT s.attempt IS NULL FROM firn.shard AS s WHERE s.shard = $1), false)`

// inWay says what a schema on a server is that is in the way of a shard, and what to do about it.
func inWay(ctx context.Context, c *pgx.Conn, server string, n int64, schema string) (text, do string, err error) {
	var copied, told bool
	if err := c.QueryRow(ctx, inWaySQL, n, schema).Scan(&copied, &told); err != nil {
		return "", "", err
	}
	text = "there is a schema " + schema + " already, "
	switch {
	case copied && told:
		old, err := oldCopyText(ctx, c, schema)
		return text + "and no move has left it: " + old, OldCopyHint(n), err
	case copied:
		return text + "a copy that a move has left", "to drop it: firn shard doctor --clean", nil
	}
	return text + "and it is no copy of the shard", fmt.Sprintf("on server %s: ALTER SCHEMA %s RENAME TO %s. Drop it only if nobody needs its rows", server, identifier(schema), identifier("was_"+schema)), nil
}

// An InWayError says that the target has a schema of the shard's name already.
type InWayError struct {
	Shard        int64
	Server, What string
	Do           string
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
	text, do, asked := inWay(ctx, c, m.target.Name, p.shard, p.source.schema)
	if asked != nil {
		return errors.Join(err, asked)
	}
	return &InWayError{p.shard, m.target.Name, text, do, err}
}
