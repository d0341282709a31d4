package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// counting counts the rows of a shard on both servers as of the instant of its move,
// while it serves again. On the one that let it go that is an instant after that, and
// before the first change can come back; on the other one it is when the mark has come,
// and before anybody can write.
type counting struct {
	m            *Mover
	from, to     *end
	schema       string
	term         int64
	first, other *pgx.Conn
}

func newCounting(m *Mover, g goal, c copyOf) *counting {
	from, to := m.ends(g)
	return &counting{m: m, from: from, to: to, schema: c.schema, term: c.term}
}

// open connects, before anybody waits: to sessions that then know their way, and that
// count by themselves, not with all that a server has of CPUs.
func (c *counting) open(ctx context.Context) (err error) {
	if c.first, err = c.from.open(ctx); err != nil {
		return err
	}
	if c.other, err = c.to.open(ctx); err != nil {
		return err
	}
	for _, one := range []struct {
		*end
		*pgx.Conn
	}{{c.from, c.first}, {c.to, c.other}} {
		if _, err := one.Exec(ctx, "SET max_parallel_workers_per_gather = 0; SELECT FROM firn.relations("+literal(c.schema)+"); "+c.look()); err != nil {
			return one.fault(err)
		}
	}
	return nil
}

// look is the SQL that finds the mark.
func (c *counting) look() string {
	return fmt.Sprintf("SELECT floor FROM %s.firn_mark WHERE term = %d", identifier(c.schema), c.term)
}

func (c *counting) close() {
	for _, conn := range []*pgx.Conn{c.first, c.other} {
		if conn != nil {
			conn.Close(context.Background())
		}
	}
}

// begin fixes the two instants. It waits for the mark.
func (c *counting) begin(ctx context.Context) error {
	// It says nothing while the mark is waited for, and while the shard is opened.
	fix := fmt.Sprintf("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = %d; ", 2*takeTime.Milliseconds())
	fixed := make(chan error, 1)
	go func() {
		_, err := c.first.Exec(ctx, fix+c.look())
		fixed <- err
	}()
	err := c.mark(ctx, fix+c.look())
	if one := <-fixed; err == nil && one != nil {
		err = c.from.fault(one)
	}
	return err
}

func (c *counting) mark(ctx context.Context, look string) error {
	for {
		results, err := c.other.PgConn().Exec(ctx, look).ReadAll()
		if err != nil {
			return c.to.fault(err)
		}
		if len(results[len(results)-1].Rows) > 0 {
			return nil
		}
		if err := pause(ctx, markPause); err != nil {
			return c.to.fault(fmt.Errorf("the mark of schema %s has not come: %w", c.schema, err))
		}
		if _, err := c.other.Exec(ctx, "ROLLBACK"); err != nil {
			return c.to.fault(err)
		}
	}
}

// count compares how many rows there were, and takes note of the shard that has moved.
// What is found wrong is kept until all is done.
func (m *Mover) count(ctx context.Context, c *counting, moved Moved) error {
	m.say(Progress{Phase: Counting})
	type result struct {
		rows map[string]int64
		err  error
	}
	firsts := make(chan result, 1)
	go func() {
		rows, err := counts(ctx, c.first, c.schema)
		firsts <- result{rows, c.from.fault(err)}
	}()
	rows, err := counts(ctx, c.other, c.schema)
	first := <-firsts
	m.moved = append(m.moved, moved)
	switch {
	case first.err != nil:
		return first.err
	case err != nil:
		return c.to.fault(err)
	}
	if err := compareCounts(first.rows, rows); err != nil {
		m.wrong = append(m.wrong, &WrongError{moved.Shard, err})
	}
	m.moved[len(m.moved)-1].Rows = rows
	return nil
}

// A WrongError says that a shard has moved, and has not as many rows as it had.
type WrongError struct {
	Shard int64
	Err   error // a *CountsError
}

func (e *WrongError) Error() string { return fmt.Sprintf("shard %d: %v", e.Shard, e.Err) }
func (e *WrongError) Unwrap() error { return e.Err }

// dropFences drops the fences of shards that serve where they are now, in moments in
// which nobody uses their tables. It does not matter if that is never.
func (m *Mover) dropFences(ctx context.Context, g goal, some []pairOf) {
	_, to := m.ends(g)
	for _, p := range some {
		_, b := p.sides(g)
		for wait := firstWait; wait < lastWait; wait *= 2 {
			if to.dropFences(ctx, p.shard, b) || pause(ctx, wait) != nil {
				break
			}
		}
	}
}

// dropFences tries once, and hardly keeps anybody waiting.
func (e *end) dropFences(ctx context.Context, n int64, c copyOf) bool {
	if found, err := holders(ctx, e.conn, c.schema, 0); err != nil || len(found) > 0 {
		return false
	}
	tx, err := e.conn.Begin(ctx)
	if err != nil {
		return false
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	_, err = tx.Exec(ctx, limits(leastTime, lockTime)+fmt.Sprintf("SELECT firn.drop_fences(%d, %d, %s); COMMIT", n, c.term, literal(c.attempt)))
	return err == nil
}
