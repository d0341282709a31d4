package move

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard"
)

// A Plan is what a move would do, and what speaks against it. Making one changes
// nothing.
type Plan struct {
	Source, Target string
	Shards         []ShardPlan
	Refusals       []Refusal
	Notes          []Refusal     // what only a person can judge
	WALRate        float64       // of the source, in bytes a second
	Free           int64         // of the target's disk, in bytes; -1: not known
	Pause          time.Duration // for which a shard is likely to take no writes
}

// A ShardPlan is a shard that is to move.
type ShardPlan struct {
	Shard   int64
	Schema  string
	Tables  int64
	Rows    int64 // as the server estimates
	Bytes   int64
	Holders []Holder // transactions that would have to end before the cutover now
}

// Bytes is the size of all shards.
func (p *Plan) Bytes() (n int64) {
	for _, s := range p.Shards {
		n += s.Bytes
	}
	return n
}

// Err is a [*RefusedError] where something speaks against the move.
func (p *Plan) Err() error {
	if len(p.Refusals) == 0 {
		return nil
	}
	return &RefusedError{p.Refusals}
}

// NewPlan looks at two servers and the shards that are to move from one to the other. A
// server that is restarted meanwhile is waited for as by a move.
// Of a move that goes on with what is there already, only what it still needs is said.
// Options are those of the move.
func NewPlan(ctx context.Context, source, target shard.Server, shards []int64, goesOn bool, o *Options) (p *Plan, err error) {
	err = patiently(ctx, defaultPatience, func() (err error) {
		p, err = planOnce(ctx, source, target, shards, goesOn, o.orDefault())
		return err
	})
	return p, err
}

func planOnce(ctx context.Context, source, target shard.Server, shards []int64, goesOn bool, o Options) (*Plan, error) {
	l := &planner{Plan: Plan{Source: source.Name, Target: target.Name}, goesOn: goesOn, options: o}
	for i, s := range []shard.Server{source, target} {
		c, err := s.Connect(ctx)
		if err != nil {
			return nil, err
		}
		defer c.Close(context.WithoutCancel(ctx))
		p, err := stand(ctx, s.Name, c)
		if err != nil {
			return nil, &shard.ServerError{Server: s.Name, Err: err}
		}
		[]*standing{&l.source, &l.target}[i].conn = c
		[]*standing{&l.source, &l.target}[i].post = p
	}
	if err := l.look(ctx, shards); err != nil {
		return nil, err
	}
	return &l.Plan, nil
}

// A planner makes a plan.
type planner struct {
	Plan
	goesOn         bool
	options        Options
	source, target standing
	trip           time.Duration // to a server and back, the slower of the two
}

type standing struct {
	*post
	conn *pgx.Conn
}

func (l *planner) look(ctx context.Context, shards []int64) error {
	if l.source.View.Cluster != l.target.View.Cluster || l.source.View.Cluster == "" {
		return fmt.Errorf("shard: servers %s and %s are not of one cluster", l.Source, l.Target)
	}
	code, err := shard.Code(l.source.Layout)
	if err != nil {
		return err
	}
	if l.source.Code == code { // else there may be nothing to ask with
		for _, n := range shards {
			if err := l.shard(ctx, n); err != nil {
				return &shard.ServerError{Server: l.Source, Err: err}
			}
		}
	}
	if l.source.Code == code && l.target.Code == code {
		if err := l.secrets(ctx); err != nil {
			return err
		}
	}
	if err := l.readers(ctx); err != nil {
		return err
	}
	var schemas []string
	for _, s := range l.Shards {
		schemas = append(schemas, s.Schema)
	}
	roles, err := names(ctx, l.source.conn, rolesSQL, schemas)
	if err != nil {
		return &shard.ServerError{Server: l.Source, Err: err}
	}
	extensions, err := names(ctx, l.source.conn, extensionsSQL, schemas)
	if err != nil {
		return &shard.ServerError{Server: l.Source, Err: err}
	}
	var from, to needs
	bytes := l.Bytes()
	if l.goesOn {
		bytes = 0
	} else {
		// Each table's first copy has a slot, a sender, a worker and an origin of its own.
		sync := l.target.syncWorkers
		from = needs{slots: 1 + sync, origins: 1, senders: 1 + sync, workers: 1}
		to = needs{slots: 1, origins: 1 + sync, senders: 1, workers: 1 + sync}
	}
	l.Refusals = slices.Concat(l.source.onServer(from, code), l.target.onServer(to, code), l.source.between(l.target.post, bytes, roles, extensions), l.Refusals)
	l.Free = l.target.disk
	return l.measure(ctx)
}

