package move

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/topology"
)

// This file counts in how many rows two copies of a shard differ that no stream connects any more, so that
// nobody gives up the copy that has more rows.

// Compare compares two copies of a schema that no stream connects. It reads all rows of both.
func Compare(ctx context.Context, first, second topology.Server, schema string) (check.Comparison, error) {
	v := &verifier{VerifyOptions: VerifyOptions{}.orDefault(), schema: schema, found: new(check.Comparison)}
	defer v.hangUp(ctx)
	if err := v.connect(ctx, first, second); err != nil {
		return check.Comparison{}, err
	}
	shapes, others, err := both(v, func(c *pgx.Conn) (map[string]string, error) { return shapesOf(ctx, c, schema) })
	if err != nil {
		return check.Comparison{}, err
	}
	tables, err := relations(ctx, v.source.conn, schema)
	if err != nil {
		return check.Comparison{}, v.source.fault(err)
	}
	for _, r := range tables {
		switch there := others[r.name]; there {
		case shapes[r.name]:
			err = v.table(ctx, r)
		case "":
			err = v.source.count(ctx, r, &v.found.First)
		default:
			v.found.Unlike = append(v.found.Unlike, r.name)
		}
		if err != nil {
			return check.Comparison{}, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if shapes[name] == "" {
			if err := v.target.count(ctx, relation{schema: schema, name: name}, &v.found.Second); err != nil {
				return check.Comparison{}, err
			}
		}
	}
	return *v.found, nil
}

// count adds the rows of a table that the other copy has not.
func (s side) count(ctx context.Context, r relation, sum *int64) error {
	var n int64
	err := s.conn.QueryRow(ctx, "SELECT count(*) FROM ONLY "+r.sql()).Scan(&n)
	*sum += n
	return s.fault(err)
}

const shapesSQL = `
SELECT r.name, coalesce(string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attname COLLATE "C"), '') || ' of'
FROM firn.relations($1) AS r LEFT JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum > 0 AND NOT a.attisdropped WHERE r.rows GROUP BY r.name`

// shapesOf are the columns of the tables of a schema, by table.
func shapesOf(ctx context.Context, c *pgx.Conn, schema string) (map[string]string, error) {
	return digests(ctx, c, shapesSQL, schema)
}

// countRows adds what differs in rows of a table, by key.
func countRows(c *check.Comparison, t table, first, second map[string]string) {
	differ := notAlike(first, second)
	for _, key := range slices.Sorted(maps.Keys(differ)) {
		switch s := differ[key].first; {
		case s.target == "":
			c.First++
			continue
		case s.source == "":
			c.Second++
		default:
			c.Differ++
		}
		if c.Example == "" {
			c.Example = fmt.Sprintf("%s: row %s", t.name, key)
		}
	}
}

// countKeyless adds what differs in a table without a key: how often each row is there, of the parts of the table
// whose digests differ. It reads the table once for each part, so that few rows are in memory at a time.
func (v *verifier) countKeyless(ctx context.Context, t table, first, second map[string]string) error {
	sql := fmt.Sprintf("SELECT h::text, count(*)::text FROM (SELECT hashtextextended(%s, 0) AS h FROM ONLY %s AS t) AS x WHERE h & %d = $1::text::bigint GROUP BY 1", t.row, t.sql(), parts-1)
	for _, part := range slices.Sorted(maps.Keys(notAlike(first, second))) {
		a, b, err := both(v, func(c *pgx.Conn) (map[string]string, error) { return digests(ctx, c, sql, part) })
		if err != nil {
			return err
		}
		for row := range notAlike(a, b) {
			more := rowsOf(a[row]) - rowsOf(b[row])
			v.found.First += max(more, 0)
			v.found.Second += max(-more, 0)
		}
	}
	return nil
}

func rowsOf(count string) int64 {
	rows, _ := strconv.ParseInt(count, 10, 64) // of a row that is not there: 0
	return rows
}
