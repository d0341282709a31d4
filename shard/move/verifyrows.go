package move

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/phrase"
)

// This file decides about rows that were not alike at first sight, as those are that
// are being written: each is read again until it was seen alike.

// rowByRow compares the rows of a range that differs.
func (v *verifier) rowByRow(ctx context.Context, t table, where string, args []any) error {
	list := fmt.Sprintf("SELECT %s::text, md5(%s) FROM ONLY %s AS t WHERE %s", t.keyText(), t.row, t.sql(), where)
	a, b, err := both(v, func(c *pgx.Conn) (map[string]string, error) { return digests(ctx, c, list, args...) })
	if err != nil {
		return err
	}
	if v.found != nil {
		countRows(v.found, t, a, b)
		return nil
	}
	return v.settle(ctx, t, notAlike(a, b), true, func(c *pgx.Conn, keys []string) (map[string]string, error) {
		from, args, err := t.some(keys)
		if err != nil {
			return nil, err
		}
		return digests(ctx, c, fmt.Sprintf("SELECT ($1::text[])[u.i], md5(%s) FROM %s", t.row, from), args...)
	})
}

// parts is into how many a table without keys is divided, by the hash of its rows.
const parts = 256

// whole compares a table without keys.
func (v *verifier) whole(ctx context.Context, t table) error {
	same, n, err := v.compare(ctx, t, "true", nil)
	if err != nil {
		return err
	}
	v.seen.Ranges++
	v.seen.Rows += n
	v.Done(n)
	if same {
		return nil
	}
	v.seen.Again++
	list := fmt.Sprintf(`SELECT (h & %d)::text, count(*) || ':' || sum(h) FROM (SELECT hashtextextended(%s, 0) AS h FROM ONLY %s AS t) AS x GROUP BY 1`, parts-1, t.row, t.sql())
	read := func(c *pgx.Conn) (map[string]string, error) { return digests(ctx, c, list) }
	a, b, err := both(v, read)
	if err != nil {
		return err
	}
	if v.found != nil {
		return v.countKeyless(ctx, t, a, b)
	}
	return v.settle(ctx, t, notAlike(a, b), false, func(c *pgx.Conn, _ []string) (map[string]string, error) { return read(c) })
}

// digests reads digests by key.
func digests(ctx context.Context, c *pgx.Conn, sql string, args ...any) (map[string]string, error) {
	rows, err := c.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	all := make(map[string]string)
	var key, digest string
	_, err = pgx.ForEachRow(rows, []any{&key, &digest}, func() error {
		all[key] = digest
		return nil
	})
	return all, err
}

// A sight is what both servers say of one row; empty: it is not there.
type sight struct{ source, target string }

// notAlike are the rows that are not the same in both, by key.
func notAlike(source, target map[string]string) map[string]*suspect {
	all := make(map[string]*suspect)
	for key, digest := range source {
		if target[key] != digest {
			all[key] = &suspect{first: sight{digest, target[key]}}
		}
	}
	for key, digest := range target {
		if source[key] == "" {
			all[key] = &suspect{first: sight{"", digest}}
		}
	}
	return all
}

// A suspect is a row that was never seen alike.
type suspect struct {
	first, last sight
	since       time.Time // when it was first as it is in last
	looks       int       // at it as it is in last
}

// see takes down how the row is, and says whether it is settled: it is alike; or, where
// it may change all the time, it has changed on both.
func (s *suspect) see(p sight, changes bool, now time.Time) bool {
	if p.source == p.target || changes && p.source != s.first.source && p.target != s.first.target {
		return true
	}
	if p != s.last {
		s.last, s.since, s.looks = p, now, 0
	}
	s.looks++
	return false
}

// wrong says whether the row differs for good: three looks in all this time saw the
// same, each after the target had applied all that the source showed.
func (s *suspect) wrong(now time.Time, sure time.Duration) bool {
	return s.looks >= 3 && now.Sub(s.since) >= sure
}

func (s *suspect) what() string {
	switch {
	case s.last.source == "":
		return "is only on the target"
	case s.last.target == "":
		return "is missing on the target"
	default:
		return "differs"
	}
}

// lookPause is between two looks at the same rows.
const lookPause = 50 * time.Millisecond

// settle looks at rows until each is settled. A look reads the source, waits until the
// target has applied what was there, and reads the target.
func (v *verifier) settle(ctx context.Context, t table, left map[string]*suspect, changes bool,
	read func(c *pgx.Conn, keys []string) (map[string]string, error),
) error {
	begun := time.Now()
	for len(left) > 0 {
		keys := slices.Sorted(maps.Keys(left))
		a, err := read(v.source.conn, keys)
		if err != nil {
			return v.source.fault(err)
		}
		if err := v.caughtUp(ctx, t, begun); err != nil {
			return err
		}
		b, err := read(v.target.conn, keys)
		if err != nil {
			return v.target.fault(err)
		}
		now := time.Now()
		var wrong []string
		for _, key := range keys {
			s := left[key]
			if s.see(sight{a[key], b[key]}, changes && v.Stream != "", now) {
				delete(left, key)
			} else if s.wrong(now, v.Sure) && v.Surplus && s.last.source == "" && changes {
				delete(left, key)
			} else if s.wrong(now, v.Sure) {
				wrong = append(wrong, key)
			}
		}
		if len(wrong) > 0 {
			surplus := slices.ContainsFunc(wrong, func(key string) bool { return left[key].last.source == "" })
			return &DifferentError{Table: t.name, Key: wrong[0], What: left[wrong[0]].what(), More: len(wrong) - 1, Surplus: surplus}
		}
		if len(left) > 0 && now.Sub(begun) > v.Limit {
			return &UnsettledError{t.name, now.Sub(begun), phrase.Counted(int64(len(left)), "row was", "rows were") + " not seen alike, and not unchanged,"}
		}
		if err := pause(ctx, lookPause); err != nil {
			return err
		}
	}
	return nil
}

// caughtUp waits until the target has applied all that the source has written.
func (v *verifier) caughtUp(ctx context.Context, t table, begun time.Time) error {
	if v.Stream == "" {
		return nil
	}
	var position string
	if err := v.source.conn.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&position); err != nil {
		return v.source.fault(err)
	}
	for {
		var passed bool
		if err := v.source.conn.QueryRow(ctx, "SELECT coalesce(bool_or(replay_lsn >= $2::text::pg_lsn), false) FROM pg_stat_replication WHERE application_name = $1",
			v.Stream, position).Scan(&passed); err != nil {
			return v.source.fault(err)
		}
		if passed {
			return nil
		}
		if waited := time.Since(begun); waited > v.Limit {
			return &UnsettledError{t.name, waited, "the target did not catch up"}
		}
		if err := pause(ctx, lookPause); err != nil {
			return err
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
