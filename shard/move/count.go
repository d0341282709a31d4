package move

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/topology"
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
	surplus      bool // the copy is known to have rows that the original lacks
	first, other *pgx.Conn
}

func newCounting(m *Mover, g goal, p pairOf) *counting {
	from, to := m.ends(g)
	a, b := p.sides(g)
	return &counting{m: m, from: from, to: to, schema: a.schema, term: a.term, surplus: b.counted}
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
	// What is counted was fixed by begin. The programs that waited for the shard come first.
	if err := pause(ctx, countPause); err != nil {
		return err
	}
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
	m.moved[len(m.moved)-1].Rows = known(rows)
	var different *CountsError
	if !errors.As(compareCounts(first.rows, rows), &different) || c.surplus && !different.missing() && different.alike() {
		if !c.surplus {
			return nil
		}
		return m.noteSurplus(ctx, c.to, moved.Shard, nil, false) // what it has is served now
	}
	m.wrong = append(m.wrong, &WrongError{moved.Shard, c.from.Name, c.to.Name, different.missing(), c.from == m.target, different})
	if !different.missing() {
		return nil
	}
	found := different.Error()
	return m.noteSurplus(ctx, c.from, moved.Shard, &found, true)
}

// A WrongError says that a shard has moved, and that it does not have as many rows as it had.
type WrongError struct {
	Shard    int64
	From, To string // servers; To serves the shard
	Missing  bool   // From has rows that To lacks
	Reverted bool
	Err      error // a *CountsError
}

func (e *WrongError) Error() string {
	return fmt.Sprintf("shard %d has moved from %s, the source, to %s, the target, and %v", e.Shard, e.From, e.To, e.Err)
}
func (e *WrongError) Unwrap() error { return e.Err }

// Do says what to do about the rows.
func (e *WrongError) Do() string {
	if !e.Missing {
		return fmt.Sprintf("nothing is lost; look for what wrote to the copy on %s before it served", e.To)
	}
	return fmt.Sprintf("to take it back to %s, which has all rows: %s", e.From, opening(!e.Reverted, []int64{e.Shard}, e.From))
}

// dropFences drops the fences of shards that serve where they are now, in moments in
// which nobody uses their tables. It does not matter if that is never.
func (m *Mover) dropFences(ctx context.Context, g goal, some []pairOf) {
	_, to := m.ends(g)
	all := make(map[int64]copyOf)
	for _, p := range some {
		_, all[p.shard] = p.sides(g)
	}
	to.dropAllFences(ctx, all)
}

// dropAllFences tries a few times, for about a second, because one transaction on a table or an autovacuum is in the way.
func (e *end) dropAllFences(ctx context.Context, all map[int64]copyOf) {
	for wait := firstWait; wait < lastWait; wait *= 2 {
		maps.DeleteFunc(all, func(n int64, c copyOf) bool { return e.dropFences(ctx, n, c) })
		if len(all) == 0 || pause(ctx, wait) != nil {
			return
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

// truncated stands for the number of rows of a table that was truncated after the instant
// of the snapshot: PostgreSQL then shows it empty to every transaction.
const truncated = -1

// known are the numbers of the tables that could be counted.
func known(rows map[string]int64) map[string]int64 {
	some := maps.Clone(rows)
	maps.DeleteFunc(some, func(_ string, n int64) bool { return n == truncated })
	return some
}

// counts is how many rows each relation of a shard has, all in one statement, so that
// they are of one instant.
func counts(ctx context.Context, q topology.Querier, schema string) (map[string]int64, error) {
	tables, err := relations(ctx, q, schema)
	if err != nil {
		return nil, err
	}
	number := make(map[string]int64)
	if len(tables) == 0 {
		return number, nil
	}
	selects := make([]string, len(tables))
	for i, t := range tables {
		selects[i] = fmt.Sprintf("SELECT %d, count(*) FROM ONLY %s", i, t.sql())
	}
	rows, err := q.Query(ctx, strings.Join(selects, " UNION ALL "))
	if err != nil {
		return nil, err
	}
	var i, n int64
	_, err = pgx.ForEachRow(rows, []any{&i, &n}, func() error {
		number[tables[i].name] = n
		return nil
	})
	if err != nil {
		return nil, err
	}
	// A snapshot has the file that a table had; the function tells which one it has now.
	rows, err = q.Query(ctx, `SELECT r.name FROM firn.relations($1) AS r JOIN pg_class AS c ON c.oid = r.relation
		WHERE r.rows AND c.relfilenode <> pg_relation_filenode(r.relation)`, schema)
	if err != nil {
		return nil, err
	}
	var name string
	_, err = pgx.ForEachRow(rows, []any{&name}, func() error {
		number[name] = truncated
		return nil
	})
	return number, err
}

// A CountsError says which tables have more or fewer rows on the target than on the source.
type CountsError struct {
	Tables         []string
	Source, Target map[string]int64
}

func (e *CountsError) Error() string {
	lines := make([]string, len(e.Tables))
	for i, name := range e.Tables {
		lines[i] = fmt.Sprintf("%s has %s on the source and %d on the target", name, phrase.Plural(int(e.Source[name]), "row"), e.Target[name])
	}
	return strings.Join(lines, "; ")
}

// missing reports whether the target has fewer rows of a table than the source.
func (e *CountsError) missing() bool {
	return slices.ContainsFunc(e.Tables, func(name string) bool { return e.Source[name] > e.Target[name] })
}

// alike reports whether both have the same tables.
func (e *CountsError) alike() bool {
	return slices.Equal(slices.Sorted(maps.Keys(e.Source)), slices.Sorted(maps.Keys(e.Target)))
}

// compareCounts returns a [*CountsError] where counts differ. A table that only one of
// them has differs too; one that was truncated meanwhile does not.
func compareCounts(source, target map[string]int64) error {
	e := &CountsError{Source: source, Target: target}
	all := maps.Clone(source)
	maps.Copy(all, target)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, there := source[name]
		b, here := target[name]
		if (a != b || there != here) && a != truncated && b != truncated {
			e.Tables = append(e.Tables, name)
		}
	}
	if e.Tables == nil {
		return nil
	}
	return e
}

// A relation is one that has rows, and how they are named.
type relation struct {
	schema, name string
	identity     string   // "key", "full" or "none"
	key          []string // columns
}

func (r relation) sql() string { return pgx.Identifier{r.schema, r.name}.Sanitize() }

// relations are those of a shard that have rows.
func relations(ctx context.Context, q topology.Querier, schema string) ([]relation, error) {
	rows, err := q.Query(ctx, "SELECT name, identity, key FROM firn.relations($1) WHERE rows", schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (relation, error) {
		r := relation{schema: schema}
		err := row.Scan(&r.name, &r.identity, &r.key)
		return r, err
	})
}
