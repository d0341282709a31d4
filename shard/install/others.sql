-- What others have to do with a shard, and what a move would leave behind without a word:
-- rows that they write to it, rows that they read from it, numbers that it has from them.

-- The subscriptions and publications of others that tables of a schema are in. Replication
-- writes past fences; and what a publication sends of a shard, it sends no more when the
-- shard is on another server.
CREATE OR REPLACE FUNCTION firn.streams_of_others(schema name) RETURNS TABLE (kind text, name name, tables text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	namespace oid := (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema);
	own text := '^firn_(move|back)_[a-z0-9]{12}$';
BEGIN
	RETURN QUERY SELECT 'subscription', s.subname, string_agg(c.relname, ', ' ORDER BY c.relname)
		FROM pg_subscription AS s JOIN pg_subscription_rel AS r ON r.srsubid = s.oid JOIN pg_class AS c ON c.oid = r.srrelid
		WHERE c.relnamespace = namespace AND s.subname !~ own GROUP BY s.subname;
	RETURN QUERY SELECT 'publication', p.pubname, string_agg(c.relname, ', ' ORDER BY c.relname)
		FROM pg_publication AS p JOIN pg_publication_rel AS r ON r.prpubid = p.oid JOIN pg_class AS c ON c.oid = r.prrelid
		WHERE c.relnamespace = namespace AND p.pubname !~ own GROUP BY p.pubname;
	RETURN QUERY SELECT 'publication', p.pubname, 'all tables' FROM pg_publication AS p WHERE p.puballtables;
	IF to_regclass('pg_catalog.pg_publication_namespace') IS NOT NULL THEN -- from PostgreSQL 15 on
		RETURN QUERY SELECT 'publication', p.pubname, 'all tables of the schema'
			FROM pg_publication AS p JOIN pg_publication_namespace AS n ON n.pnpubid = p.oid WHERE n.pnnspid = namespace;
	END IF;
END $$;

-- Refuses to let a shard go of which others would lose rows: what the plan has refused may
-- have been made since. Consumers are publications whose readers know of the move.
CREATE OR REPLACE FUNCTION firn.check_streams(s firn.shard, moved_to text, consumers text[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	x record;
BEGIN
	FOR x IN SELECT * FROM firn.streams_of_others(s.schema) LOOP
		IF x.kind = 'subscription' THEN
			RAISE EXCEPTION 'firn: the subscription % writes to shard % (%), and would go on writing to the copy that stays here', x.name, s.shard, x.tables USING ERRCODE = '2BP01',
				HINT = format('stop its publisher, DROP SUBSCRIPTION %I, move the shard, and on %s CREATE SUBSCRIPTION ... WITH (copy_data = false)', x.name, moved_to);
		ELSIF x.name <> ALL (consumers) THEN
			RAISE EXCEPTION 'firn: the publication % has tables of shard % (%), and its consumers would get no rows of it any more', x.name, s.shard, x.tables USING ERRCODE = '2BP01',
				HINT = format('if they know of the move, and read from %s too: --consumers-know %s', moved_to, x.name);
		END IF;
	END LOOP;
END $$;

-- Refuses to drop a schema with which goes what others have.
CREATE OR REPLACE FUNCTION firn.check_droppable(schema name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	others text := (SELECT string_agg(x, ', ') FROM firn.outside(schema) AS x);
	writing text := (SELECT string_agg(format('%s (%s)', x.name, x.tables), ', ') FROM firn.streams_of_others(schema) AS x WHERE x.kind = 'subscription');
BEGIN
	IF others IS NOT NULL THEN
		RAISE EXCEPTION 'firn: other schemas have what would go with the schema %: %', schema, others USING ERRCODE = '2BP01',
			HINT = 'drop it there, or have it do without';
	ELSIF writing IS NOT NULL THEN
		RAISE EXCEPTION 'firn: subscriptions write to this copy of the schema %, and rows of theirs may be nowhere else: %', schema, writing USING ERRCODE = '2BP01',
			HINT = 'compare their tables with those of the server that has the shard; then DROP SUBSCRIPTION ...';
	END IF;
END $$;

-- The sequences outside of a schema that it has numbers from, and what of it has them: as
-- far as PostgreSQL knows what depends on what, and as far as the texts of functions say.
-- A text may draw from what it does not name: then there is no sequence.
CREATE OR REPLACE FUNCTION firn.numbers_of_others(schema name) RETURNS TABLE (part text, sequence text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	namespace oid := (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema);
	parts oid[];
	f record;
	named text;
	found regclass;
BEGIN
	RETURN QUERY SELECT DISTINCT o.type || ' ' || o.identity, q.oid::regclass::text
		FROM firn.parts(namespace) AS p JOIN pg_depend AS d ON d.classid = p.class AND d.objid = p.object AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('n', 'a')
		JOIN pg_class AS q ON q.oid = d.refobjid AND q.relkind = 'S' AND q.relnamespace <> namespace
		CROSS JOIN LATERAL pg_identify_object(p.class, p.object, 0) AS o ORDER BY 1, 2;
	FOR f IN SELECT DISTINCT r.oid::regprocedure::text AS part, (regexp_matches(r.prosrc, '\m(?:nextval|setval)\s*\(\s*(?:''+([^'']+)'')?', 'gi'))[1] AS literal
			FROM firn.parts(namespace) AS p JOIN pg_proc AS r ON p.class = 'pg_proc'::regclass AND r.oid = p.object
			WHERE r.prosrc ~* '\m(nextval|setval)\s*\(' AND NOT (r.pronamespace = namespace AND EXISTS (SELECT FROM firn.generator AS g JOIN firn.shard AS s ON s.shard = g.shard
				WHERE s.schema = numbers_of_others.schema AND r.proname IN (g.name, g.name || 's'))) ORDER BY 1, 2 LOOP
		part := 'function ' || f.part;
		sequence := NULL;
		found := firn.sequence_named(schema, f.literal);
		IF found IS NULL THEN
			RETURN NEXT;
		ELSIF (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = found) <> namespace THEN
			sequence := found;
			RETURN NEXT;
		END IF;
	END LOOP;
END $$;

-- The sequence that a name in a function of a schema means: the schema's own, else one of
-- public, as where a transaction has entered the shard; else the only one of that name.
CREATE OR REPLACE FUNCTION firn.sequence_named(schema name, named text) RETURNS regclass LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	words text[];
	one oid[];
BEGIN
	words := parse_ident(named);
	IF array_length(words, 1) > 1 THEN
		RETURN to_regclass(named);
	END IF;
	one := ARRAY(SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relkind = 'S' AND c.relname = words[1]
		ORDER BY CASE n.nspname WHEN schema THEN 1 WHEN 'public' THEN 2 ELSE 3 END);
	IF array_length(one, 1) = 1 OR to_regclass(format('%I.%I', schema, words[1])) = one[1] OR to_regclass(format('public.%I', words[1])) = one[1] THEN
		RETURN one[1];
	END IF;
	RETURN NULL;
EXCEPTION WHEN OTHERS THEN
	RETURN NULL; -- it is no name
END $$;

-- The parts of a schema that have expressions or statements, and the functions of other
-- schemas that they call, but for those of extensions and of PostgreSQL itself.
CREATE OR REPLACE FUNCTION firn.parts(namespace oid) RETURNS TABLE (class oid, object oid) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
	WITH RECURSIVE part (class, object) AS ((
		SELECT 'pg_attrdef'::regclass::oid, d.oid FROM pg_attrdef AS d JOIN pg_class AS c ON c.oid = d.adrelid WHERE c.relnamespace = namespace
		UNION ALL SELECT 'pg_rewrite'::regclass, r.oid FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class WHERE c.relnamespace = namespace
		UNION ALL SELECT 'pg_trigger'::regclass, t.oid FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid WHERE c.relnamespace = namespace AND NOT t.tgisinternal
		UNION ALL SELECT 'pg_policy'::regclass, p.oid FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid WHERE c.relnamespace = namespace
		UNION ALL SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint AS c WHERE c.connamespace = namespace
		UNION ALL SELECT 'pg_type'::regclass, t.oid FROM pg_type AS t WHERE t.typnamespace = namespace
		UNION ALL SELECT 'pg_proc'::regclass, p.oid FROM pg_proc AS p WHERE p.pronamespace = namespace)
		UNION SELECT d.refclassid, d.refobjid FROM part AS x JOIN pg_depend AS d ON d.classid = x.class AND d.objid = x.object AND d.refclassid = 'pg_proc'::regclass
		JOIN pg_proc AS p ON p.oid = d.refobjid JOIN pg_namespace AS n ON n.oid = p.pronamespace AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'firn')
		WHERE NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e'))
	SELECT class, object FROM part
$$;

REVOKE ALL ON FUNCTION firn.streams_of_others, firn.check_streams, firn.check_droppable, firn.numbers_of_others, firn.sequence_named, firn.parts FROM PUBLIC;
