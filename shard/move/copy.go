package move

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// copyPause is between two looks at a copy that grows.
const copyPause = 200 * time.Millisecond

// wait waits for the copy of these shards a while, and says how far it is.
func (m *Mover) wait(ctx context.Context, g goal, todo []pairOf) error {
	if err := m.alike(ctx, g, todo); err != nil {
		return err
	}
	made, err := m.copied(ctx)
	if err != nil {
		return err
	}
	if err := m.broken(ctx, todo); err != nil {
		return err
	}
	if err := m.stalled(ctx, made); err != nil {
		return err
	}
	if err := m.checkWAL(ctx, todo); err != nil {
		return err
	}
	return pause(ctx, copyPause)
}

// shardOf is the one of these shards that has a table.
func shardOf(some []pairOf, table string) int64 {
	for _, p := range some {
		if schema := p.source.schema; strings.HasPrefix(table, schema+".") || strings.HasPrefix(table, identifier(schema)+".") {
			return p.shard
		}
	}
	return some[0].shard
}

const copyingSQL = `
SELECT r.srrelid::regclass::text, format('pg_%s_sync_%s_%s', r.srsubid, r.srrelid, (pg_control_system()).system_identifier)
FROM pg_subscription AS s JOIN pg_subscription_rel AS r ON r.srsubid = s.oid AND r.srsubstate = 'f' WHERE s.subname = $1`

// brokenTime is how long a copy has to be without its slot to be broken: the slot goes in
// the transaction that says that it is not needed.
const brokenTime = 5 * time.Second

// broken says whether the copy of a table can come to no end: a crash of the target has
// taken back that it had, and its slot is gone. To go on with the move would only wait again.
func (m *Mover) broken(ctx context.Context, todo []pairOf) error {
	copying, err := m.copying(ctx)
	if err != nil {
		return err
	}
	var slots []string
	if err := m.source.conn.QueryRow(ctx, "SELECT coalesce(array_agg(slot_name::text), '{}') FROM pg_replication_slots").Scan(&slots); err != nil {
		return m.source.fault(err)
	}
	for slot := range m.slotless {
		if copying[slot] == "" {
			delete(m.slotless, slot)
		}
	}
	for slot, table := range copying {
		since, seen := m.slotless[slot]
		switch {
		case slices.Contains(slots, slot):
			delete(m.slotless, slot)
		case !seen:
			m.slotless[slot] = time.Now()
		case time.Since(since) > brokenTime:
			return &StuckError{shardOf(todo, table), fmt.Sprintf("the copy of %s is broken: its replication slot on server %s is gone, after a crash of one of the servers", table, m.source.Name), giveUp(todo)}
		}
	}
	return nil
}

// copying are the tables whose copy has come, by their slots, which are still needed.
func (m *Mover) copying(ctx context.Context) (map[string]string, error) {
	rows, err := m.target.conn.Query(ctx, copyingSQL, m.forth())
	if err != nil {
		return nil, m.target.fault(err)
	}
	all := make(map[string]string)
	var table, slot string
	_, err = pgx.ForEachRow(rows, []any{&table, &slot}, func() error { all[slot] = table; return nil })
	return all, m.target.fault(err)
}

// copiedSQL is how far the copies are that are being made, by what was done of each.
const copiedSQL = `
SELECT coalesce(sum(p.tuples_processed), 0), coalesce(sum(p.bytes_processed), 0)
FROM pg_stat_progress_copy AS p JOIN pg_subscription_rel AS r ON r.srrelid = p.relid
JOIN pg_subscription AS s ON s.oid = r.srsubid AND s.subname = $1 WHERE p.datname = current_database()`

// sizeSQL is how large the tables are that are copied, as the source estimates.
const sizeSQL = `
SELECT n.nspname || '.' || c.relname, greatest(c.reltuples, pg_stat_get_live_tuples(c.oid))::bigint, pg_table_size(c.oid)
FROM pg_publication AS p JOIN pg_publication_rel AS r ON r.prpubid = p.oid JOIN pg_class AS c ON c.oid = r.prrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE p.pubname = $1`

// completeSQL is which of them are copied.
const completeSQL = `
SELECT n.nspname || '.' || c.relname FROM pg_subscription AS s JOIN pg_subscription_rel AS r ON r.srsubid = s.oid AND r.srsubstate IN ('f', 's', 'r')
JOIN pg_class AS c ON c.oid = r.srrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE s.subname = $1`

// A size is how much there is of a table, or of several.
type size struct{ rows, bytes int64 }

// copied reports how much is copied. It returns what is there of the tables that are being copied now.
func (m *Mover) copied(ctx context.Context) (made size, err error) {
	sizes := make(map[string]size)
	var name string
	var one size
	rows, err := m.source.conn.Query(ctx, sizeSQL, m.forth())
	if err != nil {
		return made, m.source.fault(err)
	}
	p := m.progress
	p.Phase, p.Rows, p.Bytes, p.RowsTotal, p.BytesTotal = Copying, 0, 0, 0, 0
	for rows.Next() {
		if err := rows.Scan(&name, &one.rows, &one.bytes); err != nil {
			rows.Close()
			return made, m.source.fault(err)
		}
		sizes[name] = one
		p.RowsTotal += one.rows
		p.BytesTotal += one.bytes
	}
	if rows.Err() != nil {
		return made, m.source.fault(rows.Err())
	}
	rows, err = m.target.conn.Query(ctx, completeSQL, m.forth())
	if err != nil {
		return made, m.target.fault(err)
	}
	for rows.Next() {
		if err := rows.Scan(&name); err != nil {
			rows.Close()
			return made, m.target.fault(err)
		}
		p.Rows += sizes[name].rows
		p.Bytes += sizes[name].bytes
	}
	if rows.Err() != nil {
		return made, m.target.fault(rows.Err())
	}
	if err := m.target.conn.QueryRow(ctx, copiedSQL, m.forth()).Scan(&made.rows, &made.bytes); err != nil {
		return made, m.target.fault(err)
	}
	p.Rows += made.rows
	p.Bytes += made.bytes
	m.say(p)
	return made, nil
}
