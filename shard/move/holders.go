package move

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// A Holder is a transaction with a lock that keeps a shard from changing over. Transactions that only
// read have no such lock.
type Holder struct {
	PID         int32  // 0: it is prepared, and has no session
	User        string //
	Application string // as the session calls itself; or the name of the prepared transaction
	Client      string // its address; empty: this host
	Query       string // the beginning of the last one
	Age         time.Duration
	Autovacuum  bool // it is the server's own; it may be cancelled without harm
}

func (h Holder) String() string {
	switch {
	case h.PID == 0:
		return fmt.Sprintf("prepared transaction %s of %s, for %s", h.Application, h.User, h.age())
	case h.Autovacuum:
		return fmt.Sprintf("pid %d: autovacuum, for %s", h.PID, h.age())
	}
	from := h.User
	if h.Client != "" {
		from += " at " + h.Client
	}
	if h.Application != "" {
		from += " (" + h.Application + ")"
	}
	return fmt.Sprintf("pid %d: %s, for %s: %s", h.PID, from, h.age(), h.Query)
}

func (h Holder) age() time.Duration { return h.Age.Round(time.Millisecond) }

// A HoldersError says which transactions lasted longer than Options.LockWait.
type HoldersError struct {
	Shard   int64 // -1: they keep a slot from being made
	Waited  time.Duration
	Holders []Holder
	Do      string // what to do about an autovacuum among them; empty: end them, or wait longer
}

func (e *HoldersError) Error() string {
	lines := make([]string, len(e.Holders))
	for i, h := range e.Holders {
		lines[i] = "\n  " + h.String()
	}
	if e.Shard < 0 {
		return fmt.Sprintf("a slot could not be made in %s, which waits for all that write:%s", e.Waited.Round(time.Second), strings.Join(lines, ""))
	}
	return fmt.Sprintf("shard %d was in use by long transactions for %s:%s", e.Shard, e.Waited.Round(time.Second), strings.Join(lines, ""))
}

// holdersSQL: what conflicts with SHARE ROW EXCLUSIVE. The generators' own sequences are
// not locked by a fence.
const holdersSQL = `
SELECT x.pid, x."user", x.application, x.client, x.query, x.age, x.autovacuum FROM (
	SELECT DISTINCT coalesce(a.pid, 0) AS pid, coalesce(a.usename::text, p.owner::text, '') AS "user", coalesce(p.gid, a.application_name, '') AS application, coalesce(host(a.client_addr), '') AS client,
		coalesce(left(regexp_replace(a.query, '\s+', ' ', 'g'), 120), '') AS query, extract(epoch FROM statement_timestamp() - coalesce(a.xact_start, p.prepared))::float8 AS age,
		coalesce(a.backend_type = 'autovacuum worker', false) AS autovacuum
	FROM pg_locks AS l
	JOIN pg_class AS c ON c.oid = l.relation
	JOIN pg_namespace AS n ON n.oid = c.relnamespace
	LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
	LEFT JOIN pg_locks AS x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid' AND x.granted AND x.virtualtransaction = l.virtualtransaction
	LEFT JOIN pg_prepared_xacts AS p ON p.transaction = x.transactionid
	WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND n.nspname = $1
		AND l.granted AND l.mode NOT IN ('AccessShareLock', 'RowShareLock') AND l.pid IS DISTINCT FROM pg_backend_pid()
		AND NOT EXISTS (SELECT FROM firn.generator AS g WHERE c.oid IN (g.counter, g."offset"))
) AS x WHERE x.age > $2 ORDER BY x.age DESC, x.pid`

// holders are the transactions older than that which keep a shard from being fenced, the
// oldest first.
func holders(ctx context.Context, q topology.Querier, schema string, older time.Duration) ([]Holder, error) {
	rows, err := q.Query(ctx, holdersSQL, schema, older.Seconds())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Holder, err error) {
		var age float64
		err = row.Scan(&h.PID, &h.User, &h.Application, &h.Client, &h.Query, &age, &h.Autovacuum)
		h.Age = time.Duration(age * float64(time.Second))
		return h, err
	})
}
