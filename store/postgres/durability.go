package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
)

const (
	// sqlPromise looks at how a commit is made durable, and at who may take the server's
	// place. One standby a line: those that are connected, with pid, sync_state and
	// application_name, and the slots of those that are not. A session in the state startup
	// or backup sends no log. A session with a temporary slot belongs to a backup or an
	// archive that ends with it; one with a logical slot belongs to a subscriber. A role
	// without pg_monitor reads NULL for state and sync_state.
	sqlPromise = `
WITH ` + sqlPlaces + `, standby AS (
	SELECT concat_ws(chr(9), r.pid, coalesce(r.sync_state, ''), coalesce(r.application_name, '')) AS line
	FROM pg_stat_replication AS r
	WHERE coalesce(r.state, '') NOT IN ('startup', 'backup')
		AND r.pid NOT IN (SELECT pid FROM pg_stat_progress_basebackup)
		AND NOT EXISTS (
			SELECT FROM pg_replication_slots AS s
			WHERE s.active_pid = r.pid AND (s.temporary OR s.slot_type = 'logical')
		)
	UNION ALL
	SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT active AND NOT temporary
)
SELECT pg_is_in_recovery(), current_setting('server_version'), quote_ident(current_user),
	current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
	current_setting('synchronous_standby_names'),
	to_regclass('firn_records') IS NOT NULL,
	coalesce((SELECT relpersistence = 'p' AND relkind = 'r' FROM pg_class WHERE oid = to_regclass('firn_records')), true),
	coalesce((SELECT string_agg(line, chr(10)) FROM standby), ''),
	CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,
	(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
	(SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
	coalesce(to_regclass('firn_records')::oid::bigint, 0), ` + sqlHidden + `,
	current_setting('search_path'), ` + sqlSeveral

	sqlSystem = `SELECT system_identifier::text FROM pg_control_system()`
)

// A look is what can be seen of how a server keeps what it acknowledges.
type look struct {
	standby              bool
	version, role        string
	fsync, pages, commit string
	names                string // synchronous_standby_names
	table, logged        bool
	others               []other
	timeline             string
	started              int64
	database, records    int64 // oids; of firn_records 0 where it is missing
	system               string
	hides                string // the schema that hides a table from this role
	path                 string // search_path
	several              string // the schemas of it that have a table, if there are several
}

// Durability implements [store.Store]. The store is durable if
//
//   - a commit is on the server's disk when it is acknowledged: fsync and
//     full_page_writes are on, synchronous_commit is not off, for the connection
//     that asks, and firn_records is a plain table, neither unlogged nor temporary; and
//   - a commit waits for every standby: there is none, and synchronous_standby_names is
//     empty; or synchronous_standby_names is set, synchronous_commit is on or remote_apply,
//     each connected standby is sync or quorum, and those that are connected and those that
//     have a slot are together no more than a commit waits for. A role without pg_monitor
//     does not see sync and quorum: it goes by the standby's name in synchronous_standby_names.
//
// A backup connects as a standby does for a moment, so a standby counts only when it is
// there in several looks within 300 ms, or 3 s where the role does not see more than the
// name of pg_basebackup. How a failover chooses, and copies of the server's disk, cannot be seen; nor that
// an administrator ends a commit's wait for a standby (pg_cancel_backend), which the
// server answers as a success.
func (s *Store) Durability(ctx context.Context) (store.Durability, error) {
	if err := ctx.Err(); err != nil {
		return store.Durability{}, err
	}
	l, err := s.lasting(ctx)
	if err != nil {
		return store.Durability{}, err
	}
	return l.durability(), nil
}

// look looks once. The error is of a server that is not the store, or no longer.
func (s *Store) look(ctx context.Context) (look, error) {
	l, err := s.query(ctx)
	switch {
	case err != nil:
		return l, s.table.Explain(ctx, s.db, err)
	case l.standby:
		return l, s.table.Explain(ctx, s.db, errStandby)
	case l.hides != "":
		return l, s.table.Explain(ctx, s.db, &hiddenError{l.hides})
	case l.several != "" && !s.chosen.Load(): // one that came to be later stops no process
		return l, s.table.Explain(ctx, s.db, &severalError{l.several, l.path})
	case !l.table:
		return l, s.unseen(ctx)
	}
	s.chosen.Store(true)
	return l, nil
}

// unseen says why there is no table where nobody has created one yet: nil, or what is wrong.
func (s *Store) unseen(ctx context.Context) error {
	if err := hidden(ctx, s.db); err != nil {
		return s.table.Explain(ctx, s.db, err)
	}
	if s.table.Seen() {
		return s.table.Forgotten()
	}
	return nil
}

func (s *Store) query(ctx context.Context) (l look, err error) {
	var others string
	err = s.db.QueryRowContext(ctx, sqlPromise).Scan(&l.standby, &l.version, &l.role, &l.fsync, &l.pages, &l.commit, &l.names,
		&l.table, &l.logged, &others, &l.timeline, &l.started, &l.database, &l.records, &l.hides, &l.path, &l.several)
	if err != nil {
		return l, err
	}
	l.others = parseOthers(others)
	// This one may be kept from us; the rest of the name will do then.
	err = s.db.QueryRowContext(ctx, sqlSystem).Scan(&l.system)
	if state(err) == "42501" || errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return l, err
}

func (l look) durability() store.Durability {
	seen := fmt.Sprintf("PostgreSQL %s, fsync=%s full_page_writes=%s synchronous_commit=%s, %s",
		l.version, l.fsync, l.pages, l.commit, l.company())
	p := store.Durability{Durable: true, Why: seen, Instance: l.instance(), Identity: l.identity()}
	if why := l.doubts(); len(why) > 0 {
		p.Durable, p.Why = false, seen+": "+strings.Join(why, "; ")
	}
	return p
}

// doubts are the reasons why an acknowledged write may be lost.
func (l look) doubts() (why []string) {
	if l.fsync != "on" || l.pages != "on" {
		why = append(why, "a crash of its host may damage or lose writes")
	}
	if l.commit == "off" {
		why = append(why, "a crash loses the last commits; ALTER ROLE ... SET synchronous_commit = on")
	}
	if !l.logged {
		why = append(why, "firn_records is unlogged, temporary or no plain table; ALTER TABLE firn_records SET LOGGED")
	}
	if !l.awaited() {
		why = append(why, "a standby that commits do not wait for may be promoted and lack the last ones")
	}
	return why
}

// identity names the table in its cluster. pg_upgrade changes it, since it makes a new
// cluster; so does a restored dump, since that makes a new table.
func (l look) identity() string {
	if l.system == "" || l.records == 0 {
		return ""
	}
	return fmt.Sprintf("PostgreSQL system %s, database %d, table %d", l.system, l.database, l.records)
}

// instance names the run of a server on a timeline: it is another one after a
// failover, a recovery to an earlier time, and any restart. Where commits are not
// waited for, or the table is emptied by a crash, the server may go back without
// any of these: then there is no name.
func (l look) instance() string {
	if l.commit == "off" || !l.logged {
		return ""
	}
	return fmt.Sprintf("%s/%s/%d", l.system, l.timeline, l.started)
}
