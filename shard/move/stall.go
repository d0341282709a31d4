package move

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/phrase"
)

// This file notices that nothing comes of a copy any more.

// A reach is how far a copy has come. It outlives the connections that it was asked for
// with: a server that crashes again and again has come no farther by that.
type reach struct {
	states      int64 // the states of all tables, as a number that only rises
	rows, bytes int64 // that are there of the tables being copied: the source's estimates of the others rise while programs write
	log         int64 // applied, of what the copy waits for
	again       int   // how often a copy that failed has begun anew
	since       time.Time
}

// begins is how often a copy of a table may begin anew and count as one that grows: a
// server that was restarted begins anew, as does one whose disk is full, for ever.
const begins = 3

// grown is how far it is now, and since when.
func (r reach) grown(now reach, at time.Time) reach {
	now.again, now.since = r.again, r.since
	switch {
	case r.since.IsZero() || now.states > r.states:
		now.again, now.since = 0, at
	case (now.rows < r.rows || now.bytes < r.bytes) && r.again < begins:
		now.again++
	default:
		if now.rows > r.rows || now.bytes > r.bytes || now.log > r.log {
			now.since = at
		}
		now.states, now.rows, now.bytes, now.log = r.states, max(now.rows, r.rows), max(now.bytes, r.bytes), max(now.log, r.log)
	}
	return now
}

// stateOrder are the states of a table in pg_subscription_rel, and what they say.
var stateOrder = []struct{ state, text string }{
	{"i", "not begun"},
	{"d", "being copied"},
	{"f", "copied, and not caught up"},
	{"s", "caught up"},
	{"r", "ready"},
}

const statesSQL = `
SELECT r.srsubstate::text, count(*), min(r.srrelid::regclass::text) FROM pg_subscription AS s JOIN pg_subscription_rel AS r ON r.srsubid = s.oid
WHERE s.subname = $1 GROUP BY 1`

// A tally is how many tables of a copy are in a state, and one of them.
type tally struct {
	tables int64
	one    string
}

// tallies are those of the copy, by state.
func (m *Mover) tallies(ctx context.Context) (map[string]tally, error) {
	rows, err := m.target.conn.Query(ctx, statesSQL, m.forth())
	if err != nil {
		return nil, m.target.fault(err)
	}
	all := make(map[string]tally)
	var state string
	var t tally
	_, err = pgx.ForEachRow(rows, []any{&state, &t.tables, &t.one}, func() error { all[state] = t; return nil })
	return all, m.target.fault(err)
}

// stalled gives up a copy of which nothing has come for too long: its slots wait for
// transactions, or what receives it fails again and again. Made is what is there of the tables that are being copied.
func (m *Mover) stalled(ctx context.Context, made size) error {
	tables, err := m.tallies(ctx)
	if err != nil {
		return err
	}
	now := reach{rows: made.rows, bytes: made.bytes}
	for order, s := range stateOrder {
		now.states += int64(order) * tables[s.state].tables
	}
	// What is copied waits until its own stream, and then that of all, has brought it up to
	// date. While another table is copied, the stream of all goes on also where that fails.
	copying, err := m.copying(ctx)
	if err != nil {
		return err
	}
	slots := slices.Collect(maps.Keys(copying))
	if tables["i"].tables+tables["d"].tables == 0 {
		slots = append(slots, m.forth())
	}
	if err := m.source.conn.QueryRow(ctx, "SELECT coalesce(sum(confirmed_flush_lsn - '0/0'), 0)::bigint FROM pg_replication_slots WHERE slot_name = ANY ($1)", slots).Scan(&now.log); err != nil {
		return m.source.fault(err)
	}
	if m.progress.Unapplied, err = m.behind(ctx, m.source, m.forth()); err != nil {
		return err
	}
	m.far = m.far.grown(now, time.Now())
	waited := time.Since(m.far.since)
	if waited <= m.options.Stall {
		return nil
	}
	m.far = reach{} // who goes on begins to wait anew
	return m.gaveUpCopy(ctx, tables, waited)
}

// gaveUpCopy says why nothing comes of a copy, as far as the servers show it.
func (m *Mover) gaveUpCopy(ctx context.Context, tables map[string]tally, waited time.Duration) error {
	var making bool
	if err := m.source.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name ~ '^pg_[0-9]+_sync_' AND confirmed_flush_lsn IS NULL)").Scan(&making); err != nil {
		return m.source.fault(err)
	}
	if making {
		found, err := m.source.writing(ctx, time.Now().Add(-waited))
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return m.source.fault(&HoldersError{Shard: -1, Waited: waited, Holders: found})
		}
	}
	e := &StalledError{Subscription: m.forth(), Waited: waited}
	for _, s := range stateOrder {
		if t := tables[s.state]; t.tables > 0 {
			e.Tables = append(e.Tables, fmt.Sprintf("%d %s (%s)", t.tables, s.text, t.one))
		}
	}
	// Where there is no such view, which is before PostgreSQL 15, nothing is said of it.
	m.target.conn.QueryRow(ctx, "SELECT apply_error_count + sync_error_count FROM pg_stat_subscription_stats WHERE subname = $1", m.forth()).Scan(&e.Failed)
	return m.target.fault(e)
}

// A StalledError says that a copy has made no progress for Options.Stall.
type StalledError struct {
	Subscription string
	Waited       time.Duration
	Tables       []string // how many are in which state
	Failed       int64    // how often what receives them has failed
}

func (e *StalledError) Error() string {
	failed := ""
	if e.Failed > 0 {
		failed = ", and has failed " + phrase.Plural(int(e.Failed), "time")
	}
	return fmt.Sprintf("the copy has come no farther for %s: of the tables of subscription %s are %s%s; this server's log says why (a full disk, a conflict, a function that is not found)",
		e.Waited.Round(time.Second), e.Subscription, strings.Join(e.Tables, ", "), failed)
}

// behind is how much of its log a server keeps for a stream, in bytes.
func (m *Mover) behind(ctx context.Context, e *end, stream string) (bytes int64, err error) {
	err = e.conn.QueryRow(ctx, "SELECT coalesce((SELECT greatest(pg_current_wal_lsn() - confirmed_flush_lsn, 0) FROM pg_replication_slots WHERE slot_name = $1), 0)::bigint", stream).Scan(&bytes)
	return bytes, e.fault(err)
}

// A WALError says that the source keeps more WAL for a move than Options.MaxWAL.
type WALError struct {
	Shards         []int64
	Source, Target string
	Kept, Most     int64 // bytes
}

func (e *WALError) Error() string {
	return fmt.Sprintf("server %s keeps %s of WAL for the move of shard %s to %s, more than %s: the mover gives up, and PostgreSQL continues the copy",
		e.Source, phrase.Bytes(e.Kept), phrase.Numbers(e.Shards), e.Target, phrase.Bytes(e.Most))
}

// checkWAL gives up a copy for which the source keeps more WAL than it may.
func (m *Mover) checkWAL(ctx context.Context, todo []pairOf) error {
	if m.options.MaxWAL <= 0 {
		return nil
	}
	e := &WALError{Shards: numbers(todo), Source: m.source.Name, Target: m.target.Name, Most: m.options.MaxWAL}
	if err := m.source.conn.QueryRow(ctx, "SELECT coalesce((SELECT greatest(pg_current_wal_lsn() - restart_lsn, 0) FROM pg_replication_slots WHERE slot_name = $1), 0)::bigint", m.forth()).Scan(&e.Kept); err != nil {
		return m.source.fault(err)
	}
	if e.Kept > e.Most {
		return e
	}
	return nil
}
