package setup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/internal/atonce"
)

// A function is swapped in one transaction, which
//
//  1. locks the tables that its ids are in against writes,
//  2. locks the sequence that it draws from, and ends it,
//  3. makes the shard, or a further generator of it, above all ids and a second above the clock.
//
// Who has drawn in a transaction holds a lock on the sequence until that ends. So at
// 2 nobody is left who has drawn and goes on; and nobody draws from the old function
// after it, as the sequence has no number left, whatever a session has cached and
// however long it slept inside of the function. What the old function gave is at most
// as late as the clock, or in a table; both are below the new generator.
//
// No insert fails: at 1 it waits, and an insert looks for the default of a column
// after it has its lock on the table. Who calls the function outside of an insert
// and is caught in it at 2 gets one error, of a sequence that has reached its end.
//
// Who has drawn and writes to a table later, in the same transaction, waits at 1 for
// us while we wait at 2. So we wait for less time than it takes PostgreSQL to call that
// a deadlock, give everything back, and try again.
const (
	tableWait    = 300 * time.Millisecond
	sequenceWait = 50 * time.Millisecond
	pause        = 50 * time.Millisecond // between tries, and as much again by chance
	idleTime     = 5 * time.Second       // how long tables stay locked by a process that was cut off
)

// A BusyError says that a schema was in use for too long to be adopted.
type BusyError struct {
	Server, Schema string
	Waited         time.Duration
	Holders        string // who holds what, as far as it shows
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("shard: server %s: %s was in use for %s%s", e.Server, e.Schema, e.Waited, e.Holders)
}

// Run adopts the schemas, one after the other on each server, and counts the shards that are done. A schema
// that is in use for as long as patience stays as it is. After an error so do the other schemas of that
// server.
func (a *Adoption) Run(ctx context.Context, patience time.Duration, done *atomic.Int64) error {
	for i := range a.Plan.Servers {
		s := &a.Plan.Servers[i]
		for _, one := range a.of(s.Server.Name).Schemas {
			for _, role := range one.Grantees {
				if !slices.Contains(s.drawers, role) && !slices.Contains(a.Plan.Roles, role) {
					s.drawers = append(s.drawers, role)
				}
			}
		}
	}
	if err := a.Plan.joinAll(ctx); err != nil {
		return err
	}
	if err := atonce.Each(a.Plan.Servers, func(_ int, s ServerPlan) error { return a.server(ctx, s, patience, done) }); err != nil {
		return err
	}
	return a.Plan.finishAll(ctx, done)
}

func (a *Adoption) of(server string) AdoptedServer {
	i := slices.IndexFunc(a.Servers, func(s AdoptedServer) bool { return s.Server == server })
	return a.Servers[i]
}

// server takes over the schemas of a server.
func (a *Adoption) server(ctx context.Context, s ServerPlan, patience time.Duration, done *atomic.Int64) error {
	c, err := s.Server.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	var busy []error
	for _, one := range a.of(s.Server.Name).Schemas {
		w := swap{a.Plan, c, one}
		err := w.run(ctx, s.Server.Name, patience)
		var in *BusyError
		switch {
		case errors.As(err, &in):
			busy = append(busy, err)
		case err != nil:
			return errors.Join(append(busy, &ShardError{s.Server.Name, one.Shard, because(ctx, err)})...)
		default:
			done.Add(1)
		}
	}
	return errors.Join(busy...)
}

// A swap is one function that becomes a generator of firn.
type swap struct {
	plan   *Plan
	c      *pgx.Conn
	schema AdoptedSchema
}

