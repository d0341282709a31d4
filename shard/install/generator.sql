-- firn: ids made inside PostgreSQL. Layout {{.Layout}}.
--
-- A shard's ids come from two sequences, a counter and an offset. Their sum is the
-- state, tick * {{.PerTick}} + seq. A draw reads the offset, takes from the counter, reads the
-- offset again, and counts only if the offset was the same. nextval alone moves the
-- counter, and setval alone, upwards and under a lock, the offset. So states only
-- rise, for all sessions together and whatever the clock does. Where the offset is
-- moved, the low bits of the states run on.
--
-- This part is the same for all shards of a database, and may be run again.
CREATE SCHEMA IF NOT EXISTS firn;
DO $do$
DECLARE
	owner name := (SELECT nspowner::regrole FROM pg_catalog.pg_namespace WHERE nspname = 'firn');
BEGIN
	-- What another role put there would run with the rights of this one.
	IF owner <> quote_ident(current_user) THEN
		RAISE EXCEPTION 'firn: the schema firn belongs to the role %', owner USING ERRCODE = '42501',
			HINT = format('as that role, if it is trusted: SET ROLE %s', owner);
	END IF;
END $do$;
-- Refuses a database that a later firn has set up: this SQL would put earlier functions in the
-- place of later ones, and may not know what those have written. Only the text is read, so that
-- no right to call anything is needed.
DO $do$
DECLARE
	has integer := (SELECT substring(p.prosrc FROM '[0-9]+') FROM pg_catalog.pg_proc AS p WHERE p.oid = to_regprocedure('firn.sql_version()'));
BEGIN
	IF has > {{.SQLVersion}} THEN
		RAISE EXCEPTION 'firn: the functions of this database have version %, and this SQL has version {{.SQLVersion}}', has
			USING HINT = 'a newer firn wrote them: use that firn, or a later one';
	END IF;
END $do$;
GRANT USAGE ON SCHEMA firn TO PUBLIC;

-- The version of all SQL in this schema. Every firn reads it as the first number in the text.
CREATE OR REPLACE FUNCTION firn.sql_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT {{.SQLVersion}} $$;

-- What this database is. All but the layout is of a cluster, as "firn shard init"
-- makes one, and is the same on all its servers, but for the name and the code.
CREATE TABLE IF NOT EXISTS firn.server (
	one     boolean PRIMARY KEY DEFAULT true CHECK (one),
	layout  text NOT NULL,
	cluster text,
	name    text,                       -- of this server
	shards  integer,                    -- how many the cluster has
	keys    text,                       -- the scheme by which a key has a shard
	schemas text,                       -- how a shard's schema is called, as in insta%d
	servers text[],                     -- the names of all servers, as they were added
	code    text,                       -- the SQL that all functions here are of
	incarnation uuid NOT NULL DEFAULT gen_random_uuid(), -- of this server: a copy of it that opens shards takes another
	formerly uuid[] NOT NULL DEFAULT '{}', -- the incarnations of what this is a copy of
	peers   jsonb NOT NULL DEFAULT '{}', -- the incarnations of other servers that have opened shards since they were copies, by name
	system  bigint,                     -- where the incarnation was taken: a copy differs in these,
	timeline text,                      -- a promoted standby in this
	database name,
	relation oid                        -- of this table: a restored dump has another
);
INSERT INTO firn.server (layout, system, timeline, database, relation) VALUES ('{{.Layout}}', (pg_control_system()).system_identifier,
	left(pg_walfile_name(pg_current_wal_lsn()), 8), current_database(), 'firn.server'::regclass) ON CONFLICT DO NOTHING;
DO $do$
DECLARE
	has text := (SELECT layout FROM firn.server);
BEGIN
	IF has <> '{{.Layout}}' THEN
		RAISE EXCEPTION 'firn: this database has the layout %, not {{.Layout}}', has
			USING HINT = 'a database has one layout; it never changes';
	END IF;
END $do$;

