package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn"
)

// A View is what a server says of itself and of the shards that it knows, at one
// instant.
type View struct {
	Cluster  string // the id of its cluster; empty: it is in none
	Server   string // its name there
	Layout   firn.Layout
	Keys     Keys
	Schemas  string   // how a shard's schema is called, as in "insta%d"
	Servers  []string // the names of the cluster's servers, as they were added
	Code     string   // of all functions there, as [Code] names it; empty: some may be of another
	SQL      int      // the version of the functions there; 0: they say none, so they are older than any that says one
	System   int64    // the identifier of the PostgreSQL system
	Timeline string   // of what it writes; empty on a standby
	Standby  bool     // it follows another server

	// Incarnation is of the server: a copy of it that opens shards takes another one. Formerly are those of what it
	// is a copy of, and Peers those of other servers that have opened shards since they were copies, by name.
	Incarnation string
	Formerly    []string
	Peers       map[string]string
	Itself      bool // the incarnation was taken here, and not on what this is a copy of

	Database string // its name
	Original string // the database beside it that its shards were opened in, and that is there still; empty: none, or one shard was opened here
	Version  int    // of PostgreSQL: 150018 is 15.18
	Clock    time.Time
	Shards   []Row // by number
}

// A Row is what a server says of one shard. These rows alone say who owns a shard.
type Row struct {
	Shard   int64
	Schema  string
	State   State
	Term    int64
	MovedTo string // the server, of one that moved
	Here    bool   // it was opened on this server, and not on what this is a copy of

	// Told says of one that moved that no move took it away: firn shard reopen closed it
	// here, or told this server who has it.
	Told bool

	// Dropped says of one that moved that this server has no schema of it any more, and so no rows.
	Dropped bool
}

// Serves reports whether the server says that it serves the shard.
func (r Row) Serves() bool { return r.State == StateOpen && r.Here }

// A State says whether a server serves a shard.
type State string

const (
	StateOpen   State = "open"
	StateClosed State = "closed"
	StateMoved  State = "moved"
)

// A Querier is a connection, a transaction or a pool.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// ErrNoCluster says that the database is in no cluster.
var ErrNoCluster = errors.New("shard: this database has no firn.server: it is in no cluster")

// lookSQL reads everything in one statement, so that it is of one instant.
const lookSQL = `
SELECT v.layout, coalesce(v.cluster, ''), coalesce(v.name, ''), coalesce(v.shards, 0), coalesce(v.keys, ''), coalesce(v.schemas, ''),
	coalesce(v.servers, '{}'), coalesce(v.code, ''),
	coalesce((SELECT substring(p.prosrc FROM '[0-9]+')::integer FROM pg_proc AS p WHERE p.oid = to_regprocedure('firn.sql_version()')), 0), v.incarnation::text, v.formerly::text[], v.peers,
	coalesce((v.system, v.timeline, v.database, v.relation) = (me.system, me.timeline, current_database(), v.tableoid), false), current_database()::text, me.original, me.system, coalesce(me.timeline, ''), pg_is_in_recovery(), current_setting('server_version_num')::integer, clock_timestamp(),
	s.shard, s.schema::text, s.state, s.term, coalesce(s.moved_to, ''),
	(s.system, s.timeline, s.database, s.relation, s.incarnation) IS NOT DISTINCT FROM (me.system, me.timeline, current_database(), s.tableoid, v.incarnation),
	s.state = 'moved' AND s.attempt IS NULL AND s.term > 0, s.state = 'moved' AND n.oid IS NULL
FROM firn.server AS v
CROSS JOIN (SELECT (pg_control_system()).system_identifier AS system,
	coalesce((SELECT min(x.database::text) FROM firn.shard AS x JOIN pg_database AS d ON d.datname = x.database
		WHERE x.system = (pg_control_system()).system_identifier AND x.database <> current_database()), '') AS original,
	CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline) AS me
LEFT JOIN (firn.shard AS s LEFT JOIN pg_namespace AS n ON n.nspname = s.schema) ON true
ORDER BY s.shard`

// Look asks a server what it knows. The error is [ErrNoCluster] where there is
// nothing to ask, and an [*UnrecordedError] where there should be.
func Look(ctx context.Context, q Querier) (*View, error) {
	rows, err := q.Query(ctx, lookSQL)
	if err != nil {
		return nil, notThere(ctx, q, err)
	}
	defer rows.Close()
	var v *View
	for rows.Next() {
		var layout, keys string
		var shards int64
		var one View
		var row struct {
			shard, term   *int64
			schema, state *string
			movedTo       string
			here          bool
			told, dropped *bool
		}
		if err := rows.Scan(&layout, &one.Cluster, &one.Server, &shards, &keys, &one.Schemas,
			&one.Servers, &one.Code, &one.SQL, &one.Incarnation, &one.Formerly, &one.Peers, &one.Itself, &one.Database, &one.Original, &one.System, &one.Timeline, &one.Standby, &one.Version, &one.Clock,
			&row.shard, &row.schema, &row.state, &row.term, &row.movedTo, &row.here, &row.told, &row.dropped); err != nil {
			return nil, err
		}
		if v == nil {
			v = &one
			if v.Layout, err = firn.ParseLayout(layout); err != nil {
				return nil, fmt.Errorf("shard: the server's layout: %w", err)
			}
			if v.Cluster != "" {
				if v.Keys, err = ParseKeys(keys, shards); err != nil {
					return nil, fmt.Errorf("shard: the server's key scheme: %w", err)
				}
			}
		}
		if row.shard != nil {
			v.Shards = append(v.Shards, Row{*row.shard, *row.schema, State(*row.state), *row.term, row.movedTo, row.here, *row.told, *row.dropped})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, notThere(ctx, q, err)
	}
	if v == nil {
		return nil, unrecorded(ctx, q)
	}
	if slices.ContainsFunc(v.Shards, func(row Row) bool { return row.Here }) {
		v.Original = ""
	}
	return v, nil
}

// notThere turns the error of a table or schema that is missing into [ErrNoCluster].
func notThere(ctx context.Context, q Querier, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000") {
		return unrecorded(ctx, q)
	}
	return err
}
