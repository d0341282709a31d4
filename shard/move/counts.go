package move

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard"
)

// counts is how many rows each relation of a shard has, all in one statement, so that
// they are of one instant.
func counts(ctx context.Context, q shard.Querier, schema string) (map[string]int64, error) {
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
	return number, err
}

// A CountsError says whose rows are not as many on the target as on the source.
type CountsError struct {
	Tables         []string
	Source, Target map[string]int64
}

func (e *CountsError) Error() string {
	lines := make([]string, len(e.Tables))
	for i, name := range e.Tables {
		lines[i] = fmt.Sprintf("%s has %d rows on the source and %d on the target", name, e.Source[name], e.Target[name])
	}
	return strings.Join(lines, "; ")
}

// compareCounts returns a [*CountsError] where counts differ. A table that only one of
// them has differs too.
func compareCounts(source, target map[string]int64) error {
	e := &CountsError{Source: source, Target: target}
	all := maps.Clone(source)
	maps.Copy(all, target)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, there := source[name]
		b, here := target[name]
		if a != b || there != here {
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
func relations(ctx context.Context, q shard.Querier, schema string) ([]relation, error) {
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
