package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// This file knows how long it may take to lock a shard, and what comes after that.

const (
	lockEach  = 2 * time.Millisecond  // to lock a table or sequence that nobody else has locked
	cutEach   = 10 * time.Millisecond // to fence one, and write down what it is at
	cleanTime = 30 * time.Second      // for autovacuum to give way, which keeps nobody else waiting
)

// A load is how much there is to lock, and to write down, when a shard changes over.
type load struct{ objects int }

// loadOf counts the tables and sequences of a shard.
func loadOf(ctx context.Context, c *pgx.Conn, schema string) (l load, err error) {
	err = c.QueryRow(ctx, "SELECT (SELECT count(*) FROM firn.relations($1)) + (SELECT count(*) FROM firn.sequences($1))", schema).Scan(&l.objects)
	return l, err
}

// pause is how long programs are expected to wait: a table is locked and fenced, a sequence locked and
// read; besides both servers commit, and there are a few trips.
func (l load) pause(trip time.Duration) time.Duration {
	return 20*time.Millisecond + time.Duration(l.objects)*time.Millisecond + 6*trip
}

// locking is how long it may take to lock all of it, where nobody else has a lock.
func (l load) locking() time.Duration { return time.Duration(l.objects) * lockEach }

// working is how long what follows may take.
func (l load) working() time.Duration { return cutTime + time.Duration(l.objects)*cutEach }

// limits are how long a lock and a statement may take, in this transaction.
func limits(lock, statement time.Duration) string {
	return fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = %d; ", lock.Milliseconds(), statement.Milliseconds())
}

// holdOff has autovacuum give way, which keeps no program waiting.
func holdOff(n int64) string {
	return limits(cleanTime, cleanTime) + fmt.Sprintf("SELECT firn.hold_off_autovacuum(%d); ", n)
}
