package move

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/topology"
)

// This file knows what cannot be moved without loss.

// An unmovable is something in a shard's schema, $1, with which it cannot move.
type unmovable struct {
	sql    string // gives the names
	reason string
	fix    string
}

// forced are tables whose owner may not write all rows. From PostgreSQL 16 on, replication writes
// as the owner of a table.
var forced = unmovable{
	`SELECT c.relname FROM pg_class AS c JOIN pg_roles AS o ON o.oid = c.relowner
	WHERE c.relnamespace = quote_ident($1)::regnamespace AND c.relkind IN ('r', 'p') AND c.relrowsecurity AND c.relforcerowsecurity AND NOT o.rolsuper AND NOT o.rolbypassrls ORDER BY 1`,
	"replication writes as the owner of a table, for whom policies are forced on these tables: %s", "ALTER TABLE ... NO FORCE ROW LEVEL SECURITY until the move is finished, or ALTER ROLE ... BYPASSRLS for the owner on both servers",
}

var inSchema = []unmovable{
	{
		`SELECT name FROM firn.relations($1) WHERE rows AND identity = 'none'`,
		"tables without a replica identity: %s", "ALTER TABLE ... ADD PRIMARY KEY, or ... REPLICA IDENTITY FULL",
	},
	{
		`SELECT r.name || '.' || a.attname FROM firn.relations($1) AS r JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attname = ANY (r.key) WHERE r.rows AND a.attgenerated <> ''`,
		"generated columns are not replicated, and these are of a replica identity: %s", "ALTER TABLE ... REPLICA IDENTITY FULL, or USING INDEX of another key",
	},
	{
		`SELECT x FROM firn.outside($1) AS x WHERE x !~ '^table (?!column )'`, // those are said below
		"other schemas have what depends on this one, and would stay here: %s", "DROP it there, or have it do without",
	},
	{
		withoutEquality,
		"rows cannot be found on the other server by columns whose type has no equality: %s", "ALTER TABLE ... ADD PRIMARY KEY, in place of REPLICA IDENTITY FULL; or jsonb for json",
	},
	{
		`SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'firn_mark' AND firn.mark($1) IS NULL`,
		"there is a table of the name that a move needs: %s", "ALTER TABLE ... RENAME",
	},
	{
		`SELECT relname FROM pg_class WHERE relnamespace = quote_ident($1)::regnamespace AND relpersistence = 'u' AND relkind IN ('r', 'S') ORDER BY 1`,
		"unlogged relations are not replicated: %s", "ALTER TABLE ... SET LOGGED, or drop them",
	},
	{
		`SELECT c.relname || '.' || a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type AS t ON t.oid = a.atttypid
		WHERE c.relnamespace = quote_ident($1)::regnamespace AND c.relkind IN ('r', 'p') AND 'oid'::regtype IN (t.oid, t.typbasetype) AND EXISTS (SELECT FROM pg_largeobject_metadata) ORDER BY 1`,
		"large objects are not replicated, and these columns may refer to some: %s", "keep them in columns of type bytea",
	},
	{
		`SELECT c.conname || ' of ' || c.conrelid::regclass || ' to ' || c.confrelid::regclass FROM pg_constraint AS c JOIN pg_class AS f ON f.oid = c.conrelid JOIN pg_class AS t ON t.oid = c.confrelid
		WHERE c.contype = 'f' AND quote_ident($1)::regnamespace IN (f.relnamespace, t.relnamespace) AND f.relnamespace <> t.relnamespace ORDER BY 1`,
		"foreign keys cross the border of the schema: %s", "ALTER TABLE ... DROP CONSTRAINT: rows of other schemas stay here",
	},
	{
		`SELECT i.inhrelid::regclass || ' of ' || i.inhparent::regclass FROM pg_inherits AS i JOIN pg_class AS f ON f.oid = i.inhrelid JOIN pg_class AS t ON t.oid = i.inhparent
		WHERE quote_ident($1)::regnamespace IN (f.relnamespace, t.relnamespace) AND f.relnamespace <> t.relnamespace AND f.relkind IN ('r', 'p', 'f') ORDER BY 1`,
		"tables inherit, or are partitions, across the border of the schema: %s", "ALTER TABLE ... NO INHERIT, or DETACH PARTITION",
	},
	{
		`SELECT t.tgname || ' on ' || c.relname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
		WHERE c.relnamespace = quote_ident($1)::regnamespace AND NOT t.tgisinternal AND t.tgenabled IN ('A', 'R') AND t.tgfoid <> 'firn.check_receiver()'::regprocedure
		UNION ALL SELECT r.rulename || ' on ' || c.relname FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class
		WHERE c.relnamespace = quote_ident($1)::regnamespace AND r.ev_enabled IN ('A', 'R') ORDER BY 1`,
		"triggers or rules fire on replicas, and would do there again what they did here: %s", "ALTER TABLE ... ENABLE TRIGGER, without ALWAYS or REPLICA",
	},
	{
		`SELECT relname FROM pg_class WHERE relnamespace = quote_ident($1)::regnamespace AND relkind = 'm' AND relispopulated ORDER BY 1`,
		"materialized views are not replicated: %s", "REFRESH MATERIALIZED VIEW ... WITH NO DATA, and again after the move",
	},
	{
		`SELECT relname FROM pg_class WHERE relnamespace = quote_ident($1)::regnamespace AND relkind = 'f' ORDER BY 1`,
		"foreign tables stay where they are: %s", "DROP FOREIGN TABLE",
	},
	{
		`SELECT name FROM firn.relations($1) WHERE rows AND row_security_active(relation) ORDER BY 1`,
		"policies hide rows of these tables from this role: %s", "ALTER ROLE ... BYPASSRLS on both servers, or a superuser's name in the addresses",
	},
}