// secrets says which server would record a password with which it reaches the other one.
func (l *planner) secrets(ctx context.Context) error {
	for _, s := range [][2]*standing{{&l.source, &l.target}, {&l.target, &l.source}} {
		e, other := s[0], s[1]
		if !hasPassword(reached(l.options, other.server, other.conn.Config())) {
			continue
		}
		rows, err := e.conn.Query(ctx, "SELECT setting, value FROM firn.password_leaks()")
		if err != nil {
			return &shard.ServerError{Server: e.server, Err: err}
		}
		var setting, value string
		_, err = pgx.ForEachRow(rows, []any{&setting, &value}, func() error {
			l.Refusals = append(l.Refusals, Refusal{
				e.server, -1, fmt.Sprintf("it would record the password of %s: %s = %s, which %s may not change", other.server, setting, value, e.user),
				fmt.Sprintf("GRANT SET ON PARAMETER %s TO %s, from PostgreSQL 15 on; or set it otherwise", setting, identifier(e.user)),
			})
			return nil
		})
		if err != nil {
			return &shard.ServerError{Server: e.server, Err: err}
		}
	}
	return nil
}

// shard adds one shard to the plan.
func (l *planner) shard(ctx context.Context, n int64) error {
	refuse := func(server, do, format string, args ...any) {
		l.Refusals = append(l.Refusals, Refusal{server, n, fmt.Sprintf(format, args...), do})
	}
	i := slices.IndexFunc(l.source.Shards, func(r shard.Row) bool { return r.Shard == n })
	switch {
	case i < 0:
		refuse(l.Source, "firn shards where "+strconv.FormatInt(n, 10), "it is not there")
		return nil
	case l.source.Shards[i].State == shard.StateMoved:
		refuse(l.Source, "", "it has moved to %s", l.source.Shards[i].MovedTo)
		return nil
	case l.source.Shards[i].State != shard.StateOpen || !l.source.Shards[i].Here:
		refuse(l.Source, "firn shards reopen "+l.Source, "it is not open there")
		return nil
	}
	s := ShardPlan{Shard: n, Schema: l.source.Shards[i].Schema}
	err := l.source.conn.QueryRow(ctx, `SELECT count(*), coalesce(sum(greatest(c.reltuples, pg_stat_get_live_tuples(c.oid))), 0)::bigint, coalesce(sum(pg_total_relation_size(r.relation)), 0)::bigint
		FROM firn.relations($1) AS r JOIN pg_class AS c ON c.oid = r.relation WHERE r.rows`, s.Schema).Scan(&s.Tables, &s.Rows, &s.Bytes)
	if err != nil {
		return err
	}
	if s.Holders, err = holders(ctx, l.source.conn, s.Schema, lockPatience); err != nil {
		return err
	}
	l.Shards = append(l.Shards, s)
	found, err := refusals(ctx, l.source.conn, l.Source, n, s.Schema)
	if err != nil {
		return err
	}
	l.Refusals = append(l.Refusals, found...)
	found, notes, err := outsiders(ctx, l.source.conn, leaving{l.Source, l.Target, n, s.Schema}, l.options.Consumers)
	if err != nil {
		return err
	}
	l.Refusals, l.Notes = append(l.Refusals, found...), append(l.Notes, notes...)
	if l.goesOn {
		return nil
	}
	for _, p := range []*post{l.source.post, l.target.post} {
		if batch := p.moves[n]; batch != "" {
			refuse(p.server, "to see what to do: firn shards status", "another move of it is under way, %s", batch)
		}
	}
	j := slices.IndexFunc(l.target.Shards, func(r shard.Row) bool { return r.Shard == n })
	if j >= 0 && l.target.Shards[j].State != shard.StateMoved {
		refuse(l.Target, "firn shards doctor", "it is %s there too", l.target.Shards[j].State)
	} else if slices.Contains(l.target.schemas, s.Schema) {
		text, do, _, err := inWay(ctx, l.target.conn, l.Target, n, s.Schema)
		if err != nil {
			return &shard.ServerError{Server: l.Target, Err: err}
		}
		refuse(l.Target, do, "%s", text)
	}
	return nil
}

const (
	// lockPatience is how old a transaction may be that a cutover waits for.
	lockPatience = 30 * time.Millisecond
	// sample is for how long the rate of the WAL is measured.
	sample = 500 * time.Millisecond
)

// measure takes the rate at which the source writes, and estimates the pause, of a move
// that can begin.
func (l *planner) measure(ctx context.Context) error {
	var from, to int64
	const position = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
	for _, s := range []standing{l.target, l.source} {
		begun := time.Now()
		if err := s.conn.QueryRow(ctx, position).Scan(&from); err != nil {
			return &shard.ServerError{Server: s.server, Err: err}
		}
		l.trip = max(l.trip, time.Since(begun))
	}
	if len(l.Refusals) > 0 {
		return nil
	}
	begun := time.Now()
	if err := pause(ctx, sample); err != nil {
		return err
	}
	if err := l.source.conn.QueryRow(ctx, position).Scan(&to); err != nil {
		return &shard.ServerError{Server: l.Source, Err: err}
	}
	l.WALRate = float64(to-from) / time.Since(begun).Seconds()
	var tables int64
	for _, s := range l.Shards {
		tables = max(tables, s.Tables)
	}
	l.Pause = expected(tables, l.trip)
	return nil
}