-- The shards that this database knows, whether they are here or not.
CREATE TABLE IF NOT EXISTS firn.shard (
	shard    integer PRIMARY KEY CHECK (shard BETWEEN 0 AND {{.MaxShard}}),
	schema   name NOT NULL UNIQUE,
	state    text NOT NULL CHECK (state IN ('open', 'closed', 'moved')),
	term     bigint NOT NULL DEFAULT 1,
	attempt  text,                      -- whose the last step at this term was
	moved_to text,                      -- the server, when moved
	system   bigint,                    -- where it was opened: a copy differs in these,
	timeline text,                      -- a promoted standby in this
	database name,
	relation oid,                       -- of this table: a restored dump has another
	incarnation uuid                    -- that the server had then
);

-- The generators of a shard: one, or one for each of some tables. Functions name a
-- generator by its offset, which belongs to one database, as no number does.
CREATE TABLE IF NOT EXISTS firn.generator (
	shard    integer NOT NULL REFERENCES firn.shard,
	name     name NOT NULL,             -- of its function
	counter  regclass NOT NULL UNIQUE,
	"offset" regclass NOT NULL UNIQUE,
	identity oid,                       -- of the offset when it was opened: a restored one has another
	PRIMARY KEY (shard, name)
);

-- The first state of the tick of this moment, as far as the layout reaches.
CREATE OR REPLACE FUNCTION firn.now_state() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT {{.Tick "pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())"}} << {{.SeqBits}} $$;

-- The id of a state of a shard.
CREATE OR REPLACE FUNCTION firn.pack(state bigint, shard integer)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT {{.Pack "state" "shard"}} $$;

-- The incarnation of this server, or NULL where it is that of what this is a copy of.
CREATE OR REPLACE FUNCTION firn.incarnation() RETURNS uuid LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS
$$ SELECT v.incarnation FROM firn.server AS v WHERE (v.system, v.timeline, v.database, v.relation) IS NOT DISTINCT FROM
	((pg_control_system()).system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), current_database(), v.tableoid) $$;

-- Takes another incarnation, where this server has that of what it is a copy of. Two copies
-- of one server, such as two standbys that were both promoted, differ in nothing else.
CREATE OR REPLACE FUNCTION firn.take_incarnation() RETURNS uuid LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
	UPDATE firn.server AS v SET incarnation = gen_random_uuid(), formerly = v.formerly || v.incarnation, system = (pg_control_system()).system_identifier,
		timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8), database = current_database(), relation = v.tableoid
		WHERE (v.system, v.timeline, v.database, v.relation) IS DISTINCT FROM
			((pg_control_system()).system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), current_database(), v.tableoid);
	SELECT v.incarnation FROM firn.server AS v
$$;

-- Whether a shard was opened here, and not on what this is a copy of.
CREATE OR REPLACE FUNCTION firn.is_here(s firn.shard) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN (s.system, s.timeline, s.database, s.relation, s.incarnation) IS NOT DISTINCT FROM
		((pg_control_system()).system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), current_database(), 'firn.shard'::regclass::oid,
		(SELECT v.incarnation FROM firn.server AS v));
END $$;

-- What to do about a shard that gives no ids here. A server of a cluster asks for what looks
-- at the other servers: the shard may be there by the time that somebody types this.
CREATE OR REPLACE FUNCTION firn.cure(shard integer, copied boolean) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN v.cluster IS NULL THEN format('where the other one is permanently gone: SELECT firn.open(%s)', shard)
		WHEN copied THEN format('firn shard reopen %s', v.name)
		ELSE 'retry the transaction; if that does not help: firn shard doctor' END
	FROM firn.server AS v
$$;

-- Refuses a server that is a copy and has not taken an incarnation of its own: a shard that
-- it took would be unknown to the other servers, which know what this is a copy of.
CREATE OR REPLACE FUNCTION firn.check_incarnation() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	v firn.server;
BEGIN
	SELECT * INTO v FROM firn.server;
	IF firn.incarnation() IS NULL THEN
		RAISE EXCEPTION 'firn: this server is a copy of server %, or was promoted, restored or renamed', v.name USING ERRCODE = 'ID003',
			DETAIL = format('it was system %s, timeline %s, database %s, when firn.server was the table with oid %s', v.system, v.timeline, v.database, v.relation),
			HINT = format('firn shard reopen %s', v.name);
	END IF;
END $$;