// run tries until the schema is not in use for a moment. Columns without an index are
// read before anybody waits for it: what comes into them later is of the old function,
// and at most as late as the clock.
func (w *swap) run(ctx context.Context, server string, patience time.Duration) error {
	slow, err := w.highest(ctx, w.c, func(c Column) bool { return !c.Indexed })
	if err != nil {
		return err
	}
	for begun := time.Now(); ; {
		err := w.try(ctx, slow)
		if !isBusy(err) {
			return err
		}
		if time.Since(begun) > patience {
			return &BusyError{server, w.schema.Schema, patience, w.holders(ctx)}
		}
		select {
		case <-time.After(pause + rand.N(pause)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// isBusy reports whether somebody held what was needed: a lock, for too long.
func isBusy(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == "55P03" || refused.Code == "57014" || refused.Code == "40P01")
}

// try takes the schema over, unless somebody is in the way. The new generator is above
// the id that is given and all in columns with an index.
func (w *swap) try(ctx context.Context, id firn.ID) error {
	tx, err := w.c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if _, err := tx.Exec(ctx, install.Working+fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", idleTime.Milliseconds()), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	if err := w.lock(ctx, tx); err != nil {
		return err
	}
	quick, err := w.highest(ctx, tx, func(c Column) bool { return c.Indexed })
	if err != nil {
		return err
	}
	state, err := w.above(max(id, quick))
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, w.sql(state), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// A rowQuerier is a connection or a transaction.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// highest is the highest id in some columns.
func (w *swap) highest(ctx context.Context, q rowQuerier, some func(Column) bool) (highest firn.ID, err error) {
	for _, col := range w.schema.Columns {
		if !some(col) {
			continue
		}
		var id int64
		if err := q.QueryRow(ctx, "SELECT coalesce(max("+col.Name+"), 0) FROM "+col.Table).Scan(&id); err != nil {
			return 0, fmt.Errorf("%s of %s: %w", col.Name, col.Table, err)
		}
		if !col.Default && w.foreign(firn.ID(id)) {
			continue
		}
		highest = max(highest, firn.ID(id))
	}
	return highest, nil
}

// farAhead is how far ahead of the clock an id may be that the function gave.
const farAhead = 24 * time.Hour

// foreign reports whether an id in a column that is only called id is from elsewhere:
// no clock was ever so far ahead.
func (w *swap) foreign(id firn.ID) bool {
	parts, err := w.plan.Layout.Decode(id)
	return id > 0 && (err != nil || time.Until(parts.Time) > farAhead)
}

// above is the state from which all ids are above one: that of the tick after it.
func (w *swap) above(id firn.ID) (state int64, err error) {
	if id <= 0 {
		return 0, nil
	}
	parts, err := w.plan.Layout.Decode(id)
	if err != nil || w.foreign(id) {
		return 0, fmt.Errorf("the id %d is more than %s ahead of the clock: it is not of this layout, and nothing can be above it", id, farAhead)
	}
	for f := range w.plan.Layout.Fields() {
		if f.Name == "seq" {
			state = (int64(parts.Tick) + 1) << f.Width
		}
	}
	return state, nil
}

// lock locks the tables, and then the sequence, for less time than a deadlock takes.
func (w *swap) lock(ctx context.Context, tx pgx.Tx) error {
	var tables []string
	for _, col := range w.schema.Columns {
		if !slices.Contains(tables, col.Table) {
			tables = append(tables, col.Table)
		}
	}
	if len(tables) > 0 {
		sql := fmt.Sprintf("SET LOCAL statement_timeout = %d; LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE", tableWait.Milliseconds(), strings.Join(tables, ", "))
		if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	// It has to be changed for the lock; this is what most have anyway.
	sql := fmt.Sprintf("SET LOCAL statement_timeout = %d; ALTER SEQUENCE %s NO CYCLE; SET LOCAL statement_timeout = 0", sequenceWait.Milliseconds(), w.schema.Sequence)
	_, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return err
}

// sql ends the sequence and makes the shard.
func (w *swap) sql(state int64) string {
	one := w.schema
	var b strings.Builder
	b.WriteString(quiet)
	fmt.Fprintf(&b, `DO $do$
DECLARE
	last bigint := (SELECT greatest(s.last_value, p.seqmin + 1) FROM %[1]s AS s, pg_catalog.pg_sequence AS p WHERE p.seqrelid = %[2]s::regclass);
BEGIN
	EXECUTE pg_catalog.format('ALTER SEQUENCE %[1]s MAXVALUE %%s NO CYCLE', last);
	PERFORM pg_catalog.setval(%[2]s::regclass, last);
END $do$;
`, one.Sequence, literal(one.Sequence))
	fmt.Fprintf(&b, generate, one.Shard, literal(one.Schema), literal(one.Function), state)
	for _, role := range w.plan.Roles {
		fmt.Fprintf(&b, "SELECT firn.grant_shard(%d, %s);\n", one.Shard, literal(role))
	}
	for _, role := range one.Grantees {
		if role != "public" {
			role = identifier(role)
		}
		fmt.Fprintf(&b, "GRANT USAGE ON SEQUENCE %s TO %s;\nGRANT SELECT ON SEQUENCE %s TO %s;\n",
			pgx.Identifier{one.Schema, one.Function + "_counter"}.Sanitize(), role, pgx.Identifier{one.Schema, one.Function + "_offset"}.Sanitize(), role)
	}
	return b.String()
}

// generate makes a shard and opens it above a state. Of a shard that is there it makes a further generator, and
// leaves the others as they are; a shard that moves is refused, since the other copy would not get it.
const generate = `DO $do$
DECLARE
	s firn.shard;
BEGIN
	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = %[1]d FOR UPDATE;
	IF s.shard IS NULL THEN
		PERFORM firn.create_shard(%[1]d, %[2]s, %[3]s), firn.open(%[1]d, %[4]d);
		RETURN;
	END IF;
	PERFORM firn.check_here(s);
	IF EXISTS (SELECT FROM firn.move AS m WHERE m.shard = %[1]d) THEN
		RAISE EXCEPTION 'firn: the move of shard %[1]d is not finished' USING HINT = 'firn shard status says how it ends';
	END IF;
	PERFORM firn.create_shard(%[1]d, %[2]s, %[3]s);
	PERFORM firn.start(g, %[4]d) FROM firn.generator AS g WHERE g.shard = %[1]d AND g.name = %[3]s;
END $do$;
`

// holders is who holds locks on the tables and the sequence, as far as it shows.
func (w *swap) holders(ctx context.Context) string {
	relations := []string{w.schema.Sequence}
	for _, col := range w.schema.Columns {
		relations = append(relations, col.Table)
	}
	rows, err := w.c.Query(ctx, `
SELECT DISTINCT format('pid %s, %s, in a transaction since %s UTC', a.pid, coalesce(a.usename, ''), to_char(a.xact_start AT TIME ZONE 'UTC', 'HH24:MI:SS'))
FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.granted AND l.mode <> 'AccessShareLock' AND l.relation = ANY (SELECT to_regclass(r) FROM unnest($1::text[]) AS r)
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND a.pid <> pg_backend_pid() LIMIT 5`, relations)
	if err != nil {
		return ""
	}
	who, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(who) == 0 {
		return ""
	}
	return ": " + strings.Join(who, "; ")
}
