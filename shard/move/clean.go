package move

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard"
)

// Clean removes what is left of moves but old copies, and tells of each. What somebody needs again
// meanwhile stays: each is looked at once more, under the lock of its shard.
func Clean(ctx context.Context, servers []shard.Server, left []Leftover, done func(Leftover)) error {
	conns := make(map[string]*pgx.Conn)
	defer func() {
		for _, c := range conns {
			c.Close(context.WithoutCancel(ctx))
		}
	}()
	// The last row of a batch takes away what keeps its objects, and a subscription keeps its slot in use.
	ordered := slices.Clone(left)
	slices.SortStableFunc(ordered, func(a, b Leftover) int { return cmp.Compare(a.cleanOrder(), b.cleanOrder()) })
	for _, l := range ordered {
		if l.Kind == Old {
			continue
		}
		at := slices.IndexFunc(servers, func(s shard.Server) bool { return s.Name == l.Server })
		if at < 0 {
			return fmt.Errorf("shard: server %s is not named", l.Server)
		}
		c := conns[l.Server]
		if c == nil {
			var err error
			if c, err = servers[at].Connect(ctx); err != nil {
				return err
			}
			conns[l.Server] = c
		}
		if err := l.clean(ctx, servers, c); err != nil {
			return &shard.ServerError{Server: l.Server, Err: fmt.Errorf("%s %s: %w", l.Kind, l.Name, err)}
		}
		done(l)
	}
	return nil
}

func (l Leftover) cleanOrder() int {
	switch l.Kind {
	case Half:
		return 0
	case Subscription:
		return 1
	}
	return 2
}

// clean removes one thing.
func (l Leftover) clean(ctx context.Context, servers []shard.Server, c *pgx.Conn) error {
	switch l.Kind {
	case Half:
		return l.end(ctx, servers)
	case Fence:
		return l.locked(ctx, c, "open", "SELECT firn.drop_fences(s.shard, s.term, s.attempt) FROM firn.shard AS s WHERE s.shard = "+fmt.Sprint(l.Shard))
	case Mark:
		return l.locked(ctx, c, "open", fmt.Sprintf("DO $do$ BEGIN EXECUTE coalesce((SELECT format('DROP TABLE %%s', firn.mark(schema)) FROM firn.shard WHERE shard = %d AND firn.mark(schema) IS NOT NULL), ''); END $do$", l.Shard))
	case Copy:
		return l.locked(ctx, c, "moved", fmt.Sprintf("SELECT firn.drop_copy(%d)", l.Shard))
	case Record:
		return l.locked(ctx, c, "moved", "SELECT firn.forget_dropped()")
	case Slot:
		return l.dropSlot(ctx, c)
	case Subscription:
		return ifThere(ctx, c, "SELECT firn.drop_subscription(name) FROM firn.leftovers() WHERE kind = 'subscription' AND name = $1", l.Name)
	case Publication:
		return ifThere(ctx, c, "SELECT firn.drop_leftovers() FROM firn.leftovers() WHERE kind = 'publication' AND name = $1", l.Name)
	}
	return fmt.Errorf("nobody knows how to remove it")
}

func ifThere(ctx context.Context, c *pgx.Conn, sql, name string) error {
	_, err := c.Exec(ctx, sql, name)
	return err
}

// end ends a move that one server knows of: where the shard is, it stays.
func (l Leftover) end(ctx context.Context, servers []shard.Server) error {
	var ends [2]shard.Server
	for _, s := range servers {
		switch s.Name {
		case l.flight.Source:
			ends[0] = s
		case l.flight.Target:
			ends[1] = s
		}
	}
	m := New(ends[0], ends[1], nil)
	defer m.Close()
	end := m.Abort
	if l.moved {
		end = m.Finish
	}
	_, err := end(ctx, []int64{l.Shard})
	return err
}

// cleanLock is how long a table is waited for, while others wait behind.
const cleanLock = 2 * time.Second

// locked runs a statement while the row of the shard is as it was found, and in no move.
func (l Leftover) locked(ctx context.Context, c *pgx.Conn, state, sql string) error {
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL client_min_messages = error", cleanLock.Milliseconds()), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `SELECT FROM firn.shard WHERE shard = $1 AND state = $2 FOR UPDATE`, l.Shard, state)
	if err != nil {
		return err
	}
	// Whoever begins a move holds the lock of the row: now it shows.
	moves, err := tx.Exec(ctx, `SELECT FROM firn.move WHERE shard = $1`, l.Shard)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 || moves.RowsAffected() > 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// dropSlot drops a slot, and ends who reads it where that goes on.
func (l Leftover) dropSlot(ctx context.Context, c *pgx.Conn) error {
	for begun := time.Now(); ; {
		var pid *int32
		err := c.QueryRow(ctx, "SELECT active_pid FROM pg_replication_slots WHERE slot_name = $1", l.Name).Scan(&pid)
		switch {
		case err == pgx.ErrNoRows:
			return nil
		case err != nil:
			return err
		case pid == nil:
			_, err := c.Exec(ctx, "SELECT pg_drop_replication_slot($1)", l.Name)
			if sqlstate(err) != "55006" { // somebody has just come to read it
				return err
			}
		case time.Since(begun) > slotPatience:
			if _, err := c.Exec(ctx, "SELECT pg_terminate_backend($1)", *pid); err != nil {
				return err
			}
		}
		if time.Since(begun) > 4*slotPatience {
			return fmt.Errorf("it is in use")
		}
		if err := pause(ctx, copyPause); err != nil {
			return err
		}
	}
}