-- Refuses a shard that is not open here.
CREATE OR REPLACE FUNCTION firn.check_here(s firn.shard) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF s.state = 'moved' THEN
		RAISE EXCEPTION 'firn: shard % has moved to %', s.shard, s.moved_to USING ERRCODE = 'ID002',
			DETAIL = s.moved_to, HINT = 'read the map again, and retry the transaction there';
	ELSIF s.state = 'closed' THEN
		RAISE EXCEPTION 'firn: shard % is closed here', s.shard USING ERRCODE = 'ID001',
			HINT = firn.cure(s.shard, false);
	ELSIF NOT firn.is_here(s) THEN
		RAISE EXCEPTION 'firn: shard % was opened elsewhere: this database is a copy, or was promoted, restored or renamed', s.shard USING ERRCODE = 'ID003',
			DETAIL = format('opened on system %s, timeline %s, as database %s, when firn.shard was the table with oid %s', s.system, s.timeline, s.database, s.relation),
			HINT = firn.cure(s.shard, true);
	END IF;
END $$;

-- Says why a generator gives no ids now.
CREATE OR REPLACE FUNCTION firn.refuse("offset" regclass) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	g firn.generator;
BEGIN
	SELECT * INTO g FROM firn.generator AS x WHERE x."offset" = refuse."offset";
	IF NOT FOUND THEN
		RAISE EXCEPTION 'firn: this database knows no generator %', "offset" USING ERRCODE = 'ID005',
			HINT = 'a schema that was copied here gives ids after the SQL of "firn shard sql"; run it where the original is permanently gone';
	END IF;
	PERFORM firn.check_here(s) FROM firn.shard AS s WHERE s.shard = g.shard;
	IF g.identity IS DISTINCT FROM g."offset" THEN
		RAISE EXCEPTION 'firn: shard % was opened elsewhere: this database is a copy, or was restored', g.shard USING ERRCODE = 'ID003',
			HINT = firn.cure(g.shard, true);
	END IF;
	RAISE EXCEPTION 'firn: shard % is closed here: closing or opening it was broken off', g.shard USING ERRCODE = 'ID001',
		HINT = firn.cure(g.shard, false);
END $$;

-- Waits while a mover opens a shard here, and says whether that has ended. A program that comes from the
-- server that let the shard go would else ask both servers again and again, and take the processor from the
-- mover. It waits for a moment only: less than its timeouts, which would end its transaction.
CREATE OR REPLACE FUNCTION firn.await_opening(shard integer) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	longest integer := (SELECT least({{.OpeningMs}}, min(extract(epoch FROM current_setting(x, true)::interval) * 500))
		FROM unnest('{statement_timeout,transaction_timeout}'::text[]) AS x WHERE current_setting(x, true)::interval > '0');
	waited boolean := false;
BEGIN
	BEGIN
		IF NOT pg_try_advisory_xact_lock_shared({{.OpeningClass}}, shard) THEN
			PERFORM set_config('lock_timeout', greatest(longest, 1)::text, true);
			PERFORM pg_advisory_xact_lock_shared({{.OpeningClass}}, shard);
			waited := true;
		END IF;
		-- An error ends the subtransaction, and with it the lock: the next mover need not wait for this transaction.
		RAISE EXCEPTION SQLSTATE 'ID0OK';
	EXCEPTION WHEN SQLSTATE 'ID0OK' OR lock_not_available OR deadlock_detected THEN NULL;
	END;
	RETURN waited;
END $$;