// expected is the pause of a shard: what it takes to lock and fence a table, to commit
// on both servers, and a few trips.
func expected(tables int64, trip time.Duration) time.Duration {
	return 20*time.Millisecond + time.Duration(tables)*time.Millisecond + 6*trip
}

const postSQL = `
SELECT r.rolsuper, r.rolreplication, coalesce((SELECT pg_has_role(x.oid, 'USAGE') FROM pg_roles AS x WHERE x.rolname = 'pg_create_subscription'), false),
	has_database_privilege(current_database(), 'CREATE'), pg_has_role('pg_read_all_stats', 'USAGE'),
	r.rolname::text, current_database()::text, concat_ws(' ', pg_encoding_to_char(d.encoding), d.datcollate, d.datctype, to_jsonb(d)->>'daticulocale', to_jsonb(d)->>'datlocale'),
	current_setting('transaction_read_only')::boolean, current_setting('wal_level'), current_setting('synchronous_standby_names'),
	current_setting('max_replication_slots')::bigint, (SELECT count(*) FROM pg_replication_slots),
	coalesce(current_setting('max_active_replication_origins', true), current_setting('max_replication_slots'))::bigint, (SELECT count(*) FROM pg_replication_origin),
	current_setting('max_wal_senders')::bigint, (SELECT count(*) FROM pg_stat_replication),
	current_setting('max_logical_replication_workers')::bigint, (SELECT count(*) FROM pg_stat_subscription WHERE pid IS NOT NULL),
	current_setting('max_sync_workers_per_subscription')::bigint,
	ARRAY(SELECT gid FROM pg_prepared_xacts ORDER BY 1),
	ARRAY(SELECT p.pubname::text FROM pg_publication AS p WHERE to_jsonb(p)->>'puballsequences' = 'true' ORDER BY 1),
	ARRAY(SELECT ARRAY[g.rolname, m.rolname]::text[] FROM pg_auth_members AS a JOIN pg_roles AS g ON g.oid = a.roleid JOIN pg_roles AS m ON m.oid = a.member
		WHERE NOT a.admin_option AND NOT m.rolsuper ORDER BY 1),
	ARRAY(SELECT rolname::text FROM pg_roles), ARRAY(SELECT extname::text FROM pg_extension), ARRAY(SELECT nspname::text FROM pg_namespace)
FROM pg_roles AS r, pg_database AS d WHERE r.rolname = current_user AND d.datname = current_database()`

// stand finds out about a server.
func stand(ctx context.Context, name string, c *pgx.Conn) (*post, error) {
	p := &post{server: name, disk: -1, moves: map[int64]string{}}
	var err error
	if p.View, err = shard.Look(ctx, c); err != nil {
		return nil, err
	}
	if err := c.QueryRow(ctx, postSQL).Scan(&p.superuser, &p.replication, &p.subscribes, &p.createsInDatabase, &p.monitors,
		&p.user, &p.database, &p.locale, &p.readOnly, &p.walLevel, &p.standbys, &p.slots.most, &p.slots.used, &p.origins.most, &p.origins.used,
		&p.senders.most, &p.senders.used, &p.worker.most, &p.worker.used, &p.syncWorkers, &p.prepared, &p.allSequences,
		&p.members, &p.roles, &p.extensions, &p.schemas); err != nil {
		return nil, err
	}
	rows, err := c.Query(ctx, "SELECT shard, batch FROM firn.move")
	if err == nil {
		var n int64
		var batch string
		_, err = pgx.ForEachRow(rows, []any{&n, &batch}, func() error { p.moves[n] = batch; return nil })
	}
	if err != nil && !isMissing(err) {
		return nil, err
	}
	if p.superuser && !p.Standby {
		p.disk = diskOf(ctx, c)
	}
	return p, nil
}

// isMissing says that a table or function is not there: the server's SQL is of a firn
// that moved nothing.
func isMissing(err error) bool {
	code := sqlstate(err)
	return code == "42P01" || code == "42883"
}

// inRecovery says that a server is a standby, which does not say how far its WAL is.
func inRecovery(err error) bool { return sqlstate(err) == "55000" }

// diskOf is how much of the server's disk is free, as df says there; -1 where that
// cannot be known, as on a hosted server.
func diskOf(ctx context.Context, c *pgx.Conn) int64 {
	tx, err := c.Begin(ctx)
	if err != nil {
		return -1
	}
	defer tx.Rollback(ctx)
	var lines []string
	if _, err = tx.Exec(ctx, "CREATE TEMPORARY TABLE firn_disk (line text)"); err == nil {
		// The server runs it in its data directory.
		if _, err = tx.Exec(ctx, "COPY firn_disk FROM PROGRAM 'df -Pk .'"); err == nil {
			lines, err = names(ctx, tx, "SELECT line FROM firn_disk")
		}
	}
	if err != nil || len(lines) < 2 {
		return -1
	}
	columns := strings.Fields(lines[1])
	if len(columns) < 4 {
		return -1
	}
	kilobytes, err := strconv.ParseInt(columns[3], 10, 64)
	if err != nil {
		return -1
	}
	return kilobytes << 10
}
