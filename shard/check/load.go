package check

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// A Load is what the shards of one server bear there.
type Load struct {
	Server string
	Err    error // it did not answer; the rest is zero then
	At     time.Time
	Shards []ShardLoad // that are there, without those that have moved away
}

// A ShardLoad is what one shard bears.
type ShardLoad struct {
	Shard  int64
	Open   bool  // it is served
	Bytes  int64 // its tables with their indexes, and its sequences
	Writes int64 // rows that were written since the server counts; of two looks the difference tells
}

const loadQuery = `SELECT s.shard, s.state = 'open' AND firn.is_here(s), coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint, coalesce(sum(t.n_tup_ins + t.n_tup_upd + t.n_tup_del), 0)::bigint
	FROM firn.shard AS s
	LEFT JOIN pg_namespace AS n ON n.nspname = s.schema
	LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'm', 'S')
	LEFT JOIN pg_stat_all_tables AS t ON t.relid = c.oid
	WHERE s.state <> 'moved'
	GROUP BY s.shard ORDER BY s.shard`

// CopyBytes returns how much room shards take on a server, whether it serves them or has a copy: tables,
// indexes and sequences.
func CopyBytes(ctx context.Context, server topology.Server, shards []int64) (bytes int64, err error) {
	err = server.Ask(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
		FROM firn.shard AS s JOIN pg_namespace AS n ON n.nspname = s.schema
		JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'm', 'S')
		WHERE s.shard = ANY ($1)`, shards).Scan(&bytes)
	})
	return bytes, err
}

// Loads returns the load of each shard, of all servers at once.
func Loads(ctx context.Context, servers []topology.Server) []*Load {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	loads := make([]*Load, len(servers))
	var each sync.WaitGroup
	for i, server := range servers {
		l := &Load{Server: server.Name}
		loads[i] = l
		each.Go(func() {
			if shards, err := load(ctx, server); err != nil {
				l.Err = err
			} else {
				l.At, l.Shards = time.Now(), shards
			}
		})
	}
	each.Wait()
	return loads
}

func load(ctx context.Context, server topology.Server) (shards []ShardLoad, err error) {
	err = server.Ask(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, loadQuery)
		if err == nil {
			shards, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ShardLoad])
		}
		return err
	})
	return shards, err
}

// Rates are the rows that were written a second to each shard since an earlier look at
// the server. Shards of which that cannot be told are left out: they came meanwhile, or
// the server counts anew.
func (l *Load) Rates(before *Load) map[int64]float64 {
	rates := make(map[int64]float64)
	if before == nil || l.Err != nil || before.Err != nil {
		return rates
	}
	was := make(map[int64]int64)
	for _, s := range before.Shards {
		was[s.Shard] = s.Writes
	}
	passed := l.At.Sub(before.At).Seconds()
	for _, s := range l.Shards {
		if n, ok := was[s.Shard]; ok && s.Writes >= n && passed > 0 {
			rates[s.Shard] = float64(s.Writes-n) / passed
		}
	}
	return rates
}