-- Begins what a transaction does on a shard: refuses one that is not here, and has
-- names mean the shard's until the transaction ends. The caller names its
-- cluster. The function sets the search path, so it has none of its own.
CREATE OR REPLACE FUNCTION firn.enter(shard integer, cluster text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	s firn.shard;
	v firn.server;
BEGIN
	-- One statement where all is well: each further one costs.
	SELECT x.schema INTO s.schema FROM firn.shard AS x, firn.server AS y
		WHERE x.shard OPERATOR(pg_catalog.=) enter.shard AND y.cluster OPERATOR(pg_catalog.=) enter.cluster AND x.state OPERATOR(pg_catalog.=) 'open'
			AND x.incarnation OPERATOR(pg_catalog.=) y.incarnation AND x.relation OPERATOR(pg_catalog.=) x.tableoid
			AND CASE WHEN pg_catalog.pg_is_in_recovery() THEN false ELSE x.database OPERATOR(pg_catalog.=) pg_catalog.current_database()
				AND x.timeline OPERATOR(pg_catalog.=) pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
				AND x.system OPERATOR(pg_catalog.=) (pg_catalog.pg_control_system()).system_identifier END;
	IF NOT FOUND THEN
		SELECT * INTO v FROM firn.server;
		IF v.cluster OPERATOR(pg_catalog.=) enter.cluster IS NOT TRUE THEN
			RAISE EXCEPTION 'firn: this server is of another cluster, %', v.cluster USING ERRCODE = 'ID006';
		ELSIF pg_catalog.pg_is_in_recovery() THEN
			RAISE EXCEPTION 'firn: this server is a standby' USING ERRCODE = 'ID003';
		END IF;
		SELECT * INTO s FROM firn.shard AS x WHERE x.shard OPERATOR(pg_catalog.=) enter.shard;
		IF NOT FOUND THEN
			RAISE EXCEPTION 'firn: there is no shard % here', shard USING ERRCODE = 'ID005';
		ELSIF s.state OPERATOR(pg_catalog.=) 'moved' AND firn.await_opening(shard) THEN
			PERFORM firn.enter(shard, cluster);
			RETURN;
		END IF;
		PERFORM firn.check_here(s);
	END IF;
	PERFORM pg_catalog.set_config('search_path', pg_catalog.concat(pg_catalog.quote_ident(s.schema), ', public'), true);
END $$;

-- A state drawn under the lock, where a fast draw did not count: the state is
-- brought up to the clock first. Nobody else moves the offset meanwhile. That draw
-- took the number n, which is left out; NULL is none.
CREATE OR REPLACE FUNCTION firn.advance("offset" regclass, n bigint) RETURNS bigint LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	counter regclass;
	usable boolean;
	t bigint;
	m bigint;
	f bigint;
	v bigint;
BEGIN
	-- What a close changes is seen in the offset, under the lock. What is looked at
	-- here stays as it is while a transaction lasts.
	SELECT g.counter, s.state = 'open' AND g.identity = g."offset" AND s.database = current_database() AND s.relation = s.tableoid
			AND s.timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)
			AND s.system = (pg_control_system()).system_identifier
			AND s.incarnation = (SELECT v.incarnation FROM firn.server AS v)
		INTO counter, usable
		FROM firn.generator AS g JOIN firn.shard AS s ON s.shard = g.shard
		WHERE g."offset" = advance."offset";
	IF usable IS NOT TRUE THEN
		PERFORM firn.refuse("offset");
	END IF;
	BEGIN
		PERFORM pg_advisory_xact_lock({{.LockClass}}, "offset"::oid::integer);
		f := pg_sequence_last_value("offset");
		IF f IS NULL THEN
			PERFORM firn.refuse("offset");
		END IF;
		t := firn.now_state();                  -- after the wait
		m := coalesce(pg_sequence_last_value(counter) + 1, 0);
		v := m + f;
		IF v < t THEN
			-- Before the offset is set, which nothing takes back. A time that is near the
			-- last one is followed without more.
			IF t >= {{.Limit}} OR (t - pg_sequence_last_value('firn.clock_state') < {{.HourStates}}) IS NOT TRUE THEN
				PERFORM firn.follow_clock(t, v);
			END IF;
			-- Above f, because m + f is below t. The low bits are those of n, so ids run
			-- on where n and what others drew after it are left out.
			f := setval("offset", t - m + (coalesce(n, m) + f & {{.PerTick}} - 1));
		END IF;
		v := nextval(counter) + f;
		-- An error ends the subtransaction and with it the lock. What was done to
		-- the sequences stays.
		RAISE EXCEPTION SQLSTATE 'ID0OK';
	EXCEPTION WHEN SQLSTATE 'ID0OK' THEN NULL;
	END;
	IF v >= {{.Limit}} THEN
		RAISE EXCEPTION 'firn: the layout has ended: no id can carry this time' USING ERRCODE = 'ID004',
			HINT = 'the layout {{.Layout}} ends on {{.End}}';
	END IF;
	RETURN v;
