package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/shard"
)

// forth and back are the names of the batch's streams: of publication, slot and
// subscription.
func (m *Mover) forth() string { return "firn_move_" + m.batch }
func (m *Mover) back() string  { return "firn_back_" + m.batch }

// speak makes the publication of a server, of all that the batch has there.
func (m *Mover) speak(ctx context.Context, e *end) error {
	return e.call(ctx, "SELECT firn.speak($1)", m.batch)
}

// keep makes a slot, from which on a server keeps what it sends. It waits for all
// transactions of the server that have written, as the copy of each table does. It cannot
// be made under the lock of a row, so what somebody makes whose batch has ended meanwhile
// is a leftover.
func (m *Mover) keep(ctx context.Context, e *end, name string) error {
	begun := time.Now()
	err := e.call(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d; SELECT pg_create_logical_replication_slot(%s, 'pgoutput') WHERE EXISTS (SELECT FROM firn.move WHERE batch = %s)",
		m.options.LockWait.Milliseconds(), literal(name), literal(m.batch)))
	switch sqlstate(err) {
	case "42710": // somebody else was faster, or a mover was that is no more
		return m.kept(ctx, e, name, begun)
	case "57014":
		return e.held(ctx, begun)
	}
	return err
}

// kept waits for a slot that another session makes: until then it keeps nothing.
func (m *Mover) kept(ctx context.Context, e *end, name string, begun time.Time) error {
	for {
		var made bool
		if err := e.conn.QueryRow(ctx, "SELECT coalesce((SELECT confirmed_flush_lsn IS NOT NULL FROM pg_replication_slots WHERE slot_name = $1), true)", name).Scan(&made); err != nil {
			return e.fault(err)
		}
		if made { // or there is none any more
			return nil
		}
		if time.Since(begun) > m.options.LockWait {
			return e.held(ctx, begun)
		}
		if err := pause(ctx, copyPause); err != nil {
			return err
		}
	}
}

// held says who keeps a slot from being made.
func (e *end) held(ctx context.Context, begun time.Time) error {
	found, err := e.writing(ctx, begun)
	return errors.Join(err, e.fault(&HoldersError{Shard: -1, Waited: time.Since(begun), Holders: found}))
}

const writingSQL = `
SELECT pid, coalesce(usename::text, ''), application_name, coalesce(host(client_addr), ''), left(regexp_replace(query, '\s+', ' ', 'g'), 120),
	extract(epoch FROM clock_timestamp() - xact_start)::float8
FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - $1 * interval '1 second' ORDER BY xact_start`

// writing are the transactions of a server that had written something at an instant.
func (e *end) writing(ctx context.Context, at time.Time) ([]Holder, error) {
	rows, err := e.conn.Query(ctx, writingSQL, time.Since(at).Seconds())
	if err != nil {
		return nil, e.fault(err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Holder, err error) {
		var age float64
		err = row.Scan(&h.PID, &h.User, &h.Application, &h.Client, &h.Query, &age)
		h.Age = time.Duration(age * float64(time.Second))
		return h, err
	})
}

// listen has a server subscribe to the other one. The other one's address, which may have a
// password, goes with what begins a session: servers log that no more than they log
// passwords.
func (m *Mover) listen(ctx context.Context, e, other *end, tables int64) error {
	config := e.Config.Copy()
	config.RuntimeParams["firn.address"] = m.reached(other)
	c, err := (&end{Server: shard.Server{Name: e.Name, Config: config}}).open(ctx)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	_, err = c.Exec(ctx, "SELECT firn.listen($1, $2)", m.batch, tables)
	switch code := sqlstate(err); {
	case code == "42710":
		return nil
	case strings.HasPrefix(code, "08") && other.conn != nil && other.conn.Ping(ctx) == nil:
		return &UnreachedError{e.Name, other.Name, err}
	}
	return e.fault(err)
}

