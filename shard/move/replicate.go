package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// forth and back are the names of the batch's streams: of publication, slot and
// subscription.
func (m *Mover) forth() string { return "firn_move_" + m.batch }

func (m *Mover) back() string { return "firn_back_" + m.batch }

// publish makes the publication of a server, of all that the batch has there.
func (m *Mover) publish(ctx context.Context, e *end) error {
	return e.call(ctx, "SELECT firn.publish($1)", m.batch)
}

// makeSlot makes a slot, from which on a server keeps what it sends. It waits for all
// transactions of the server that have written, as the copy of each table does. It cannot
// be made under the lock of a row, so what somebody makes whose batch has ended meanwhile
// is a leftover.
func (m *Mover) makeSlot(ctx context.Context, e *end, name string) error {
	begun := time.Now()
	err := e.call(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d; SELECT pg_create_logical_replication_slot(%s, 'pgoutput') WHERE EXISTS (SELECT FROM firn.move WHERE batch = %s)",
		m.options.LockWait.Milliseconds(), literal(name), literal(m.batch)))
	switch sqlstate(err) {
	case "42710": // somebody else was faster, or a mover was that is no more
		return m.awaitSlot(ctx, e, name, begun)
	case "57014":
		return e.slotHolders(ctx, begun)
	}
	return err
}

// awaitSlot waits for a slot that another session makes: until then it keeps nothing.
func (m *Mover) awaitSlot(ctx context.Context, e *end, name string, begun time.Time) error {
	for {
		var made bool
		if err := e.conn.QueryRow(ctx, "SELECT coalesce((SELECT confirmed_flush_lsn IS NOT NULL FROM pg_replication_slots WHERE slot_name = $1), true)", name).Scan(&made); err != nil {
			return e.fault(err)
		}
		if made { // or there is none any more
			return nil
		}
		if time.Since(begun) > m.options.LockWait {
			return e.slotHolders(ctx, begun)
		}
		if err := pause(ctx, copyPause); err != nil {
			return err
		}
	}
}

// slotHolders says who keeps a slot from being made.
func (e *end) slotHolders(ctx context.Context, begun time.Time) error {
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

// subscribe has a server subscribe to the other one. The other one's address, which may have a
// password, goes with what begins a session: servers log that no more than they log
// passwords.
func (m *Mover) subscribe(ctx context.Context, e, other *end, tables int64) error {
	config := e.Config.Copy()
	config.RuntimeParams["firn.address"] = m.reached(other)
	c, err := (&end{Server: topology.Server{Name: e.Name, Config: config}}).open(ctx)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	_, err = c.Exec(ctx, "SELECT firn.subscribe($1, $2)", m.batch, tables)
	switch code := sqlstate(err); {
	case code == "42710":
		return nil
	case strings.HasPrefix(code, "08") && other.conn != nil && other.conn.Ping(ctx) == nil:
		return &UnreachedError{e.Name, other.Name, err}
	}
	return e.fault(err)
}

// An UnreachedError says that one server does not reach the other one, although this process reaches both:
// Options.Addresses has to name an address, or something between the two refuses the connection.
type UnreachedError struct {
	Server, Other string
	Err           error // what Server said
}

func (e *UnreachedError) Error() string {
	return fmt.Sprintf("server %s does not reach server %s: %s", e.Server, e.Other, strings.Join(strings.Fields(e.Err.Error()), " "))
}

// enable has a subscription work.
func (m *Mover) enable(ctx context.Context, e *end) error {
	return e.call(ctx, "SELECT firn.enable_subscription($1)", m.batch)
}

// emptyPublication takes all tables out of the publication of a server, which a subscription knows
// by now: nothing is sent back that replication has written.
func (m *Mover) emptyPublication(ctx context.Context, e *end) error {
	return e.call(ctx, "SELECT firn.empty_publication($1)", m.batch)
}