END $$;

-- The id of a draw: counter n between two readings, a and b, of the offset. It
-- counts if they are equal, the server is the one the shard was opened on, and the
-- state is at the clock or ahead of it, and within the layout.
--
-- A call is volatile, because its arguments are. Were the function declared so too, the
-- expression would take a snapshot, which costs a tenth.
CREATE OR REPLACE FUNCTION firn.id("offset" regclass, shard integer, a bigint, n bigint, b bigint, now_state bigint, here boolean)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
	-- One expression: each further statement costs a tenth. NULL goes the slow way.
	RETURN CASE WHEN a = b AND here AND a + n >= now_state AND a + n < {{.Limit}}
		THEN {{.Pack "(a + n)" "shard"}}
		ELSE firn.pack(firn.advance("offset", n), shard) END;
END $$;

-- k states of one generator, increasing.
CREATE OR REPLACE FUNCTION firn.states("offset" regclass, counter regclass, k integer)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	a bigint;
	first bigint;
	states bigint[];
BEGIN
	IF k IS NULL OR k NOT BETWEEN 1 AND 1000000 THEN
		RAISE EXCEPTION 'firn: 1 to 1000000 ids at a time, not %', k USING ERRCODE = '22023';
	END IF;
	LOOP
		first := firn.advance("offset", NULL);
		a := pg_catalog.pg_sequence_last_value("offset");
		states := first || ARRAY(SELECT a + pg_catalog.nextval(counter) FROM pg_catalog.generate_series(2, k));
		IF pg_catalog.pg_sequence_last_value("offset") = a AND states[k] < {{.Limit}} THEN
			RETURN states;
		END IF;
	END LOOP;
END $$;

-- The parts of an id.
CREATE OR REPLACE FUNCTION firn.decode(id bigint, OUT "time" timestamptz, OUT shard integer, OUT seq bigint)
LANGUAGE sql STABLE STRICT PARALLEL SAFE AS
$$ SELECT {{.TimeOf "id"}}, {{.ShardOf "id"}}, {{.SeqOf "id"}} $$;

-- The lowest and the highest id of an instant, whatever the shard: WHERE id BETWEEN
-- firn.first_id(...) AND firn.last_id(...). Past the end of the layout the lowest is
-- NULL, before its epoch the highest is 0: there are none.
CREATE OR REPLACE FUNCTION firn.first_id("at" timestamptz) RETURNS bigint LANGUAGE sql STABLE STRICT PARALLEL SAFE AS
$$ SELECT CASE WHEN {{.TickExact "at"}} <= {{.LastTick}}::numeric THEN greatest(0::numeric, {{.TickExact "at"}})::bigint << {{.TimeShift}} END $$;
CREATE OR REPLACE FUNCTION firn.last_id("at" timestamptz) RETURNS bigint LANGUAGE sql STABLE STRICT PARALLEL SAFE AS
$$ SELECT CASE WHEN {{.TickExact "at"}} < 0::numeric THEN 0 ELSE least({{.LastTick}}::numeric, {{.TickExact "at"}})::bigint << {{.TimeShift}} | {{.Below}}::bigint END $$;

{{template "clock" .}}
-- Refuses a server that does not evaluate arguments from left to right, on which
-- the readings of the offset would not stand around the draw.
CREATE OR REPLACE FUNCTION firn.in_order(a bigint, b bigint, c bigint) RETURNS boolean LANGUAGE plpgsql AS
$$ BEGIN RETURN a < b AND b < c; END $$;
CREATE OR REPLACE FUNCTION firn.count_argument() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT pg_catalog.set_config('firn.argument', (pg_catalog.current_setting('firn.argument')::bigint OPERATOR(pg_catalog.+) 1)::text, true)::bigint $$;
CREATE OR REPLACE FUNCTION firn.check_order() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_catalog.set_config('firn.argument', '0', true);
	IF NOT firn.in_order(firn.count_argument(), firn.count_argument(), firn.count_argument()) THEN
		RAISE EXCEPTION 'firn: this server does not evaluate arguments from left to right' USING ERRCODE = '0A000';
	END IF;
END $$;

DO $do$ BEGIN PERFORM firn.check_order(); END $do$;

