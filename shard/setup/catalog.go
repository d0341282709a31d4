package setup

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A catalog is asked what functions, sequences and columns a database has.
type catalog struct {
	ctx context.Context
	c   *pgx.Conn
}

// functions are those that take nothing and return a bigint. Who may
// call one that runs as its owner is who may draw.
func (k catalog) functions() ([]found, error) {
	rows, err := k.c.Query(k.ctx, `
SELECT n.nspname::text, p.proname::text, p.oid, l.lanname::text, p.prosrc, coalesce(p.proargnames[1], ''), p.prosecdef,
	pg_has_role(p.proowner, 'MEMBER') AND has_schema_privilege(n.oid, 'CREATE'),
	ARRAY(SELECT DISTINCT CASE grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(grantee)::text END
		FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) WHERE privilege_type = 'EXECUTE' AND grantee <> p.proowner),
	ARRAY(SELECT DISTINCT u.nspname::text FROM pg_depend AS d JOIN pg_attrdef AS a ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
		JOIN pg_class AS c ON c.oid = a.adrelid JOIN pg_namespace AS u ON u.oid = c.relnamespace
		WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid ORDER BY 1)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace JOIN pg_language AS l ON l.oid = p.prolang
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'firn') AND p.pronargs = 0 AND p.prorettype = 'bigint'::regtype AND NOT p.proretset AND p.prokind = 'f' ORDER BY p.oid`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f found, err error) {
		return f, row.Scan(&f.schema, &f.name, &f.oid, &f.function.language, &f.function.source, &f.function.result, &f.definer, &f.mine, &f.grantees, &f.usedIn)
	})
}

// A sequence is one that a function draws from.
type sequence struct {
	name     string // with its schema, quoted
	grantees []string
}

// sequence finds a sequence by what a function calls it.
func (k catalog) sequence(schema, written string) (q sequence, err error) {
	names := []string{written}
	if !strings.Contains(written, ".") {
		names = []string{identifier(schema) + "." + written, "public." + written}
	}
	rows, err := k.c.Query(k.ctx, `
SELECT format('%I.%I', n.nspname, c.relname), pg_has_role(c.relowner, 'MEMBER'), s.seqincrement > 0,
	EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_class'::regclass AND refobjid = c.oid AND classid = 'pg_attrdef'::regclass),
	ARRAY(SELECT DISTINCT CASE grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(grantee)::text END
		FROM aclexplode(c.relacl) WHERE privilege_type IN ('USAGE', 'UPDATE') AND grantee <> c.relowner)
FROM unnest($1::text[]) AS written JOIN pg_class AS c ON c.oid = to_regclass(written)
JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_sequence AS s ON s.seqrelid = c.oid`, names)
	if err != nil {
		return q, err
	}
	defer rows.Close()
	n := 0
	var mine, rises, used bool
	for ; rows.Next(); n++ {
		if err := rows.Scan(&q.name, &mine, &rises, &used, &q.grantees); err != nil {
			return q, err
		}
	}
	switch {
	case rows.Err() != nil:
		return q, rows.Err()
	case n == 0:
		return q, fmt.Errorf("there is no sequence %s", written)
	case n > 1:
		return q, fmt.Errorf("which sequence is %s? there is one in %s, and one in public", written, schema)
	case !mine:
		return q, fmt.Errorf("the role must own the sequence %s", q.name)
	case !rises:
		return q, fmt.Errorf("the sequence %s counts down", q.name)
	case used:
		return q, fmt.Errorf("the sequence %s is the default of a column too: it ends with the old function", q.name)
	}
	return q, nil
}

// shared says which functions draw from one sequence, with others that are not taken over: it ends when
// the first of them is.
func (k catalog) shared(all []AdoptedSchema, others []found) error {
	of := map[string]string{}
	for _, one := range all {
		name := one.Schema + "." + one.Function
		if other, twice := of[one.Sequence]; twice {
			return sharedError(other, name, one.Sequence)
		}
		of[one.Sequence] = name
	}
	for _, f := range others {
		g, err := f.function.formula()
		if err != nil {
			continue
		}
		q, err := k.sequence(f.schema, g.sequence)
		if other := of[q.name]; err == nil && other != "" {
			return sharedError(other, f.schema+"."+f.name, q.name)
		}
	}
	return nil
}

func sharedError(a, b, sequence string) error {
	return fmt.Errorf("shard: the functions %s and %s draw from one sequence, %s, which ends when the first of them is taken over: give each its own", a, b, sequence)
}

// columns finds the columns that ids of the schemas are in.
func (k catalog) columns(all []AdoptedSchema) error {
	byFunction, bySchema := map[uint32]*AdoptedSchema{}, map[string][]*AdoptedSchema{}
	var functions []uint32
	var schemas []string
	for i := range all {
		one := &all[i]
		byFunction[one.oid], bySchema[one.Schema] = one, append(bySchema[one.Schema], one)
		functions, schemas = append(functions, one.oid), append(schemas, one.Schema)
	}
	rows, err := k.c.Query(k.ctx, `
WITH ids AS (
	SELECT d.adrelid AS relation, d.adnum AS number, p.refobjid AS function
	FROM pg_depend AS p JOIN pg_attrdef AS d ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
	WHERE p.refclassid = 'pg_proc'::regclass AND p.refobjid = ANY ($1::oid[])
	UNION ALL
	SELECT a.attrelid, a.attnum, 0 FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
	WHERE a.attname = 'id' AND c.relnamespace = ANY (SELECT oid FROM pg_namespace WHERE nspname = ANY ($2::text[])))
SELECT n.nspname::text, format('%I.%I', n.nspname, c.relname), format('%I', a.attname), max(ids.function::bigint)::oid,
	EXISTS (SELECT FROM pg_index AS x WHERE x.indrelid = c.oid AND x.indkey[0] = a.attnum AND x.indisvalid AND x.indpred IS NULL),
	has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'UPDATE')
FROM ids JOIN pg_class AS c ON c.oid = ids.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_attribute AS a ON a.attrelid = ids.relation AND a.attnum = ids.number AND NOT a.attisdropped AND a.atttypid = 'bigint'::regtype
WHERE c.relkind IN ('r', 'p')
GROUP BY n.nspname, c.oid, c.relname, a.attname, a.attnum ORDER BY c.oid, a.attnum`, functions, schemas)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var col Column
		var may bool
		if err := rows.Scan(&col.schema, &col.Table, &col.Name, &col.function, &col.Indexed, &may); err != nil {
			return err
		}
		if !may {
			return fmt.Errorf("the role may not read and lock %s: it needs SELECT and UPDATE there", col.Table)
		}
		col.Default = col.function != 0
		of := bySchema[col.schema] // any of its functions may have given the ids
		if one := byFunction[col.function]; one != nil {
			of = []*AdoptedSchema{one}
		}
		for _, one := range of {
			one.Columns = append(one.Columns, col)
		}
	}
	return rows.Err()
}
