package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// A Lock is held by whoever changes what firn has on a server, so that two do not
// mix. It is the lock of a transaction that lasts as long, so it holds behind a
// pooler in transaction mode too. Nothing that must be right rests on it.
type Lock struct{ conn *pgx.Conn }

// ErrLocked: somebody else changes what firn has on the server.
var ErrLocked = errors.New("another firn is at work on it")

// lockPatience is how long a lock is waited for: somebody who was killed may hold it
// until the server notices.
const (
	lockPatience = 5 * time.Second
	lockPause    = 50 * time.Millisecond
)

// Working is what a transaction that changes something under a [Lock] begins with. Who
// takes the lock next waits for it to end, though whoever began it was killed.
var Working = fmt.Sprintf("SELECT pg_catalog.pg_advisory_xact_lock_shared(%d, 1);\n", lockClass)

// TakeLock takes the lock of a server, on a connection of its own. Where somebody else keeps
// it for seconds, the error is an [ErrLocked] that says who.
func TakeLock(ctx context.Context, s topology.Server) (*Lock, error) {
	c, err := s.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := lock(ctx, c); err != nil {
		c.Close(context.WithoutCancel(ctx))
		return nil, &topology.ServerError{Server: s.Name, Err: err}
	}
	return &Lock{c}, nil
}

// beginLock begins the transaction of a lock. It keeps no snapshot, for which an index
// that is made concurrently under the lock would wait; and ends soon after its host has
// gone without a word.
const beginLock = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0; " +
	"SET LOCAL tcp_keepalives_idle = 10; SET LOCAL tcp_keepalives_interval = 5; SET LOCAL tcp_keepalives_count = 3"

func lock(ctx context.Context, c *pgx.Conn) error {
	if _, err := c.Exec(ctx, beginLock, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	for begun := time.Now(); ; {
		var got bool
		if err := c.QueryRow(ctx, fmt.Sprintf("SELECT pg_try_advisory_xact_lock(%d, 0)", lockClass)).Scan(&got); err != nil {
			return err
		}
		if got {
			return drain(ctx, c)
		}
		if time.Since(begun) > lockPatience {
			return fmt.Errorf("%w%s", ErrLocked, holder(ctx, c))
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drain waits for what was begun under the lock before.
func drain(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, fmt.Sprintf("SAVEPOINT drain; SELECT pg_advisory_xact_lock(%d, 1); ROLLBACK TO SAVEPOINT drain", lockClass), pgx.QueryExecModeSimpleProtocol)
	return err
}

// holder is who has the lock, as far as it shows.
func holder(ctx context.Context, c *pgx.Conn) string {
	var pid int
	var from, since string
	err := c.QueryRow(ctx, fmt.Sprintf(`SELECT a.pid, coalesce(host(a.client_addr), 'this host'), to_char(a.xact_start AT TIME ZONE 'UTC', 'HH24:MI:SS')
		FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.classid = %d AND l.objid = 0
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`, lockClass)).Scan(&pid, &from, &since)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", from %s since %s UTC (pid %d)", from, since, pid)
}

// Release ends the lock.
func (l *Lock) Release(ctx context.Context) { l.conn.Close(context.WithoutCancel(ctx)) }

// LockAll keeps others from changing what firn has on the servers, until release is
// called. It is for order only: what must be right is looked at again on each server. All
// take the locks in the order of the names, so that no two wait for each other.
func LockAll(ctx context.Context, servers []topology.Server) (release func(), err error) {
	var locks []*Lock
	release = func() {
		for _, l := range locks {
			l.Release(ctx)
		}
	}
	for _, s := range slices.SortedFunc(slices.Values(servers), func(a, b topology.Server) int { return cmp.Compare(a.Name, b.Name) }) {
		l, err := TakeLock(ctx, s)
		if err != nil {
			release()
			return nil, err
		}
		locks = append(locks, l)
	}
	return release, nil
}