// An UnreachedError says that one server does not reach the other one, though this
// process does: its address for it is wrong, or something in between refuses it.
type UnreachedError struct {
	Server, Other string
	Err           error // what Server said
}

func (e *UnreachedError) Error() string {
	return fmt.Sprintf("server %s does not reach server %s: %s", e.Server, e.Other, strings.Join(strings.Fields(e.Err.Error()), " "))
}

// hear has a subscription work.
func (m *Mover) hear(ctx context.Context, e *end) error {
	return e.call(ctx, "SELECT firn.hear($1)", m.batch)
}

// copyPause is between two looks at a copy that grows.
const copyPause = 200 * time.Millisecond

// wait waits for the copy of these shards a while, and says how far it is.
func (m *Mover) wait(ctx context.Context, todo []pairOf) error {
	if err := m.copied(ctx); err != nil {
		return err
	}
	if err := m.broken(ctx, todo); err != nil {
		return err
	}
	if err := m.stalled(ctx); err != nil {
		return err
	}
	return pause(ctx, copyPause)
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
			return &StuckError{todo[0].shard, fmt.Sprintf("a crash of server %s broke the copy of %s", m.target.Name, table), giveUp(todo)}
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

// copied reports how much is copied.
func (m *Mover) copied(ctx context.Context) error {
	type size struct{ rows, bytes int64 }
	sizes := make(map[string]size)
	var name string
	var one size
	rows, err := m.source.conn.Query(ctx, sizeSQL, m.forth())
	if err != nil {
		return m.source.fault(err)
	}
	p := m.progress
	p.Phase, p.Rows, p.Bytes, p.RowsTotal, p.BytesTotal = Copying, 0, 0, 0, 0
	for rows.Next() {
		if err := rows.Scan(&name, &one.rows, &one.bytes); err != nil {
			rows.Close()
			return m.source.fault(err)
		}
		sizes[name] = one
		p.RowsTotal += one.rows
		p.BytesTotal += one.bytes
	}
	if rows.Err() != nil {
		return m.source.fault(rows.Err())
	}
	rows, err = m.target.conn.Query(ctx, completeSQL, m.forth())
	if err != nil {
		return m.target.fault(err)
	}
	for rows.Next() {
		if err := rows.Scan(&name); err != nil {
			rows.Close()
			return m.target.fault(err)
		}
		p.Rows += sizes[name].rows
		p.Bytes += sizes[name].bytes
	}
	if rows.Err() != nil {
		return m.target.fault(rows.Err())
	}
	if err := m.target.conn.QueryRow(ctx, copiedSQL, m.forth()).Scan(&one.rows, &one.bytes); err != nil {
		return m.target.fault(err)
	}
	p.Rows += one.rows
	p.Bytes += one.bytes
	m.say(p)
	return nil
}

// sqlstate is the code of a server's error, or nothing.
func sqlstate(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// lag is how far the copy is behind: how long a row takes to come there that says nothing.
func (m *Mover) lag(ctx context.Context, g goal, schema string, limit time.Duration) (time.Duration, error) {
	from, to := m.ends(g)
	mark := identifier(schema) + ".firn_mark"
	probe := newWord()
	if err := from.call(ctx, fmt.Sprintf("INSERT INTO %s (term, attempt) VALUES (0, $1) ON CONFLICT (term) DO UPDATE SET attempt = excluded.attempt", mark), probe); err != nil {
		return 0, err
	}
	for begun := time.Now(); ; {
		var there bool
		if err := to.conn.QueryRow(ctx, fmt.Sprintf("SELECT EXISTS (SELECT FROM %s WHERE term = 0 AND attempt = $1)", mark), probe).Scan(&there); err != nil {
			return 0, to.fault(err)
		}
		if took := time.Since(begun); there || took > limit {
			return took, nil
		}
		if err := pause(ctx, markPause); err != nil {
			return 0, err
		}
	}
}
