-- What a shard's schema consists of, for moves: which relations hold its rows, and a
-- text that changes when the schema does.

-- The relations that rows are written to, but for the mark of a move. A partitioned
-- table holds no rows itself, and has statements of its own all the same. Identity
-- says how a replicated change names its row: by a key, whose columns follow, by all
-- columns, or not at all.
CREATE OR REPLACE FUNCTION firn.relations(schema name)
RETURNS TABLE (relation regclass, name text, kind "char", rows boolean, identity text, key text[]) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT c.oid::regclass, c.relname::text, c.relkind, c.relkind = 'r',
		CASE WHEN c.relreplident = 'f' THEN 'full' WHEN i.indrelid IS NULL THEN 'none' ELSE 'key' END,
		ARRAY(SELECT a.attname::text FROM unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (number, place)
			JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
			WHERE k.place <= i.indnkeyatts ORDER BY k.place)
	FROM pg_class AS c
	LEFT JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisvalid
		AND CASE c.relreplident WHEN 'd' THEN i.indisprimary AND i.indimmediate WHEN 'i' THEN i.indisreplident ELSE false END
	WHERE c.relnamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema)
		AND c.relkind IN ('r', 'p') AND c.relname <> 'firn_mark'
	ORDER BY c.relname COLLATE "C";
END $$;

-- What a server prints of an expression, or of something with expressions in it. Versions print them
-- in different ways: where texts of two versions are compared, only whether there is one is kept.
CREATE OR REPLACE FUNCTION firn.printed(t text, portable boolean) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN CASE WHEN portable AND t IS NOT NULL THEN '(...)' ELSE t END;
END $$;

-- Rights as a text, those of a default too: which of the two it is, a dump does not
-- keep. PostgreSQL has MAINTAIN from 17 on.
CREATE OR REPLACE FUNCTION firn.rights(acl aclitem[], type "char", owner oid, portable boolean) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN (SELECT format('owner %I', pg_get_userbyid(owner)) || coalesce(string_agg(x.line, '' ORDER BY x.line COLLATE "C"), '')
	FROM (SELECT format(' %s=%s%s', CASE a.grantee WHEN 0 THEN '' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
			a.privilege_type, CASE WHEN a.is_grantable THEN '*' ELSE '' END) AS line
		FROM aclexplode(coalesce(acl, acldefault(type, owner))) AS a WHERE NOT portable OR a.privilege_type <> 'MAINTAIN') AS x);
END $$;