-- Writes the functions of a generator anew. They carry what a fast draw compares
-- with: the identity of the offset and the database, which a copy does not have, and
-- what sorts above the names of this timeline's files, and below those of the next;
-- or of a shard that is closed, what sorts below all of them.
CREATE OR REPLACE FUNCTION firn.write_functions(g firn.generator) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
BEGIN
	SELECT * INTO STRICT s FROM firn.shard AS x WHERE x.shard = g.shard;
	EXECUTE format($f$
		CREATE OR REPLACE FUNCTION %1$I.%2$I(OUT result bigint) LANGUAGE sql VOLATILE AS $body$
		SELECT firn.id(%4$L::regclass, %3$s, pg_catalog.pg_sequence_last_value(%4$L::regclass), pg_catalog.nextval(%5$L::regclass), pg_catalog.pg_sequence_last_value(%4$L::regclass),
			firn.now_state(),
			%4$L::regclass::oid OPERATOR(pg_catalog.=) %6$s::oid AND pg_catalog.current_database() OPERATOR(pg_catalog.=) %7$L::name
				AND pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()) COLLATE "C" OPERATOR(pg_catalog.<) %8$L)
		$body$;
		CREATE OR REPLACE FUNCTION %1$I.%9$I(n integer) RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE ROWS 1000 AS $body$
		BEGIN RETURN QUERY SELECT firn.pack(v, %3$s) FROM pg_catalog.unnest(firn.states(%4$L, %5$L, n)) AS v; END
		$body$ $f$,
		s.schema, g.name, s.shard, g."offset", g.counter, coalesce(g.identity, 0), s.database,
		CASE WHEN s.state = 'open' THEN s.timeline || 'G' ELSE '' END, g.name || 's');
END $$;

-- Lets this transaction end only when it is on disk: what it says about a shard is
-- acted on elsewhere.
CREATE OR REPLACE FUNCTION firn.commit_durably() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF current_setting('synchronous_commit') IN ('off', 'local') THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
END $$;

-- Ends the generators of a shard that its row says is not open. Returns a state that
-- none of them ever passed. What it does to the sequences no rollback takes back.
CREATE OR REPLACE FUNCTION firn.halt(shard integer) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	g firn.generator;
	f bigint;
	m bigint;
	highest bigint := 0;
BEGIN
	FOR g IN SELECT * FROM firn.generator AS x WHERE x.shard = halt.shard ORDER BY x.name LOOP
		PERFORM pg_advisory_xact_lock({{.LockClass}}, g."offset"::oid::integer);
		EXECUTE format('SELECT last_value FROM %s', g."offset") INTO f;
		PERFORM setval(g."offset", f, false);   -- draws now read NULL
		EXECUTE format('SELECT last_value FROM %s', g.counter) INTO m;
		highest := greatest(highest, m + f);
		PERFORM firn.write_functions(g);
	END LOOP;
	RETURN highest;
END $$;

-- Closes a shard: from the acknowledgement of this call on it gives no id. Returns
-- a state that none of its generators ever passed.
CREATE OR REPLACE FUNCTION firn.close(shard integer) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM firn.commit_durably();
	UPDATE firn.shard AS x SET state = 'closed', term = term + 1 WHERE x.shard = close.shard;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'firn: there is no shard %', shard USING ERRCODE = 'ID005';
	END IF;
	RETURN firn.halt(shard);
END $$;

