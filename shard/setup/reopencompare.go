package setup

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// This file compares what a server has of a shard with what another server has of it, before the first one
// opens the shard. A move keeps both copies until it is finished. If one of the servers was put back to an
// earlier state, the other one may have rows that the first one lacks, and no row of firn.shard says so.

// A Compare counts in how many rows two copies of a schema differ.
type Compare func(ctx context.Context, first, second topology.Server, schema string) (check.Comparison, error)

// errNoCompare says that there are two copies, and nobody who compares them.
var errNoCompare = errors.New("another server has a copy of it, and nothing compares the two: Reopening.Compare is not set")

// keptSQL says whether a server has a copy of a shard that may have more rows than the copy of the server of the
// plan: that server was put back perhaps, or the other one has had the shard since.
const keptSQL = `SELECT EXISTS (SELECT FROM firn.shard AS s JOIN firn.move AS m ON m.shard = s.shard JOIN pg_namespace AS n ON n.nspname = s.schema
	WHERE s.shard = $1 AND m.loaded AND (NOT $2 OR s.state <> 'moved' AND s.term > $3))`

// compare refuses a shard of which another server has a copy with rows that the server of the plan lacks.
func (r *Reopening) compare(ctx context.Context, conn *pgx.Conn, others map[string]*pgx.Conn, row topology.Row) error {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		var kept bool
		if r.closes(row.Shard, name) {
			continue // a person has compared them: the plan asks
		}
		if err := others[name].QueryRow(ctx, keptSQL, row.Shard, row.Here, row.Term).Scan(&kept); err != nil {
			return &topology.ServerError{Server: name, Err: err}
		}
		if !kept {
			continue
		}
		found, err := r.compareWith(ctx, name, conn, others[name], row)
		if err != nil {
			return err
		}
		if found.Lacks() {
			_, err := others[name].Exec(ctx, mayReopenSQL, row.Shard)
			return &LacksError{row.Shard, nil, r.Server, name, found, !found.Swapped().Lacks(), isCopy(err)}
		}
	}
	return nil
}

// mayReopenSQL asks a server whether it would open the copy that it has.
const mayReopenSQL = `SELECT firn.may_reopen(s.shard, s.term, s.state, (pg_control_system()).system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), v.incarnation)
FROM firn.shard AS s, firn.server AS v WHERE s.shard = $1`

// receivedSQL is up to where in the log of the server of the plan another server has received a shard. There is no
// row while a table is being copied: the copy of a table may be ahead of the stream.
const receivedSQL = `
SELECT greatest(coalesce(pg_replication_origin_progress('pg_' || u.oid, true), '0/0'), (SELECT max(coalesce(r.srsublsn, '0/0')) FROM pg_subscription_rel AS r WHERE r.srsubid = u.oid))::text
FROM firn.move AS m JOIN pg_subscription AS u ON u.subname = firn.subscription_of(m) AND u.subdbid = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
WHERE m.shard = $1 AND NOT EXISTS (SELECT FROM pg_subscription_rel AS r WHERE r.srsubid = u.oid AND r.srsubstate <> 'r')`

// passedSQL says whether a server that was promoted or restored since it opened a shard has its own log up to a
// place. The history of its timeline says where it left the one on which it opened the shard. No other server can
// have received the shard on a later timeline, because reopening it ends its moves.
const passedSQL = `
SELECT coalesce((regexp_match(x.history, '(?:^|\n)' || ('x' || x.timeline)::bit(32)::bigint || '\t([0-9A-F]+/[0-9A-F]+)'))[1]::pg_lsn >= $2::text::pg_lsn, false)
FROM (SELECT s.timeline, pg_read_file('pg_wal/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '.history', 0, 1000000, true) AS history
	FROM firn.shard AS s WHERE s.shard = $1 AND s.system = (pg_control_system()).system_identifier AND s.database = current_database() AND s.relation = s.tableoid
		AND s.timeline <> left(pg_walfile_name(pg_current_wal_lsn()), 8)) AS x`

// behind says whether another server has received nothing that the server of the plan lacks. A copy that is behind
// differs in its rows too, and has no more of them. False where that is not known, as to a role that may not ask.
func (r *Reopening) behind(ctx context.Context, name string, conn, other *pgx.Conn, row topology.Row) (behind bool, err error) {
	var received string
	server := name
	if err = other.QueryRow(ctx, receivedSQL, row.Shard).Scan(&received); err == nil {
		server, err = r.Server, conn.QueryRow(ctx, passedSQL, row.Shard, received).Scan(&behind)
	}
	var pg *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, pgx.ErrNoRows), errors.As(err, &pg) && (pg.Code == "42501" || pg.Code == "42704"):
		return behind, nil
	}
	return false, &topology.ServerError{Server: server, Err: err}
}

// A copyOf names one copy of a shard.
type copyOf struct {
	shard  int64
	server string
}

// compareWith compares two copies once: neither is written to before the plan is run.
func (r *Reopening) compareWith(ctx context.Context, name string, conn, other *pgx.Conn, row topology.Row) (check.Comparison, error) {
	key := copyOf{row.Shard, name}
	if found, ok := r.compared[key]; ok {
		return found, nil
	}
	if behind, err := r.behind(ctx, name, conn, other, row); err != nil || behind {
		return check.Comparison{}, err
	}
	if r.Compare == nil {
		return check.Comparison{}, errNoCompare
	}
	found, err := r.Compare(ctx, topology.Server{Name: r.Server, Config: conn.Config()}, topology.Server{Name: name, Config: other.Config()}, row.Schema)
	if err == nil {
		r.compared[key] = found
	}
	return found, err
}