-- A schema's relations, one line for each of their parts. In PL/pgSQL, with a plan that the session keeps: programs wait for
-- the second call of a session (firn.let_go), and to plan takes most of the time of the first.
CREATE OR REPLACE FUNCTION firn.relation_lines(namespace oid, portable boolean) RETURNS SETOF text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN QUERY
	WITH c AS (SELECT * FROM pg_class WHERE relnamespace = namespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c'))
	SELECT format('relation %I: kind %s, %s, identity %s, security %s %s, options %s, %s; %s; %s', c.relname, c.relkind, c.relpersistence,
		c.relreplident, c.relrowsecurity, c.relforcerowsecurity, c.reloptions,
		firn.printed(CASE c.relkind WHEN 'p' THEN pg_get_partkeydef(c.oid) WHEN 'v' THEN pg_get_viewdef(c.oid) WHEN 'm' THEN pg_get_viewdef(c.oid) END, portable),
		firn.printed(CASE WHEN c.relispartition THEN pg_get_expr(c.relpartbound, c.oid) END, portable),
		firn.rights(c.relacl, CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner, portable)) FROM c
	UNION ALL
	-- Columns by name: a dump keeps no order of those that a table inherits.
	SELECT format('column %I.%I: %s, %s, default %s, %s %s, collation %s, storage %s %s, %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
		CASE WHEN a.attnotnull THEN 'not null' END, firn.printed(pg_get_expr(d.adbin, d.adrelid), portable), a.attidentity, a.attgenerated,
		CASE WHEN a.attcollation <> 0 THEN a.attcollation::regcollation END, a.attstorage, a.attcompression,
		CASE WHEN a.attacl IS NOT NULL THEN firn.rights(a.attacl, 'c', c.relowner, portable) END)
	FROM c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum WHERE c.relkind <> 'S'
	UNION ALL
	SELECT format('inherits %I: %s', c.relname, i.inhparent::regclass) FROM c JOIN pg_inherits AS i ON i.inhrelid = c.oid
	UNION ALL
	SELECT format('index %s of %I: %s, valid %s, identity %s', i.indexrelid::regclass, c.relname, firn.printed(pg_get_indexdef(i.indexrelid), portable), i.indisvalid, i.indisreplident)
	FROM c JOIN pg_index AS i ON i.indrelid = c.oid
	WHERE i.indisvalid OR c.relkind = 'p' -- else it is being built CONCURRENTLY, or that failed; pg_dump leaves it out
	UNION ALL
	SELECT format('sequence %I: %s, %s from %s, %s to %s, cache %s, cycle %s, of %s', c.relname, s.seqtypid::regtype, s.seqincrement, s.seqstart, s.seqmin, s.seqmax,
		s.seqcache, s.seqcycle, (SELECT pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) FROM pg_depend AS d
			WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')))
	FROM c JOIN pg_sequence AS s ON s.seqrelid = c.oid
	UNION ALL
	SELECT format('trigger %I on %I: %s, %s', t.tgname, c.relname, firn.printed(pg_get_triggerdef(t.oid), portable), t.tgenabled)
	FROM c JOIN pg_trigger AS t ON t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgname NOT IN ('firn_fence', 'firn_receiver', 'firn_receiver_all')
	UNION ALL
	SELECT format('rule %I on %I: %s, %s', r.rulename, c.relname, firn.printed(pg_get_ruledef(r.oid), portable), r.ev_enabled) FROM c JOIN pg_rewrite AS r ON r.ev_class = c.oid AND c.relkind NOT IN ('v', 'm')
	UNION ALL
	SELECT format('policy %I on %I: %s %s for %s using %s check %s', p.polname, c.relname, p.polpermissive, p.polcmd,
		ARRAY(SELECT CASE r WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(r) END FROM unnest(p.polroles) AS r ORDER BY 1), firn.printed(pg_get_expr(p.polqual, c.oid), portable), firn.printed(pg_get_expr(p.polwithcheck, c.oid), portable))
	FROM c JOIN pg_policy AS p ON p.polrelid = c.oid;
END $$;

-- The rest of a schema, one line for each object. Of what gives ids only the name:
-- it carries what a copy does not have.
CREATE OR REPLACE FUNCTION firn.other_lines(namespace oid, portable boolean) RETURNS SETOF text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN QUERY
	SELECT format('schema: %s', firn.rights(n.nspacl, 'n', n.nspowner, portable)) FROM pg_namespace AS n WHERE n.oid = namespace
	UNION ALL
	SELECT format('object %s %s', o.type, o.identity) FROM pg_depend AS d CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, d.objsubid) AS o
	WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = namespace
	UNION ALL
	-- The constraints of NOT NULL are columns' above: older versions have no others.
	SELECT format('constraint %I on %s%s: %s %s, valid %s', c.conname, CASE WHEN c.conrelid <> 0 THEN c.conrelid::regclass END, CASE WHEN c.contypid <> 0 THEN c.contypid::regtype END,
		c.contype, firn.printed(pg_get_constraintdef(c.oid), portable), c.convalidated)
	FROM pg_constraint AS c WHERE c.connamespace = namespace AND c.contype NOT IN ('n', 't')
	UNION ALL
	SELECT format('function %s: %s; %s', p.oid::regprocedure, CASE WHEN p.prokind = 'a' THEN (SELECT format('%s %s %s %s', a.aggtransfn, a.aggfinalfn, a.aggtranstype::regtype, a.agginitval)
			FROM pg_aggregate AS a WHERE a.aggfnoid = p.oid) WHEN NOT EXISTS (SELECT FROM firn.generator AS g JOIN firn.shard AS s ON s.shard = g.shard JOIN pg_namespace AS n ON n.nspname = s.schema
			WHERE n.oid = namespace AND p.proname IN (g.name, g.name || 's')) THEN firn.printed(pg_get_functiondef(p.oid), portable) END, firn.rights(p.proacl, 'f', p.proowner, portable))
	FROM pg_proc AS p WHERE p.pronamespace = namespace
	UNION ALL
	SELECT format('type %s: %s %s, %s default %s; %s; %s', t.oid::regtype, t.typtype, CASE WHEN t.typbasetype <> 0 THEN format_type(t.typbasetype, t.typtypmod) END,
		CASE WHEN t.typnotnull THEN 'not null' END, firn.printed(t.typdefault, portable),
		ARRAY(SELECT e.enumlabel FROM pg_enum AS e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder), firn.rights(t.typacl, 'T', t.typowner, portable))
	FROM pg_type AS t WHERE t.typnamespace = namespace AND t.typtype IN ('e', 'd', 'r', 'm')
	UNION ALL
	SELECT format('statistics %I: %s', x.stxname, firn.printed(pg_get_statisticsobjdef(x.oid), portable)) FROM pg_statistic_ext AS x WHERE x.stxnamespace = namespace
	UNION ALL
	SELECT format('default rights of %I on %s: %s', pg_get_userbyid(a.defaclrole), a.defaclobjtype, firn.rights(a.defaclacl, a.defaclobjtype, a.defaclrole, portable))
	FROM pg_default_acl AS a WHERE a.defaclnamespace = namespace;
END $$;

-- All of a schema but its rows, the values of its sequences, and fences; portable: without what
-- another version of PostgreSQL prints in another way. The settings are those that what is printed
-- depends on.
CREATE OR REPLACE FUNCTION firn.fingerprint(schema name, portable boolean) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET quote_all_identifiers = off SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres'
SET extra_float_digits = 1 SET bytea_output = 'hex' SET xmlbinary = 'base64' SET lc_monetary = 'C' AS $$
BEGIN
	RETURN (SELECT string_agg(x.line, E'\n' ORDER BY x.line COLLATE "C")
		FROM (SELECT oid FROM pg_namespace WHERE nspname = schema) AS n
		CROSS JOIN LATERAL (SELECT firn.relation_lines(n.oid, portable) AS line UNION ALL SELECT firn.other_lines(n.oid, portable)) AS x);
END $$;

-- The mark of a schema: a table of that name that is made as firn.make_mark
-- does, by this role or one that may do as much. What belongs to others would have
-- the mover run their triggers.
CREATE OR REPLACE FUNCTION firn.mark(schema name) RETURNS regclass LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
	SELECT c.oid::regclass FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_roles AS o ON o.oid = c.relowner
	WHERE n.nspname = schema AND c.relname = 'firn_mark' AND c.relkind = 'r' AND NOT c.relhasrules
		AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND t.tgfoid IS DISTINCT FROM to_regprocedure('firn.check_receiver()')::oid)
		AND (o.rolname = current_user OR o.rolsuper OR o.oid = (SELECT f.nspowner FROM pg_namespace AS f WHERE f.nspname = 'firn'))
		AND ARRAY(SELECT a.attname::text FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
			= '{term,attempt,moved_to,floor,sequences}'
$$;

-- What other schemas have that goes with a schema when it is dropped: views of its
-- tables, defaults from its sequences, and so on.
CREATE OR REPLACE FUNCTION firn.outside(schema name) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
	WITH inside AS (
		SELECT d.classid, d.objid FROM pg_depend AS d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema)
		UNION SELECT 'pg_type'::regclass, t.oid FROM pg_type AS t WHERE t.typnamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema))
	SELECT DISTINCT o.type || ' ' || o.identity
	FROM inside AS i JOIN pg_depend AS d ON d.refclassid = i.classid AND d.refobjid = i.objid AND d.deptype IN ('n', 'a')
		AND d.classid IN ('pg_rewrite'::regclass, 'pg_attrdef'::regclass, 'pg_constraint'::regclass, 'pg_proc'::regclass, 'pg_class'::regclass, 'pg_trigger'::regclass, 'pg_policy'::regclass, 'pg_type'::regclass)
	CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, d.objsubid) AS o
	CROSS JOIN LATERAL pg_identify_object_as_address(d.classid, d.objid, d.objsubid) AS a
	-- The names of a type, and of a domain's constraint, do not begin with that of its schema.
	CROSS JOIN LATERAL (SELECT coalesce(
		(SELECT n.nspname::text FROM pg_constraint AS c JOIN pg_namespace AS n ON n.oid = c.connamespace WHERE d.classid = 'pg_constraint'::regclass AND c.oid = d.objid),
		(SELECT n.nspname::text FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace WHERE d.classid = 'pg_type'::regclass AND t.oid = d.objid),
		a.object_names[1]) AS name) AS has
	WHERE has.name <> outside.schema AND has.name NOT LIKE 'pg\_t%'
	ORDER BY 1
$$;

REVOKE ALL ON FUNCTION firn.relations, firn.printed, firn.rights, firn.relation_lines, firn.other_lines, firn.fingerprint, firn.mark, firn.outside FROM PUBLIC;
