package move

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// This file writes the SQL that tells rows by their keys. Whoever compares may be a superuser, and
// what a table's owner wrote must not run with his rights. So values are read and written as their
// types do: a cast may call a function of an owner's, and a domain checks what is cast to it. And
// operators are those of the type's order, wherever they are: the search_path has no other schema.

// A table is a relation with the SQL that reads it.
type table struct {
	relation
	row  string // a row as a text
	keys []keyColumn
}

// A keyColumn is a column of a key.
type keyColumn struct {
	sql       string // of the table t
	kind      string // its type, that of the domain where it is of one
	operators string // the schema that has them
}

const columnsSQL = `
WITH RECURSIVE base (attnum, type) AS (
	SELECT a.attnum, a.atttypid FROM pg_attribute AS a WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped
	UNION ALL SELECT b.attnum, t.typbasetype FROM base AS b JOIN pg_type AS t ON t.oid = b.type AND t.typtype = 'd'
)
SELECT a.attname::text, format_type(t.oid, -1), coalesce((SELECT n.nspname::text FROM pg_opclass AS c
		JOIN pg_am AS m ON m.oid = c.opcmethod AND m.amname = 'btree'
		JOIN pg_amop AS s ON s.amopfamily = c.opcfamily AND s.amoplefttype = c.opcintype AND s.amoprighttype = c.opcintype AND s.amopstrategy = 3
		JOIN pg_operator AS o ON o.oid = s.amopopr JOIN pg_namespace AS n ON n.oid = o.oprnamespace
		WHERE c.opcdefault AND c.opcintype = t.oid), 'pg_catalog')
FROM pg_attribute AS a JOIN base AS b ON b.attnum = a.attnum JOIN pg_type AS t ON t.oid = b.type AND t.typtype <> 'd'
WHERE a.attrelid = $1::text::regclass ORDER BY a.attname COLLATE "C"`

// tableOf reads of what a table consists.
func tableOf(ctx context.Context, c *pgx.Conn, r relation) (table, error) {
	t := table{relation: r}
	rows, err := c.Query(ctx, columnsSQL, r.sql())
	if err != nil {
		return t, err
	}
	all := make(map[string]keyColumn)
	var columns []string
	var name string
	var k keyColumn
	if _, err := pgx.ForEachRow(rows, []any{&name, &k.kind, &k.operators}, func() error {
		k.sql = "t." + pgx.Identifier{name}.Sanitize()
		all[name] = k
		columns = append(columns, k.sql)
		return nil
	}); err != nil {
		return t, err
	}
	t.row = "ROW(" + strings.Join(columns, ", ") + ")::text"
	for _, name := range r.key {
		t.keys = append(t.keys, all[name])
	}
	return t, nil
}

// columns are those of the key.
func (t table) columns() string {
	return t.each(", ", func(_ int, k keyColumn) string { return k.sql })
}

// each joins what a function writes for each column of the key.
func (t table) each(between string, f func(i int, k keyColumn) string) string {
	parts := make([]string, len(t.keys))
	for i, k := range t.keys {
		parts[i] = f(i, k)
	}
	return strings.Join(parts, between)
}

// keyText is a key as an array of texts.
func (t table) keyText() string {
	return "ARRAY[" + t.each(", ", func(_ int, k keyColumn) string { return "pg_catalog.format('%s', " + k.sql + ")" }) + "]"
}

// within is the condition of the keys above one and up to another, if there are such. Each value is
// an argument of its column's type.
func (t table) within(low, high []string) (where string, args []any) {
	where = "true"
	for _, bound := range []struct {
		operator, strict string
		key              []string
	}{{">", ">", low}, {"<=", "<", high}} {
		if bound.key == nil {
			continue
		}
		first := len(args) + 1
		for _, value := range bound.key {
			args = append(args, value)
		}
		where += " AND " + t.ordered(bound.operator, bound.strict, first)
	}
	return where, args
}

// ordered compares the key with arguments, the first of which has a number. An index serves the
// comparison of rows, which has no way to name the operators of each column.
func (t table) ordered(operator, strict string, first int) string {
	plain := true
	for _, k := range t.keys {
		plain = plain && k.operators == "pg_catalog"
	}
	value := func(i int, k keyColumn) string { return fmt.Sprintf("$%d::%s", first+i, k.kind) }
	if plain {
		return fmt.Sprintf("(%s) %s (%s)", t.columns(), operator, t.each(", ", value))
	}
	// a op x, or a = x and (b op y, or b = y and (...)); what cannot be is left out by the index on a.
	compare := func(i int, operator string) string { return t.keys[i].is(operator, value(i, t.keys[i])) }
	last := len(t.keys) - 1
	sql := compare(last, operator)
	for i := last - 1; i >= 0; i-- {
		sql = fmt.Sprintf("(%s OR %s AND %s)", compare(i, strict), compare(i, "="), sql)
	}
	return fmt.Sprintf("(%s AND %s)", compare(0, strict+either(last > 0 || strict != operator, "=", "")), sql)
}

// is compares a column with a value.
func (k keyColumn) is(operator, value string) string {
	return fmt.Sprintf("%s OPERATOR(%s.%s) %s", k.sql, pgx.Identifier{k.operators}.Sanitize(), operator, value)
}

// some is what selects the rows of keys that are arrays of texts, the key of number u.i for each row,
// and its arguments: the keys themselves, and the values of each column.
func (t table) some(keys []string) (from string, args []any, err error) {
	values := make([][]string, len(t.keys))
	types := pgtype.NewMap()
	for _, key := range keys {
		var one []string
		if err := types.Scan(pgtype.TextArrayOID, pgtype.TextFormatCode, []byte(key), &one); err != nil {
			return "", nil, err
		}
		for i, value := range one {
			values[i] = append(values[i], value)
		}
	}
	args = append(args, keys)
	for _, column := range values {
		array, err := types.Encode(pgtype.TextArrayOID, pgtype.TextFormatCode, column, nil)
		if err != nil {
			return "", nil, err
		}
		args = append(args, string(array))
	}
	// Not unnest of all arrays: it makes columns of a value that is a row.
	from = fmt.Sprintf("generate_subscripts($1::text[], 1) AS u (i) JOIN ONLY %s AS t ON %s", t.sql(),
		t.each(" AND ", func(i int, k keyColumn) string { return k.is("=", fmt.Sprintf("($%d::%s[])[u.i]", i+2, k.kind)) }))
	return from, args, nil
}