// withoutEquality are columns of tables whose rows are named by all columns, of types
// that cannot be compared, or in which there is such a type.
const withoutEquality = `
WITH RECURSIVE c (name, type) AS (
	SELECT r.name || '.' || a.attname, a.atttypid FROM firn.relations($1) AS r JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
	WHERE r.rows AND r.identity = 'full'
	UNION
	SELECT c.name, x.type FROM c JOIN pg_type AS t ON t.oid = c.type CROSS JOIN LATERAL (
		SELECT t.typbasetype AS type WHERE t.typtype = 'd' UNION ALL SELECT t.typelem WHERE t.typcategory = 'A' AND t.typelem <> 0
		UNION ALL SELECT a.atttypid FROM pg_attribute AS a WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) AS x
)
SELECT DISTINCT c.name FROM c JOIN pg_type AS t ON t.oid = c.type AND t.typtype = 'b' AND t.typcategory <> 'A'
WHERE NOT EXISTS (SELECT FROM pg_opclass AS o JOIN pg_am AS m ON m.oid = o.opcmethod AND m.amname IN ('btree', 'hash')
	WHERE o.opcdefault AND (o.opcintype = t.oid OR EXISTS (SELECT FROM pg_cast AS k WHERE k.castsource = t.oid AND k.casttarget = o.opcintype AND k.castmethod = 'b')))
ORDER BY 1`

// rolesSQL are the roles that own something in the schemas $1, or have rights there.
const rolesSQL = `
SELECT DISTINCT r.rolname::text FROM (
	SELECT oid, nspname FROM pg_namespace WHERE nspname = ANY ($1)) AS n
CROSS JOIN LATERAL (
	SELECT x.role FROM pg_namespace AS s CROSS JOIN LATERAL (SELECT s.nspowner AS role UNION ALL SELECT grantee FROM aclexplode(s.nspacl)) AS x WHERE s.oid = n.oid
	UNION ALL SELECT x.role FROM pg_class AS c CROSS JOIN LATERAL (SELECT c.relowner AS role UNION ALL SELECT grantee FROM aclexplode(c.relacl)) AS x WHERE c.relnamespace = n.oid
	UNION ALL SELECT a.grantee FROM pg_class AS c JOIN pg_attribute AS t ON t.attrelid = c.oid CROSS JOIN LATERAL aclexplode(t.attacl) AS a WHERE c.relnamespace = n.oid
	UNION ALL SELECT x.role FROM pg_proc AS p CROSS JOIN LATERAL (SELECT p.proowner AS role UNION ALL SELECT grantee FROM aclexplode(p.proacl)) AS x WHERE p.pronamespace = n.oid
	UNION ALL SELECT x.role FROM pg_type AS t CROSS JOIN LATERAL (SELECT t.typowner AS role UNION ALL SELECT grantee FROM aclexplode(t.typacl)) AS x WHERE t.typnamespace = n.oid
	UNION ALL SELECT unnest(p.polroles) FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid WHERE c.relnamespace = n.oid
	UNION ALL SELECT x.role FROM pg_default_acl AS d CROSS JOIN LATERAL (SELECT d.defaclrole AS role UNION ALL SELECT grantee FROM aclexplode(d.defaclacl)) AS x WHERE d.defaclnamespace = n.oid
) AS x JOIN pg_roles AS r ON r.oid = x.role ORDER BY 1`

// extensionsSQL are the extensions that something in the schemas $1 depends on.
const extensionsSQL = `
SELECT DISTINCT e.extname::text FROM pg_extension AS e
JOIN pg_depend AS m ON m.refclassid = 'pg_extension'::regclass AND m.refobjid = e.oid AND m.deptype = 'e'
JOIN pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid AND d.deptype IN ('n', 'a')
CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS o
WHERE EXISTS (SELECT FROM unnest($1::text[]) AS s WHERE o.schema = quote_ident(s) OR position(quote_ident(s) || '.' IN o.identity) > 0) ORDER BY 1`

// inTheWay are the obstacles to moving a shard that are in its schema. Newer is the version of the
// newer server.
func inTheWay(ctx context.Context, q topology.Querier, server string, number int64, schema string, newer int) ([]Obstacle, error) {
	var all []Obstacle
	things := inSchema
	if newer >= 160000 {
		things = append(slices.Clip(things), forced)
	}
	for _, r := range things {
		found, err := names(ctx, q, r.sql, schema)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			all = append(all, Obstacle{Server: server, Shard: number, Object: phrase.Few(found), Reason: fmt.Sprintf(r.reason, phrase.Few(found)), Fix: r.fix})
		}
	}
	return all, nil
}

// names are the texts that a query gives.
func names(ctx context.Context, q topology.Querier, sql string, args ...any) ([]string, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