-- Opens one generator of an open shard at a state, or above its own where that is
-- higher.
CREATE OR REPLACE FUNCTION firn.start(g firn.generator, state bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	f bigint;
	n bigint;
BEGIN
	IF state >= {{.Limit}} THEN
		RAISE EXCEPTION 'firn: the state % is past the end of the layout', state USING ERRCODE = '22023',
			HINT = 'a state is what firn.close returned; an id is none';
	END IF;
	PERFORM pg_advisory_xact_lock({{.LockClass}}, g."offset"::oid::integer);
	EXECUTE format('SELECT last_value FROM %s', g."offset") INTO f;
	n := nextval(g.counter);
	-- Above f in any case: a draw that began before a close must see a change.
	f := setval(g."offset", greatest(f + 1, state - n));
	UPDATE firn.generator AS x SET identity = x."offset" WHERE x."offset" = g."offset" RETURNING * INTO g;
	PERFORM firn.write_functions(g);
	RETURN n + f;
END $$;

-- Opens the generators of a shard at a state, or above their own where that is
-- higher. A shard that has moved is not opened: another server has it.
CREATE OR REPLACE FUNCTION firn.open_at(shard integer, state bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	g firn.generator;
	lowest bigint := state;
	first bigint := state;                  -- of those that were never open
BEGIN
	PERFORM firn.commit_durably();
	PERFORM firn.check_here(s) FROM firn.shard AS s WHERE s.shard = open_at.shard AND s.state = 'moved' FOR UPDATE;
	IF (SELECT v.cluster IS NULL FROM firn.server AS v) THEN
		PERFORM firn.take_incarnation();
	ELSE
		PERFORM firn.check_incarnation();
	END IF;
	UPDATE firn.shard AS x SET state = 'open', moved_to = NULL, term = term + 1,
			system = (pg_control_system()).system_identifier, timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8), database = current_database(),
			relation = x.tableoid, incarnation = firn.incarnation()
		WHERE x.shard = open_at.shard;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'firn: there is no shard %', shard USING ERRCODE = 'ID005';
	END IF;
	FOR g IN SELECT * FROM firn.generator AS x WHERE x.shard = open_at.shard ORDER BY x.identity IS NULL, x.name LOOP
		IF g.identity IS NULL THEN
			lowest := greatest(lowest, firn.start(g, first));
		ELSE
			lowest := greatest(lowest, firn.start(g, state));
			first := lowest + {{.SecondStates}};    -- a table may have had its ids from another
		END IF;
	END LOOP;
	RETURN lowest;
END $$;

-- Opens a shard that was closed, or whose server was promoted or restored: above
-- the state that its close returned, and a second above the clock. Only where it is
-- open nowhere else.
CREATE OR REPLACE FUNCTION firn.open(shard integer, above bigint DEFAULT 0) RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT firn.check_order();
	SELECT firn.open_at(shard, greatest(above + 1, firn.follow_clock(firn.now_state(), above) + {{.SecondStates}})) $$;

-- Makes a shard in a schema, with a function of each name, or brings the functions
-- of one that is there up to date. A function of that name that is there is
-- replaced, and what it gave is left behind by a second. A shard that is not open
-- here stays so.
CREATE OR REPLACE FUNCTION firn.create_shard(shard integer, schema name, VARIADIC names name[] DEFAULT '{next_id}') RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
	g firn.generator;
	made boolean;
	used boolean := EXISTS (SELECT FROM pg_proc WHERE pronamespace = to_regnamespace(quote_ident(schema)) AND proname = ANY (names));
	highest bigint;
	x name;
BEGIN
	INSERT INTO firn.shard (shard, schema, state) VALUES (shard, schema, 'closed') ON CONFLICT DO NOTHING;
	made := FOUND;
	SELECT * INTO s FROM firn.shard AS y WHERE y.shard = create_shard.shard FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'firn: the schema % is that of another shard', schema USING ERRCODE = '42710';
	ELSIF s.schema <> schema THEN
		RAISE EXCEPTION 'firn: shard % is in the schema %', shard, s.schema USING ERRCODE = '42710';
	END IF;
	IF to_regnamespace(quote_ident(schema)) IS NULL THEN
		EXECUTE format('CREATE SCHEMA %I', schema);
	END IF;
	-- Sequences that were dropped are made anew.
	DELETE FROM firn.generator AS y WHERE y.shard = s.shard
		AND (SELECT count(*) FROM pg_class WHERE oid IN (y.counter, y."offset")) < 2;
	highest := (SELECT max(pg_sequence_last_value(y.counter) + pg_sequence_last_value(y."offset")) FROM firn.generator AS y WHERE y.shard = s.shard);
	FOR g IN SELECT * FROM firn.generator AS y WHERE y.shard = s.shard LOOP
		PERFORM firn.write_functions(g);
	END LOOP;
	FOREACH x IN ARRAY names LOOP
		CONTINUE WHEN EXISTS (SELECT FROM firn.generator AS y WHERE y.shard = s.shard AND y.name = x);
		used := used OR to_regclass(format('%I.%I', schema, x || '_counter')) IS NOT NULL;
		INSERT INTO firn.generator (shard, name, counter, "offset")
			VALUES (shard, x, firn.sequence(schema, x || '_counter'), firn.sequence(schema, x || '_offset')) RETURNING * INTO g;
		-- A table may have had its ids from another generator of the shard.
		IF NOT made AND s.state = 'open' AND firn.is_here(s) THEN
			PERFORM firn.start(g, greatest(firn.follow_clock(firn.now_state(), highest), highest) + {{.SecondStates}});
		ELSIF NOT made THEN
			PERFORM firn.write_functions(g);
		END IF;
	END LOOP;
	IF made AND used THEN
		PERFORM firn.open(shard);
	ELSIF made THEN
		PERFORM firn.open_at(shard, 0);
	END IF;
END $$;

-- Lets a role work on a shard: draw its ids, and use the tables that who calls this
-- makes there from now on.
CREATE OR REPLACE FUNCTION firn.grant_shard(shard integer, role name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s name := (SELECT x.schema FROM firn.shard AS x WHERE x.shard = grant_shard.shard);
	g firn.generator;
	f regprocedure;
BEGIN
	-- A change of a schema has all functions of the session planned anew.
	IF NOT has_schema_privilege(role, s, 'USAGE') THEN
		EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', s, role);
	END IF;
	EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %I', s, role);
	EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I GRANT USAGE, SELECT ON SEQUENCES TO %I', s, role);
	FOR g IN SELECT * FROM firn.generator AS x WHERE x.shard = grant_shard.shard LOOP
		EXECUTE format('GRANT USAGE ON SEQUENCE %s TO %I', g.counter, role);
		EXECUTE format('GRANT SELECT ON SEQUENCE %s TO %I', g."offset", role);
		-- Who calls this may have default privileges that keep functions from PUBLIC.
		FOREACH f IN ARRAY ARRAY[format('%I.%I()', s, g.name), format('%I.%I(integer)', s, g.name || 's')]::regprocedure[] LOOP
			IF NOT has_function_privilege(role, f, 'EXECUTE') THEN
				EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f, role);
			END IF;
		END LOOP;
	END LOOP;
END $$;

-- Brings what a shard has up to date, after the SQL of another version.
CREATE OR REPLACE FUNCTION firn.renew_shard(shard integer) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS
$$ SELECT firn.create_shard(s.shard, s.schema, VARIADIC ARRAY(SELECT g.name FROM firn.generator AS g WHERE g.shard = s.shard))
	FROM firn.shard AS s WHERE s.shard = renew_shard.shard AND s.state <> 'moved' $$;

-- A sequence of a schema: the one that is there, or a new one.
CREATE OR REPLACE FUNCTION firn.sequence(schema name, name text) RETURNS regclass LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	qualified text := format('%I.%I', schema, name);
BEGIN
	EXECUTE format('CREATE SEQUENCE IF NOT EXISTS %s MINVALUE 0 START 0', qualified);
	IF NOT EXISTS (SELECT FROM pg_sequence WHERE seqrelid = qualified::regclass AND seqtypid = 'bigint'::regtype
			AND seqincrement = 1 AND seqcache = 1 AND NOT seqcycle) THEN
		RAISE EXCEPTION 'firn: % is there, and not as a sequence that counts one by one without CACHE and CYCLE', qualified USING ERRCODE = '42710';
	END IF;
	RETURN qualified::regclass;
END $$;

REVOKE ALL ON FUNCTION firn.sql_version, firn.incarnation, firn.take_incarnation, firn.check_incarnation, firn.is_here, firn.cure, firn.check_here, firn.await_opening, firn.enter, firn.refuse, firn.advance(regclass, bigint), firn.id, firn.states, firn.in_order, firn.count_argument, firn.check_order, firn.write_functions,
	firn.commit_durably, firn.halt, firn.close, firn.start, firn.open_at, firn.open, firn.sequence, firn.create_shard,
	firn.grant_shard, firn.renew_shard FROM PUBLIC;
GRANT SELECT ON firn.server, firn.shard TO PUBLIC;
