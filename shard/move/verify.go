package move

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// This file compares the copy of a shard with the original while that serves: by
// ranges of keys, whose rows are counted and hashed on both servers at once. A range
// that differs is looked at row by row (verifyrows.go). It only reads, so it can begin anew
// at any time.

// VerifyOptions say how a copy is compared. A zero field is the default.
type VerifyOptions struct {
	Rows  int           // of a range: 10,000
	Limit time.Duration // for how long a range that differs is looked at again: 1 m
	Sure  time.Duration // for how long a row has to differ unchanged to be wrong: 2 s

	// Stream is the subscription that the copy follows the original by. A row that is
	// written all the time is right when it changes on both. Without it there are none.
	Stream string

	// Surplus is of a copy that is known to have rows which the original lacks: such rows are no difference.
	Surplus bool

	// Done is called after each range with how many rows of the source it had.
	Done func(rows int64)
}

func (o VerifyOptions) orDefault() VerifyOptions {
	o.Rows = cmp.Or(o.Rows, 10_000)
	o.Limit = cmp.Or(o.Limit, time.Minute)
	o.Sure = cmp.Or(o.Sure, 2*time.Second)
	if o.Done == nil {
		o.Done = func(int64) {}
	}
	return o
}

// Verified is how much was compared.
type Verified struct {
	Tables, Ranges, Rows int64
	Again                int64 // ranges that differed at first
}

// A DifferentError says that a row of a copy differs from the original.
type DifferentError struct {
	Table   string
	Key     string // of one of the rows, as PostgreSQL prints an array; of a table without keys which part of its rows
	What    string // "differs", "is missing on the target" or "is only on the target"
	Surplus bool   // a row that was seen to differ is only on the target
	More    int    // further rows of the range that are not alike
}

func (e *DifferentError) Error() string {
	text := fmt.Sprintf("the copy is wrong: %s: row %s %s", e.Table, e.Key, e.What)
	if e.More > 0 {
		text += fmt.Sprintf(", and %d more near it", e.More)
	}
	return text
}

// An UnsettledError says that a range was not seen alike in time.
type UnsettledError struct {
	Table  string
	Waited time.Duration
	Why    string
}

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("the copy could not be compared: %s: %s for %s", e.Table, e.Why, e.Waited.Round(time.Second))
}

// Verify compares the copy of a schema on target with the original on source, while both change. It
// returns a [*DifferentError] where rows differ, and an [*UnsettledError] where rows changed too often
// to be compared.
func Verify(ctx context.Context, source, target topology.Server, schema string, o VerifyOptions) (Verified, error) {
	v := &verifier{VerifyOptions: o.orDefault(), schema: schema}
	defer v.hangUp(ctx)
	if err := v.connect(ctx, source, target); err != nil {
		return Verified{}, err
	}
	tables, err := relations(ctx, v.source.conn, schema)
	if err != nil {
		return Verified{}, v.source.fault(err)
	}
	for _, r := range tables {
		if err := v.table(ctx, r); err != nil {
			return v.seen, err
		}
		v.seen.Tables++
	}
	return v.seen, nil
}

// connect connects to both servers.
func (v *verifier) connect(ctx context.Context, source, target topology.Server) error {
	for i, side := range []*side{&v.source, &v.target} {
		s := []topology.Server{source, target}[i]
		c, err := s.Connect(ctx)
		if err != nil {
			return err
		}
		side.name, side.conn = s.Name, c
		if _, err := c.Exec(ctx, fixed, pgx.QueryExecModeSimpleProtocol); err != nil {
			return side.fault(err)
		}
	}
	return nil
}

func (v *verifier) hangUp(ctx context.Context) {
	for _, s := range []side{v.source, v.target} {
		if s.conn != nil {
			s.conn.Close(context.WithoutCancel(ctx))
		}
	}
}

// fixed are the settings that the text of a value depends on. A policy on rows must not
// hide any. To compare takes one CPU of a server, and leaves the others to who writes.
const fixed = `SET search_path = pg_catalog, pg_temp; SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET IntervalStyle = 'postgres';
SET extra_float_digits = 1; SET bytea_output = 'hex'; SET xmlbinary = 'base64'; SET lc_monetary = 'C'; SET row_security = off; SET quote_all_identifiers = off;
SET statement_timeout = 0; SET idle_session_timeout = 0; SET max_parallel_workers_per_gather = 0`

type verifier struct {
	VerifyOptions
	schema         string
	source, target side
	seen           Verified
	found          *check.Comparison // counts rows that differ; nil: the first row that stays different is an error
}

// A side is one of the two servers.
type side struct {
	name string
	conn *pgx.Conn
}

func (s side) fault(err error) error {
	if err == nil {
		return nil
	}
	return &topology.ServerError{Server: s.name, Err: err}
}

func (v *verifier) table(ctx context.Context, r relation) error {
	t, err := tableOf(ctx, v.source.conn, r)
	if err != nil {
		return v.source.fault(err)
	}
	if r.identity != "key" {
		return v.whole(ctx, t)
	}
	return v.ranges(ctx, t)
}

// ranges compares a table by ranges of its key. Their bounds are of the source, and the
// first and the last reach to the ends, so that they hold all there can be.
func (v *verifier) ranges(ctx context.Context, t table) error {
	for low, last := []string(nil), false; !last; {
		high, err := v.bound(ctx, t, low)
		if err != nil {
			return v.source.fault(err)
		}
		where, args := t.within(low, high)
		same, n, err := v.compare(ctx, t, where, args)
		if err != nil {
			return err
		}
		if !same {
			v.seen.Again++
			if err := v.rowByRow(ctx, t, where, args); err != nil {
				return err
			}
		}
		v.seen.Ranges++
		v.seen.Rows += n
		v.Done(n)
		low, last = high, high == nil
	}
	return nil
}

// bound is the last key of the range that begins after a key, or nil where that is the
// last range.
func (v *verifier) bound(ctx context.Context, t table, low []string) ([]string, error) {
	where, args := t.within(low, nil)
	var key []string
	err := v.source.conn.QueryRow(ctx, fmt.Sprintf("SELECT %s FROM ONLY %s AS t WHERE %s ORDER BY %s OFFSET %d LIMIT 1",
		t.keyText(), t.sql(), where, t.columns(), v.Rows-1), args...).Scan(&key)
	if err == pgx.ErrNoRows {
		return nil, nil
	}
	return key, err
}

// compare says whether some rows are the same on both servers, and how many the source
// has.
func (v *verifier) compare(ctx context.Context, t table, where string, args []any) (same bool, n int64, err error) {
	sql := fmt.Sprintf("SELECT count(*), coalesce(sum(hashtextextended(%s, 0)), 0)::text FROM ONLY %s AS t WHERE %s", t.row, t.sql(), where)
	type digest struct {
		rows int64
		sum  string
	}
	a, b, err := both(v, func(c *pgx.Conn) (d digest, err error) {
		err = c.QueryRow(ctx, sql, args...).Scan(&d.rows, &d.sum)
		return d, err
	})
	return a == b, a.rows, err
}

// both does something on both servers at once.
func both[T any](v *verifier, f func(*pgx.Conn) (T, error)) (a, b T, err error) {
	var other error
	done := make(chan struct{})
	go func() {
		defer close(done)
		b, other = f(v.target.conn)
	}()
	a, err = f(v.source.conn)
	<-done
	if err != nil {
		return a, b, v.source.fault(err)
	}
	return a, b, v.target.fault(other)
}
