-- firn: ids made inside PostgreSQL. Layout time:41@1ms,shard:13,seq:9;epoch=2025-01-01T00:00:00Z.
--
-- A shard's ids come from two sequences, a counter and an offset. Their sum is the
-- state, tick * 512 + seq. A draw reads the offset, takes from the counter, reads the
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
	IF has > 1 THEN
		RAISE EXCEPTION 'firn: the functions of this database have version %, and this SQL has version 1', has
			USING HINT = 'a newer firn wrote them: use that firn, or a later one';
	END IF;
END $do$;
GRANT USAGE ON SCHEMA firn TO PUBLIC;

-- The version of all SQL in this schema. Every firn reads it as the first number in the text.
CREATE OR REPLACE FUNCTION firn.sql_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT 1 $$;

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
INSERT INTO firn.server (layout, system, timeline, database, relation) VALUES ('time:41@1ms,shard:13,seq:9;epoch=2025-01-01T00:00:00Z', (pg_control_system()).system_identifier,
	left(pg_walfile_name(pg_current_wal_lsn()), 8), current_database(), 'firn.server'::regclass) ON CONFLICT DO NOTHING;
DO $do$
DECLARE
	has text := (SELECT layout FROM firn.server);
BEGIN
	IF has <> 'time:41@1ms,shard:13,seq:9;epoch=2025-01-01T00:00:00Z' THEN
		RAISE EXCEPTION 'firn: this database has the layout %, not time:41@1ms,shard:13,seq:9;epoch=2025-01-01T00:00:00Z', has
			USING HINT = 'a database has one layout; it never changes';
	END IF;
END $do$;

-- The shards that this database knows, whether they are here or not.
CREATE TABLE IF NOT EXISTS firn.shard (
	shard    integer PRIMARY KEY CHECK (shard BETWEEN 0 AND 8191),
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
$$ SELECT least(greatest(floor((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) - 1735689600::double precision) * 1000::double precision), 0::double precision), 2199023255552::double precision)::bigint << 9 $$;

-- The id of a state of a shard.
CREATE OR REPLACE FUNCTION firn.pack(state bigint, shard integer)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT (state >> 9) * 4193792::bigint + state + shard * 512::bigint $$;

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
	longest integer := (SELECT least(100, min(extract(epoch FROM current_setting(x, true)::interval) * 500))
		FROM unnest('{statement_timeout,transaction_timeout}'::text[]) AS x WHERE current_setting(x, true)::interval > '0');
	waited boolean := false;
BEGIN
	BEGIN
		IF NOT pg_try_advisory_xact_lock_shared(1718186607, shard) THEN
			PERFORM set_config('lock_timeout', greatest(longest, 1)::text, true);
			PERFORM pg_advisory_xact_lock_shared(1718186607, shard);
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
		PERFORM pg_advisory_xact_lock(1718186606, "offset"::oid::integer);
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
			IF t >= 1125899906842624 OR (t - pg_sequence_last_value('firn.clock_state') < 1843200000) IS NOT TRUE THEN
				PERFORM firn.follow_clock(t, v);
			END IF;
			-- Above f, because m + f is below t. The low bits are those of n, so ids run
			-- on where n and what others drew after it are left out.
			f := setval("offset", t - m + (coalesce(n, m) + f & 512 - 1));
		END IF;
		v := nextval(counter) + f;
		-- An error ends the subtransaction and with it the lock. What was done to
		-- the sequences stays.
		RAISE EXCEPTION SQLSTATE 'ID0OK';
	EXCEPTION WHEN SQLSTATE 'ID0OK' THEN NULL;
	END;
	IF v >= 1125899906842624 THEN
		RAISE EXCEPTION 'firn: the layout has ended: no id can carry this time' USING ERRCODE = 'ID004',
			HINT = 'the layout time:41@1ms,shard:13,seq:9;epoch=2025-01-01T00:00:00Z ends on 2094-09-07T15:47:35Z';
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
	RETURN CASE WHEN a = b AND here AND a + n >= now_state AND a + n < 1125899906842624
		THEN ((a + n) >> 9) * 4193792::bigint + (a + n) + shard * 512::bigint
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
		IF pg_catalog.pg_sequence_last_value("offset") = a AND states[k] < 1125899906842624 THEN
			RETURN states;
		END IF;
	END LOOP;
END $$;

-- The parts of an id.
CREATE OR REPLACE FUNCTION firn.decode(id bigint, OUT "time" timestamptz, OUT shard integer, OUT seq bigint)
LANGUAGE sql STABLE STRICT PARALLEL SAFE AS
$$ SELECT timestamptz '2025-01-01T00:00:00Z' + (id >> 42)::double precision * interval '1048.576 seconds' + (id >> 22 & 1048575::bigint)::double precision * interval '0.001 seconds', (id >> 9 & 8191::bigint)::integer, id >> 0 & 511::bigint $$;

-- The lowest and the highest id of an instant, whatever the shard: WHERE id BETWEEN
-- firn.first_id(...) AND firn.last_id(...). Past the end of the layout the lowest is
-- NULL, before its epoch the highest is 0: there are none.
CREATE OR REPLACE FUNCTION firn.first_id("at" timestamptz) RETURNS bigint LANGUAGE sql STABLE STRICT PARALLEL SAFE AS
$$ SELECT CASE WHEN floor((extract(epoch FROM at) - 1735689600::numeric) / 0.001::numeric) <= 2199023255551::numeric THEN greatest(0::numeric, floor((extract(epoch FROM at) - 1735689600::numeric) / 0.001::numeric))::bigint << 22 END $$;
CREATE OR REPLACE FUNCTION firn.last_id("at" timestamptz) RETURNS bigint LANGUAGE sql STABLE STRICT PARALLEL SAFE AS
$$ SELECT CASE WHEN floor((extract(epoch FROM at) - 1735689600::numeric) / 0.001::numeric) < 0::numeric THEN 0 ELSE least(2199023255551::numeric, floor((extract(epoch FROM at) - 1735689600::numeric) / 0.001::numeric))::bigint << 22 | 4194303::bigint END $$;

-- How far a generator follows the clock of its server.
--
-- The clock as this database followed it last: the state of that moment, and how many
-- checkpoints the server had made by then because their time had come. These are
-- sequences so that every session sees at once what another one writes, and a rollback
-- keeps it.
CREATE SEQUENCE IF NOT EXISTS firn.clock_state MINVALUE 0 START 0;
CREATE SEQUENCE IF NOT EXISTS firn.clock_checkpoints MINVALUE 0 START 0;

-- A moment as messages show it.
CREATE OR REPLACE FUNCTION firn.show_time(moment timestamptz) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS
$$ SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') $$;
CREATE OR REPLACE FUNCTION firn.show_state(state bigint) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS
$$ SELECT firn.show_time(d."time") FROM firn.decode(firn.pack(state, 0)) AS d $$;

-- How many checkpoints this server has made because their time had come. An idle server
-- counts one each checkpoint_timeout too, and a clock that jumps adds one at most: so
-- this tells how long the server has been up at least, whatever its clock says.
CREATE OR REPLACE FUNCTION firn.timed_checkpoints() RETURNS bigint LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF current_setting('server_version_num')::integer >= 170000 THEN
		RETURN pg_stat_get_checkpointer_num_timed();
	END IF;
	RETURN pg_stat_get_bgwriter_timed_checkpoints();
END $$;

-- Follows the clock to the state t. It refuses a time that no id can carry, and one that
-- is more than 30 days beyond what is known: the clock as it was followed last, a state
-- that the caller knows to be right, and the time that the server has been up since. So a
-- clock that is wrong for a moment changes nothing, and one that stays wrong is not
-- followed until an operator says that it is right.
CREATE OR REPLACE FUNCTION firn.follow_clock(t bigint, known bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	seen bigint := pg_sequence_last_value('firn.clock_state');
	jump bigint := t - greatest(seen, known);
	up double precision;    -- seconds
BEGIN
	IF t >= 1125899906842624 THEN
		RAISE EXCEPTION 'firn: the clock of this server says %, and the layout ends on 2094-09-07T15:47:35Z: no id can carry this time', firn.show_time(clock_timestamp()) USING ERRCODE = 'ID004',
			HINT = 'if the clock is wrong, set it: ids go on by themselves; if it is right, the layout has ended';
	ELSIF jump > 1327104000000 THEN
		up := (SELECT setting::double precision FROM pg_settings WHERE name = 'checkpoint_timeout')
			* (firn.timed_checkpoints() - pg_sequence_last_value('firn.clock_checkpoints'));
		IF jump - 1327104000000 > coalesce(up, 0) * 512000 THEN
			RAISE EXCEPTION 'firn: the clock of this server says %, and said % when ids followed it last', firn.show_state(t), firn.show_state(greatest(seen, known)) USING ERRCODE = 'ID009',
				HINT = 'if the clock is wrong, set it: ids go on by themselves. If it is right, say so with the date of today: SELECT firn.trust_clock(''YYYY-MM-DD'')';
		END IF;
	END IF;
	IF seen IS NULL OR t > seen THEN
		PERFORM firn.note_clock(t);
	END IF;
	RETURN t;
END $$;
CREATE OR REPLACE FUNCTION firn.note_clock(t bigint) RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp AS
$$ SELECT setval('firn.clock_state', t), setval('firn.clock_checkpoints', firn.timed_checkpoints()) $$;

-- Says for an operator that the clock of this server is right, which ids did not follow.
-- The operator says what day it is: a clock that says another one is not trusted.
CREATE OR REPLACE FUNCTION firn.trust_clock(today date) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	clock timestamptz := clock_timestamp();
	t bigint := firn.now_state();
BEGIN
	-- It is that day anywhere from 14 hours before its midnight in UTC to 12 hours after.
	IF clock AT TIME ZONE 'UTC' BETWEEN today - interval '14 hours' AND today + interval '36 hours' THEN
		IF t < 1125899906842624 THEN
			PERFORM firn.note_clock(t);
		END IF;
		PERFORM firn.follow_clock(t, NULL);
		RETURN 'ids go on from ' || firn.show_state(t);
	END IF;
	RAISE EXCEPTION 'firn: the clock of this server says %, and not %', firn.show_time(clock), today USING ERRCODE = '22023',
		HINT = 'set the clock: ids go on by themselves';
END $$;

-- Begins to follow the clock where nothing is known of it yet.
DO $do$ BEGIN
	PERFORM firn.note_clock(t) FROM firn.now_state() AS t WHERE t < 1125899906842624 AND pg_catalog.pg_sequence_last_value('firn.clock_state') IS NULL;
END $do$;

REVOKE ALL ON FUNCTION firn.show_time, firn.show_state, firn.timed_checkpoints, firn.follow_clock, firn.note_clock, firn.trust_clock FROM PUBLIC;

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
		PERFORM pg_advisory_xact_lock(1718186606, g."offset"::oid::integer);
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
	IF state >= 1125899906842624 THEN
		RAISE EXCEPTION 'firn: the state % is past the end of the layout', state USING ERRCODE = '22023',
			HINT = 'a state is what firn.close returned; an id is none';
	END IF;
	PERFORM pg_advisory_xact_lock(1718186606, g."offset"::oid::integer);
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
			first := lowest + 512000;    -- a table may have had its ids from another
		END IF;
	END LOOP;
	RETURN lowest;
END $$;

-- Opens a shard that was closed, or whose server was promoted or restored: above
-- the state that its close returned, and a second above the clock. Only where it is
-- open nowhere else.
CREATE OR REPLACE FUNCTION firn.open(shard integer, above bigint DEFAULT 0) RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT firn.check_order();
	SELECT firn.open_at(shard, greatest(above + 1, firn.follow_clock(firn.now_state(), above) + 512000)) $$;

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
			PERFORM firn.start(g, greatest(firn.follow_clock(firn.now_state(), highest), highest) + 512000);
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

-- Who owns a shard, and how that changes: the steps of a move.
--
-- The rows of firn.shard own. A mover is known by its attempt, a text of chance, and
-- has for each shard a term that is higher than all before it. Each step is one
-- transaction, which locks the shard's row first and is refused (ID007) unless the row
-- says what the mover believes. Run again after it was done, it changes nothing. So it
-- does not matter where a mover dies, how late what it sent arrives, or how many there
-- are.
--
-- What is under way, by shard, with the same word on both servers. The objects of
-- replication have the batch's name, and are only made while it has a row here.
CREATE TABLE IF NOT EXISTS firn.move (
	shard  integer PRIMARY KEY REFERENCES firn.shard,
	batch  text NOT NULL CHECK (batch ~ '^[a-z0-9]{12}$'),
	source text NOT NULL,               -- where it was when this began
	target text NOT NULL,
	loaded boolean NOT NULL,            -- the schema here is the shard, or a copy that the streams keep
	copied text,                        -- what the schema here was when the copy was made; NULL: none is made yet
	began  timestamptz NOT NULL DEFAULT now(),
	surplus text,                       -- which rows the copy here has that the server that serves lacks; NULL: none that are known
	counted boolean NOT NULL DEFAULT false -- that is so since the copy was let go, when it had all rows
);

-- Keeps what a comparison found of the copy of a shard here: rows that the server that serves lacks.
CREATE OR REPLACE FUNCTION firn.note_surplus(shard integer, batch text, surplus text, counted boolean) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS
$$ UPDATE firn.move AS m SET surplus = note_surplus.surplus, counted = note_surplus.counted WHERE m.shard = note_surplus.shard AND m.batch = note_surplus.batch AND NOT (m.counted AND note_surplus.surplus IS NOT NULL) $$;

-- The publication of a batch on this server. The other one has a subscription and this
-- one a slot of that name.
CREATE OR REPLACE FUNCTION firn.publication_of(m firn.move) RETURNS name LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS
$$ SELECT CASE WHEN v.name = m.source THEN 'firn_move_' ELSE 'firn_back_' END || m.batch FROM firn.server AS v $$;

-- The subscription of a batch on this server.
CREATE OR REPLACE FUNCTION firn.subscription_of(m firn.move) RETURNS name LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS
$$ SELECT CASE WHEN v.name = m.source THEN 'firn_back_' ELSE 'firn_move_' END || m.batch FROM firn.server AS v $$;

-- What is replicated of a schema: its tables with rows, and the mark.
CREATE OR REPLACE FUNCTION firn.replicated(schema name) RETURNS SETOF regclass LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN QUERY SELECT r.relation FROM firn.relations(schema) AS r WHERE r.rows
	UNION ALL SELECT c.oid::regclass FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = schema AND c.relname = 'firn_mark';
END $$;

-- Locks the row of a shard for a step of the mover that is at work there.
CREATE OR REPLACE FUNCTION firn.lock_shard(shard integer, term bigint, attempt text) RETURNS firn.shard LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
BEGIN
	PERFORM firn.commit_durably();
	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = lock_shard.shard FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'firn: there is no shard % here', shard USING ERRCODE = 'ID005';
	ELSIF s.term <> term OR s.attempt IS DISTINCT FROM attempt THEN
		RAISE EXCEPTION 'firn: shard % is at term % of %, not at % of %', shard, s.term, coalesce(s.attempt, 'nobody'), term, attempt USING ERRCODE = 'ID007',
			HINT = 'somebody else has worked on it since';
	END IF;
	RETURN s;
END $$;

-- The row of a shard's move here, of a batch.
CREATE OR REPLACE FUNCTION firn.lock_move(shard integer, batch text) RETURNS firn.move LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	m firn.move;
BEGIN
	SELECT * INTO m FROM firn.move AS x WHERE x.shard = lock_move.shard FOR UPDATE;
	IF FOUND AND m.batch <> batch THEN
		RAISE EXCEPTION 'firn: shard % is in a move from % to % already, of batch %', shard, m.source, m.target, m.batch USING ERRCODE = 'ID007',
			HINT = format('firn shard finish %s, or firn shard abort %1$s', shard);
	END IF;
	RETURN m;
END $$;

-- Raises the term of a shard that is open here to that of a mover. The first mover of a
-- batch begins it; where a later one finds no row, the move has ended meanwhile.
CREATE OR REPLACE FUNCTION firn.begin_move(shard integer, term bigint, attempt text, batch text, target text, first boolean) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
	m firn.move;
	here text := (SELECT v.name FROM firn.server AS v);
BEGIN
	PERFORM firn.commit_durably();
	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = begin_move.shard FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'firn: there is no shard % here', shard USING ERRCODE = 'ID005';
	ELSIF s.term = term AND s.attempt = attempt THEN
		RETURN;
	ELSIF s.term >= term THEN
		RAISE EXCEPTION 'firn: shard % is at term % already, not below %', shard, s.term, term USING ERRCODE = 'ID007',
			HINT = 'somebody else has worked on it since';
	END IF;
	PERFORM firn.check_here(s);
	m := firn.lock_move(shard, batch);
	IF m.shard IS NULL AND NOT first THEN
		RAISE EXCEPTION 'firn: the move of shard % has ended meanwhile', shard USING ERRCODE = 'ID007';
	ELSIF m.shard IS NULL THEN
		INSERT INTO firn.move (shard, batch, source, target, loaded) VALUES (shard, batch, here, target, true);
	END IF;
	UPDATE firn.shard AS x SET term = begin_move.term, attempt = begin_move.attempt WHERE x.shard = s.shard;
	PERFORM firn.make_mark(s.schema), firn.restart_generators(s.shard);
END $$;

-- Makes the table of a schema in which a server says that it has let the shard go. It
-- is replicated as the others are, and so comes after all that was written before.
CREATE OR REPLACE FUNCTION firn.make_mark(schema name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	other text;
BEGIN
	IF firn.mark(schema) IS NOT NULL THEN
		RETURN;
	ELSIF to_regclass(format('%I.firn_mark', schema)) IS NOT NULL THEN
		RAISE EXCEPTION 'firn: the table firn_mark of the schema % is none of a move', schema USING ERRCODE = '42710',
			HINT = 'ALTER TABLE ... RENAME';
	END IF;
	EXECUTE format('CREATE TABLE %I.firn_mark (term bigint PRIMARY KEY, attempt text NOT NULL, moved_to text, floor bigint, sequences jsonb)', schema);
	-- Whatever is granted by default: who can write here could say where a shard is.
	FOR other IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
			FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
			WHERE c.oid = format('%I.firn_mark', schema)::regclass AND a.grantee <> c.relowner LOOP
		EXECUTE format('REVOKE ALL ON %I.firn_mark FROM %s', schema, other);
	END LOOP;
END $$;

-- Starts the generators of an open shard again that a step has ended and rolled back. The planner
-- may test conditions in any order, and a sequence of another shard may be gone: CASE has one order.
CREATE OR REPLACE FUNCTION firn.restart_generators(shard integer) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS
$$ SELECT firn.start(g, 0) FROM firn.generator AS g WHERE CASE WHEN g.shard = restart_generators.shard THEN pg_sequence_last_value(g."offset") IS NULL ELSE false END $$;

-- The same, of a mover that was refused at the last moment.
CREATE OR REPLACE FUNCTION firn.cancel_cutover(shard integer, term bigint, attempt text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard := firn.lock_shard(shard, term, attempt);
BEGIN
	IF s.state = 'open' AND firn.is_here(s) THEN
		PERFORM firn.restart_generators(shard);
	END IF;
END $$;

-- Claims a shard for a mover on the server that it is to come to. Until it is open here
-- this one says where it is: at the owner. A copy that is not kept is to be dropped. The
-- incarnation is that which the owner knows of this server.
CREATE OR REPLACE FUNCTION firn.claim(shard integer, schema name, term bigint, attempt text, batch text, source text, target text, keep boolean,
	incarnation uuid DEFAULT firn.incarnation()) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
	m firn.move;
	made boolean;
	here text := (SELECT v.name FROM firn.server AS v);
BEGIN
	PERFORM firn.commit_durably(), firn.check_incarnation();
	IF claim.incarnation <> firn.incarnation() THEN
		RAISE EXCEPTION 'firn: this server is another one than was seen' USING ERRCODE = 'ID003', HINT = 'firn shard status';
	END IF;
	INSERT INTO firn.shard (shard, schema, state, term, moved_to) VALUES (shard, schema, 'moved', 0, source) ON CONFLICT DO NOTHING;
	made := FOUND;
	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = claim.shard FOR UPDATE;
	IF NOT FOUND OR s.schema <> schema THEN
		RAISE EXCEPTION 'firn: the schema % and the shard % do not belong together here', schema, shard USING ERRCODE = '42710';
	ELSIF s.term = term AND s.attempt = attempt THEN
		RETURN;
	ELSIF s.term >= term THEN
		RAISE EXCEPTION 'firn: shard % is at term % already, not below %', shard, s.term, term USING ERRCODE = 'ID007',
			HINT = 'somebody else has worked on it since';
	ELSIF NOT EXISTS (SELECT FROM firn.server AS v WHERE v.name = ANY (v.servers)) THEN
		-- Read after the row was written, which waits for who takes the server out.
		RAISE EXCEPTION 'firn: server % was taken out of the cluster', here USING ERRCODE = 'ID006',
			HINT = format('to take it in again: firn shard add-server %s', here);
	ELSIF NOT made THEN
		PERFORM firn.check_kept(s);
	END IF;
	m := firn.lock_move(shard, batch);
	IF m.shard IS NULL AND here <> target OR keep AND here = source AND NOT m.loaded THEN
		RAISE EXCEPTION 'firn: the copy of shard % is not kept up to date any more', shard USING ERRCODE = 'ID008';
	ELSIF m.shard IS NULL AND to_regnamespace(quote_ident(schema)) IS NOT NULL THEN
		-- The move did not make it: the end of the move must not drop it.
		RAISE EXCEPTION 'firn: there is a schema % already', schema USING ERRCODE = '42P06', HINT = 'firn shard doctor';
	ELSIF m.shard IS NULL THEN
		INSERT INTO firn.move (shard, batch, source, target, loaded) VALUES (shard, batch, source, target, false);
	END IF;
	UPDATE firn.shard AS x SET state = 'moved', moved_to = CASE here WHEN source THEN target ELSE source END,
			term = claim.term, attempt = claim.attempt, system = (pg_control_system()).system_identifier,
			timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8), database = current_database(), relation = x.tableoid, incarnation = firn.incarnation()
		WHERE x.shard = s.shard;
	IF NOT keep THEN
		UPDATE firn.move AS x SET loaded = false, copied = NULL WHERE x.shard = s.shard;
	END IF;
END $$;

-- Refuses to let go of what was known of a shard that is open here, or whose row is that
-- of what this is a copy of: terms that were seen since are forgotten.
CREATE OR REPLACE FUNCTION firn.check_kept(s firn.shard) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NOT firn.is_here(s) THEN
		RAISE EXCEPTION 'firn: what is known of shard % is of what this is a copy of, or of before it was promoted or restored', s.shard USING ERRCODE = 'ID003',
			HINT = format('firn shard reopen %s', (SELECT v.name FROM firn.server AS v));
	ELSIF s.state = 'open' THEN
		RAISE EXCEPTION 'firn: shard % is open here', s.shard USING ERRCODE = 'ID007',
			HINT = 'somebody else has worked on it since';
	END IF;
END $$;

-- Whether the schema of a shard is to be made here, in the same transaction.
CREATE OR REPLACE FUNCTION firn.begin_load(shard integer, term bigint, attempt text) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard := firn.lock_shard(shard, term, attempt);
	done boolean := (SELECT x.loaded FROM firn.move AS x WHERE x.shard = begin_load.shard);
BEGIN
	IF done IS NULL OR s.state <> 'moved' THEN
		RAISE EXCEPTION 'firn: shard % is not on its way here', shard USING ERRCODE = 'ID007';
	ELSIF NOT done AND to_regnamespace(quote_ident(s.schema)) IS NOT NULL THEN
		RAISE EXCEPTION 'firn: there is a schema % already', s.schema USING ERRCODE = '42P06',
			HINT = 'firn shard doctor';
	END IF;
	RETURN NOT done;
END $$;

-- Keeps what the schema of a shard here is while its copy is made there: false if it is not what the
-- caller has read before it was dumped. Each server is compared with itself from then on, since
-- servers of other versions print other texts.
CREATE OR REPLACE FUNCTION firn.note_copied(shard integer, term bigint, attempt text, before text) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard := firn.lock_shard(shard, term, attempt);
BEGIN
	PERFORM firn.check_here(s);
	IF before IS DISTINCT FROM firn.fingerprint(s.schema, false) THEN
		RETURN false;
	END IF;
	UPDATE firn.move AS x SET copied = before WHERE x.shard = s.shard;
	RETURN FOUND;
END $$;

-- Makes the schema that was just made here that of the shard: its generators, which
-- give nothing yet, and fences, which do not hold up replication.
CREATE OR REPLACE FUNCTION firn.end_load(shard integer, term bigint, attempt text, VARIADIC names name[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard := firn.lock_shard(shard, term, attempt);
BEGIN
	PERFORM firn.create_shard(shard, s.schema, VARIADIC names);
	PERFORM firn.raise_fence(shard, s.schema), firn.guard_tables(shard, s.schema);
	UPDATE firn.move AS x SET loaded = true, copied = firn.fingerprint(s.schema, false) WHERE x.shard = end_load.shard;
END $$;

-- What a fence does: nobody writes to a table of a shard that is not open here. It
-- looks at no state, since who reads an old snapshot would see an old one.
CREATE OR REPLACE FUNCTION firn.fence() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM firn.check_here(s) FROM firn.shard AS s WHERE s.shard = TG_ARGV[0]::integer;
	RAISE EXCEPTION 'firn: shard % moves', TG_ARGV[0] USING ERRCODE = 'ID001', HINT = 'retry the transaction';
END $$;

-- Puts fences on all relations of a schema that rows are written to. It waits for who
-- writes to them, and not for who reads.
CREATE OR REPLACE FUNCTION firn.raise_fence(shard integer, schema name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	r regclass;
BEGIN
	FOR r IN SELECT x.relation FROM firn.relations(schema) AS x LOOP
		IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = r AND tgname = 'firn_fence') THEN
			EXECUTE format('ALTER TABLE ONLY %s ENABLE TRIGGER firn_fence', r);
		ELSE
			EXECUTE format('CREATE TRIGGER firn_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION firn.fence(%s)', r, shard);
		END IF;
	END LOOP;
END $$;

-- Puts fences out of use. To drop them would wait for who reads, as a backup does.
CREATE OR REPLACE FUNCTION firn.lower_fence(schema name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	r regclass;
BEGIN
	FOR r IN SELECT x.relation FROM firn.relations(schema) AS x JOIN pg_trigger AS t ON t.tgrelid = x.relation AND t.tgname = 'firn_fence' LOOP
		EXECUTE format('ALTER TABLE ONLY %s DISABLE TRIGGER firn_fence', r);
	END LOOP;
END $$;

-- Refuses what replication brings to a copy of this server. A base backup has the subscriptions of
-- the server that it is of, and reads the same slots when it is started: what it took from them
-- would never come to that server. The worker fails, so the slot keeps the transaction. One look a
-- session is enough: a server that runs does not become a copy, and no session lives on in one. The
-- setting of the shard says that the look was made; it goes back with a transaction that fails.
CREATE OR REPLACE FUNCTION firn.check_receiver() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM firn.shard AS s WHERE s.shard = TG_ARGV[0]::integer AND firn.is_here(s)) THEN
		RAISE EXCEPTION 'firn: replication of shard % is for the server that this is a copy of, or that was promoted or restored since', TG_ARGV[0] USING ERRCODE = 'ID003',
			HINT = 'where the original lives on, drop the subscriptions of this copy without their slots';
	END IF;
	PERFORM set_config('firn.receiver_' || TG_ARGV[0], 'here', false);
	RETURN NULL;
END $$;

-- Whether a table has both triggers of firn.check_receiver. Replication calls the one for each row,
-- but the first copy of a table, and TRUNCATE, call the one for each statement: so a copy of many
-- rows is looked at once, before its first row.
CREATE OR REPLACE FUNCTION firn.is_guarded(relation regclass) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN (SELECT count(*) = 2 FROM pg_trigger AS t WHERE t.tgrelid = relation AND t.tgname IN ('firn_receiver', 'firn_receiver_all') AND t.tgenabled = 'R' AND t.tgfoid = 'firn.check_receiver()'::regprocedure);
END $$;

-- Makes these triggers on all tables of a schema that are replicated, or on so many. They do nothing on a server
-- whose sessions write. Like a fence, it waits for who writes to the tables.
CREATE OR REPLACE FUNCTION firn.guard_tables(shard integer, schema name, at_most integer DEFAULT NULL) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	r regclass;
BEGIN
	FOR r IN SELECT x FROM firn.replicated(schema) AS x WHERE NOT firn.is_guarded(x) ORDER BY x::oid LIMIT at_most LOOP
		EXECUTE format('CREATE OR REPLACE TRIGGER firn_receiver AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW WHEN (current_setting(''firn.receiver_%s'', true) IS DISTINCT FROM ''here'') EXECUTE FUNCTION firn.check_receiver(%s)', r, shard, shard);
		EXECUTE format('CREATE OR REPLACE TRIGGER firn_receiver_all BEFORE INSERT OR TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION firn.check_receiver(%s)', r, shard);
		EXECUTE format('ALTER TABLE ONLY %s ENABLE REPLICA TRIGGER firn_receiver, ENABLE REPLICA TRIGGER firn_receiver_all', r);
	END LOOP;
END $$;

-- The same on the server that is to receive later what it sends now: before the subscription is
-- there, so that no backup has the one without the other. Programs that write to a table wait until
-- this transaction ends, so it does a few tables: it is called until it says that all are done.
CREATE OR REPLACE FUNCTION firn.guard(shard integer, term bigint, attempt text) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	at_most CONSTANT integer := 8;
	s firn.shard := firn.lock_shard(shard, term, attempt);
	without bigint := (SELECT count(*) FROM firn.replicated(s.schema) AS x WHERE NOT firn.is_guarded(x));
BEGIN
	PERFORM firn.shorten_deadlock_timeout(), firn.guard_tables(s.shard, s.schema, at_most);
	RETURN without <= at_most;
END $$;

-- Has a cleaning of tables that runs by itself give way after a moment instead of a
-- second, where this role may say so.
CREATE OR REPLACE FUNCTION firn.shorten_deadlock_timeout() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM set_config('deadlock_timeout', '5ms', true);
EXCEPTION WHEN insufficient_privilege THEN NULL;
END $$;

-- Waits until no autovacuum has a lock on a shard's relations, and keeps it from taking one in this
-- transaction. An autovacuum gives way to a session that has waited for deadlock_timeout: one second where this role may
-- not shorten it, which is longer than programs may be kept waiting. This lock does not make programs wait.
CREATE OR REPLACE FUNCTION firn.hold_off_autovacuum(shard integer) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	relations text := (SELECT string_agg(format('ONLY %s', x.relation), ', ' ORDER BY x.relation::oid)
		FROM firn.shard AS s CROSS JOIN LATERAL firn.relations(s.schema) AS x WHERE s.shard = hold_off_autovacuum.shard);
BEGIN
	PERFORM firn.shorten_deadlock_timeout();
	IF relations IS NOT NULL THEN
		EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', relations);
	END IF;
END $$;

-- Waits until nobody has written to a shard's relations in a transaction that is still
-- open, and keeps all from doing so. The lock that nobody but cleaning and changes of
-- tables waits for is taken on a target, where replication writes.
CREATE OR REPLACE FUNCTION firn.lock_tables(shard integer, term bigint, attempt text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard := firn.lock_shard(shard, term, attempt);
	relations text := (SELECT string_agg(format('ONLY %s', x.relation), ', ' ORDER BY x.relation::oid) FROM firn.relations(s.schema) AS x);
	q regclass;
BEGIN
	IF s.state = 'moved' THEN -- programs that come before it is open here wait for this
		PERFORM pg_advisory_xact_lock(1718186607, s.shard);
	END IF;
	PERFORM firn.shorten_deadlock_timeout();
	IF relations IS NOT NULL THEN
		EXECUTE format('LOCK TABLE %s IN %s MODE', relations, CASE s.state WHEN 'open' THEN 'SHARE ROW EXCLUSIVE' ELSE 'SHARE UPDATE EXCLUSIVE' END);
	END IF;
	IF s.state = 'moved' THEN
		PERFORM firn.check_followed(s), firn.check_schema(s);
		-- What firn.take does too, before programs wait. Nothing is sent before this transaction has opened the shard. Where the
		-- shard was given to the other server, what comes from there is not sent again: this call came late.
		PERFORM firn.add_to_publication(s.schema, firn.publication_of(m)) FROM firn.move AS m CROSS JOIN firn.server AS v
		WHERE m.shard = s.shard AND coalesce(firn.given_to(s), v.name) = v.name;
	END IF;
	IF s.state = 'open' THEN
		FOR q IN SELECT x.sequence FROM firn.sequences(s.schema) AS x LOOP
			-- Changes nothing: it waits for who has drawn, and holds up who draws.
			EXECUTE format('ALTER SEQUENCE %s CACHE %s', q, (SELECT seqcache FROM pg_sequence WHERE seqrelid = q));
		END LOOP;
	END IF;
END $$;

-- Refuses a copy of which not all relations are kept up to date.
CREATE OR REPLACE FUNCTION firn.check_followed(s firn.shard) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	missing text := (SELECT string_agg(x::text, ', ') FROM firn.replicated(s.schema) AS x WHERE NOT EXISTS (
		SELECT FROM firn.move AS m JOIN pg_subscription AS i ON i.subname = firn.subscription_of(m) JOIN pg_subscription_rel AS r ON r.srsubid = i.oid
		WHERE m.shard = s.shard AND m.loaded AND i.subenabled AND r.srrelid = x AND r.srsubstate = 'r') OR NOT firn.is_guarded(x));
BEGIN
	IF NOT firn.is_here(s) OR missing IS NOT NULL THEN
		RAISE EXCEPTION 'firn: the copy of shard % is not kept up to date%', s.shard, coalesce(': ' || missing, '') USING ERRCODE = 'ID008',
			HINT = format('firn shard abort %s, and move it again', s.shard);
	END IF;
END $$;

-- The sequences of a schema besides those that ids come from, and what they are at.
CREATE OR REPLACE FUNCTION firn.sequences(schema name) RETURNS TABLE (sequence regclass, name text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT c.oid::regclass, c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
	WHERE n.nspname = schema AND c.relkind = 'S'
		AND NOT EXISTS (SELECT FROM firn.generator AS g WHERE c.oid IN (g.counter, g."offset"))
	ORDER BY c.relname COLLATE "C";
END $$;
CREATE OR REPLACE FUNCTION firn.read_sequences(schema name) RETURNS jsonb LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	q record;
	one jsonb;
	every jsonb := '{}';
BEGIN
	FOR q IN SELECT * FROM firn.sequences(schema) LOOP
		EXECUTE format('SELECT jsonb_build_array(last_value::text, is_called) FROM %s', q.sequence) INTO one;
		every := every || jsonb_build_object(q.name, one);
	END LOOP;
	RETURN every;
END $$;
CREATE OR REPLACE FUNCTION firn.write_sequences(schema name, every jsonb) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM setval(q.sequence, (every -> q.name ->> 0)::bigint, (every -> q.name ->> 1)::boolean) FROM firn.sequences(schema) AS q WHERE every ? q.name;
END $$;

-- Sets only the sequences that are behind these values. One that an operator has advanced keeps its value.
-- Of a sequence with CYCLE nobody can tell which of two values came later: it gets that of the mark.
CREATE OR REPLACE FUNCTION firn.advance_sequences(schema name, every jsonb) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
	SELECT firn.write_sequences(schema, (SELECT jsonb_object_agg(q.name, every -> q.name)
		FROM firn.sequences(schema) AS q JOIN pg_sequence AS p ON p.seqrelid = q.sequence, firn.read_sequences(schema) AS now
		WHERE every ? q.name AND (p.seqcycle OR ((every -> q.name ->> 0)::numeric - (now -> q.name ->> 0)::numeric) * sign(p.seqincrement) > 0
			OR every -> q.name = jsonb_build_array(now -> q.name ->> 0, true) AND NOT (now -> q.name ->> 1)::boolean)))
$$;

-- Lets a shard go, after firn.lock_tables in the same transaction. Its commit is the instant
-- from which the shard is not here, and at which it can be only at moved_to. Returns a
-- state that no generator here ever passed. Consumers are publications of others whose
-- readers know of the move.
CREATE OR REPLACE FUNCTION firn.let_go(shard integer, term bigint, attempt text, moved_to text, consumers text[]) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard := firn.lock_shard(shard, term, attempt);
	m firn.move;
	f bigint;
	sequences jsonb;
BEGIN
	IF s.state = 'moved' THEN
		EXECUTE format('SELECT floor FROM %I.firn_mark WHERE term = $1', s.schema) INTO f USING term;
		RETURN f;
	END IF;
	PERFORM firn.check_here(s);
	SELECT * INTO m FROM firn.move AS x WHERE x.shard = s.shard FOR UPDATE;
	IF NOT FOUND OR moved_to NOT IN (m.source, m.target) OR moved_to = (SELECT v.name FROM firn.server AS v) THEN
		RAISE EXCEPTION 'firn: shard % is not on its way to %', shard, moved_to USING ERRCODE = 'ID007';
	END IF;
	PERFORM firn.check_schema(s);
	IF firn.published(s.schema, firn.publication_of(m)) IS DISTINCT FROM ARRAY(SELECT x FROM firn.replicated(s.schema) AS x ORDER BY x::oid) THEN
		RAISE EXCEPTION 'firn: not all tables of the schema % are replicated to %, or others besides', s.schema, moved_to USING ERRCODE = 'ID008',
			HINT = format('it was changed since the copy began: firn shard abort %s, and move it again', shard);
	END IF;
	PERFORM firn.check_streams(s, moved_to, consumers), firn.raise_fence(s.shard, s.schema), firn.guard_tables(s.shard, s.schema);
	sequences := firn.read_sequences(s.schema);
	UPDATE firn.shard AS x SET state = 'moved', moved_to = let_go.moved_to WHERE x.shard = s.shard;
	-- Last: what ends the generators no rollback takes back.
	f := firn.halt(s.shard);
	EXECUTE format('INSERT INTO %I.firn_mark (term, attempt, moved_to, floor, sequences) VALUES ($1, $2, $3, $4, $5)', s.schema)
		USING term, attempt, moved_to, f, sequences;
	-- After the mark, in the order of this transaction: what comes back is not sent again.
	PERFORM firn.remove_from_publication(s.schema, firn.publication_of(m));
	RETURN f;
END $$;

-- Refuses a shard whose schema here was changed since its copy was made.
CREATE OR REPLACE FUNCTION firn.check_schema(s firn.shard) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	was text := (SELECT m.copied FROM firn.move AS m WHERE m.shard = s.shard);
	is_now text := firn.fingerprint(s.schema, false);
BEGIN
	IF was IS DISTINCT FROM is_now THEN
		RAISE EXCEPTION 'firn: the schema % was changed since the copy was made', s.schema USING ERRCODE = 'ID008',
			DETAIL = left((SELECT string_agg(x, E'\n') FROM (
				(SELECT 'now: ' || x FROM unnest(string_to_array(is_now, E'\n') || NULL) AS x EXCEPT SELECT 'now: ' || x FROM unnest(string_to_array(was, E'\n')) AS x)
				UNION ALL (SELECT 'before: ' || x FROM unnest(string_to_array(was, E'\n') || NULL) AS x EXCEPT SELECT 'before: ' || x FROM unnest(string_to_array(is_now, E'\n')) AS x)) AS y (x)), 2000),
			HINT = format('firn shard abort %s, and move it again', s.shard);
	END IF;
END $$;

-- The tables of a schema in a publication.
CREATE OR REPLACE FUNCTION firn.published(schema name, publication name) RETURNS regclass[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN (SELECT ARRAY(SELECT c.oid::regclass FROM pg_publication AS p JOIN pg_publication_rel AS r ON r.prpubid = p.oid JOIN pg_class AS c ON c.oid = r.prrelid
		JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE p.pubname = publication AND n.nspname = schema ORDER BY c.oid));
END $$;

-- Puts the tables of a schema into a publication, and takes them out.
CREATE OR REPLACE FUNCTION firn.add_to_publication(schema name, publication name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	tables text := (SELECT string_agg(format('ONLY %s', x), ', ') FROM firn.replicated(schema) AS x WHERE x <> ALL (firn.published(schema, publication)));
BEGIN
	IF tables IS NOT NULL THEN
		EXECUTE format('ALTER PUBLICATION %I ADD TABLE %s', publication, tables);
	END IF;
END $$;
CREATE OR REPLACE FUNCTION firn.remove_from_publication(schema name, publication name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	tables regclass[] := firn.published(schema, publication);
BEGIN
	IF tables <> '{}' THEN
		EXECUTE format('ALTER PUBLICATION %I DROP TABLE %s', publication, (SELECT string_agg(format('ONLY %s', t), ', ') FROM unnest(tables) AS t));
	END IF;
END $$;

-- Opens a shard on the server that it was let go to, on the word that has come with its
-- rows: false while that has not come. Who does it does not matter.
CREATE OR REPLACE FUNCTION firn.take(shard integer, term bigint, attempt text) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
	m firn.move;
	f bigint;
	sequences jsonb;
BEGIN
	PERFORM firn.commit_durably();
	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = take.shard FOR UPDATE;
	IF s.state = 'open' AND s.term = term + 1 AND s.attempt = attempt || '+' THEN
		RETURN true;
	END IF;
	s := firn.lock_shard(shard, term, attempt);
	SELECT * INTO m FROM firn.move AS x WHERE x.shard = s.shard FOR UPDATE;
	IF s.state <> 'moved' OR NOT m.loaded IS TRUE THEN
		RAISE EXCEPTION 'firn: shard % is not on its way here', shard USING ERRCODE = 'ID007';
	ELSIF NOT firn.is_here(s) THEN
		RAISE EXCEPTION 'firn: shard % was on its way to what this is a copy of, or was before it was promoted or restored', shard USING ERRCODE = 'ID003';
	END IF;
	EXECUTE format('SELECT floor, sequences FROM %I.firn_mark WHERE term = $1 AND attempt = $2 AND moved_to = (SELECT name FROM firn.server)', s.schema)
		INTO f, sequences USING term, attempt;
	IF f IS NULL THEN
		RETURN false;
	END IF;
	PERFORM firn.shorten_deadlock_timeout();
	PERFORM firn.lower_fence(s.schema), firn.write_sequences(s.schema, sequences);
	-- What replication has written here is not sent back; what is written from now on is.
	PERFORM firn.add_to_publication(s.schema, firn.publication_of(m));
	-- No mover is called so: none has begun to move it on.
	UPDATE firn.shard AS x SET state = 'open', moved_to = NULL, term = take.term + 1, attempt = take.attempt || '+' WHERE x.shard = s.shard;
	PERFORM firn.start(g, f + 1) FROM firn.generator AS g WHERE g.shard = s.shard;
	RETURN true;
END $$;

-- Calls what firn.lock_tables, firn.let_go and firn.take call, for no shard and a schema that is not there. With
-- plan_cache_mode = force_generic_plan the session has then planned these functions, and does so no more while programs wait.
CREATE OR REPLACE FUNCTION firn.prepare_session() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
	PERFORM FROM firn.streams_of_others('');
	PERFORM firn.published('', ''), firn.raise_fence(-1, ''), firn.guard_tables(-1, ''), firn.read_sequences(''), firn.halt(-1),
		firn.remove_from_publication('', '');
	PERFORM firn.lower_fence(''), firn.write_sequences('', '{}'), firn.add_to_publication('', '');
END $$;

-- Has a server that was promoted or restored know where a shard is, which is open there
-- at that term. Its copy is not kept up to date any more.
CREATE OR REPLACE FUNCTION firn.record_owner(shard integer, term bigint, moved_to text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
BEGIN
	PERFORM firn.commit_durably();
	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = record_owner.shard FOR UPDATE;
	IF firn.is_here(s) AND s.state = 'moved' AND s.term >= term THEN
		RETURN;
	ELSIF NOT FOUND OR firn.is_here(s) OR s.term > term THEN
		RAISE EXCEPTION 'firn: shard % has been worked on here since', shard USING ERRCODE = 'ID007';
	END IF;
	DELETE FROM firn.move AS x WHERE x.shard = s.shard;
	UPDATE firn.shard AS x SET state = 'moved', moved_to = record_owner.moved_to, term = record_owner.term, attempt = NULL, system = (pg_control_system()).system_identifier,
			timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8), database = current_database(), relation = x.tableoid, incarnation = firn.incarnation()
		WHERE x.shard = s.shard;
	PERFORM firn.forget_dropped();
	PERFORM firn.halt(s.shard) WHERE EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = s.schema);
END $$;

-- To which server a shard was let go by what its row says, as far as is known here. If the copy
-- is dropped between the two looks, the row was read too early as well: the caller looks again.
CREATE OR REPLACE FUNCTION firn.given_to(s firn.shard) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	word text;
BEGIN
	IF to_regclass(format('%I.firn_mark', s.schema)) IS NOT NULL THEN
		EXECUTE format('SELECT moved_to FROM %I.firn_mark WHERE term = $1 AND attempt = $2', s.schema) INTO word USING s.term, s.attempt;
	END IF;
	RETURN word;
EXCEPTION WHEN undefined_table OR invalid_schema_name THEN
	RAISE EXCEPTION 'firn: the copy of shard % is being dropped', s.shard USING ERRCODE = 'serialization_failure';
END $$;

-- Refuses that a shard is opened on another server: where it is open here, where it was let go
-- to this server, so that it is to be opened here, and where this server knows more of it than
-- the other one. It changes nothing.
CREATE OR REPLACE FUNCTION firn.may_revoke(shard integer, term bigint, owner text, was_term bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
BEGIN
	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = may_revoke.shard FOR UPDATE;
	IF NOT FOUND THEN
		RETURN;
	ELSIF s.state = 'open' AND firn.is_here(s) OR s.term >= term THEN
		RAISE EXCEPTION 'firn: shard % has been worked on here since', shard USING ERRCODE = 'ID007';
	ELSIF s.state = 'moved' AND firn.is_here(s) AND firn.given_to(s) = (SELECT v.name FROM firn.server AS v) THEN
		RAISE EXCEPTION 'firn: shard % was let go to this server, which is about to open it', shard USING ERRCODE = 'ID007',
			HINT = (SELECT CASE WHEN m.source = v.name THEN format('firn shard revert %s', s.shard) ELSE format('firn shard move %s --to %s', s.shard, v.name) END
				FROM firn.server AS v LEFT JOIN firn.move AS m ON m.shard = s.shard);
	ELSIF s.state = 'moved' AND firn.given_to(s) = owner AND s.term > was_term THEN
		-- What the other one has is of before: this one had the shard since.
		RAISE EXCEPTION 'firn: shard % was here last, and % does not know what was written since', shard, owner USING ERRCODE = 'ID007',
			HINT = format('firn shard reopen %s --shards %s', (SELECT v.name FROM firn.server AS v), shard);
	END IF;
END $$;

-- Keeps a shard from coming here, which is about to be opened on another server, whatever
-- was said before and arrives yet, unless firn.may_revoke refuses that. Returns a state that no generator here ever
-- passed; NULL where there is none.
CREATE OR REPLACE FUNCTION firn.revoke(shard integer, schema name, term bigint, owner text, was_term bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
BEGIN
	PERFORM firn.commit_durably();
	-- Where nothing was known, nothing can be of what this is a copy of.
	INSERT INTO firn.shard (shard, schema, state, term, moved_to, system, timeline, database, relation, incarnation)
		VALUES (shard, schema, 'moved', 0, owner, (pg_control_system()).system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), current_database(), 'firn.shard'::regclass,
			firn.incarnation())
		ON CONFLICT DO NOTHING;
	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = revoke.shard FOR UPDATE;
	PERFORM firn.may_revoke(shard, term, owner, was_term);
	DELETE FROM firn.move AS x WHERE x.shard = s.shard;
	UPDATE firn.shard AS x SET state = 'moved', moved_to = owner, term = revoke.term, attempt = NULL WHERE x.shard = s.shard;
	RETURN (SELECT firn.halt(s.shard) WHERE EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = s.schema));
END $$;

-- Closes a shard that this server serves, and that another server is about to open at a higher
-- term: one of the two was put back to an earlier state, so both serve it. The rows here stay.
-- It is refused where this server's term is above was_term, that of the other server. Returns
-- a state that no generator here ever passed.
CREATE OR REPLACE FUNCTION firn.overrule(shard integer, term bigint, owner text, was_term bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
BEGIN
	PERFORM firn.commit_durably();
	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = overrule.shard FOR UPDATE;
	IF NOT FOUND OR s.state <> 'open' OR NOT firn.is_here(s) OR s.term > was_term OR s.term >= term THEN
		RAISE EXCEPTION 'firn: shard % has been worked on here since', shard USING ERRCODE = 'ID007';
	END IF;
	PERFORM firn.raise_fence(s.shard, s.schema);
	DELETE FROM firn.move AS x WHERE x.shard = s.shard;
	UPDATE firn.shard AS x SET state = 'moved', moved_to = owner, term = overrule.term, attempt = NULL WHERE x.shard = s.shard;
	-- Last: what ends the generators no rollback takes back.
	RETURN firn.halt(s.shard);
END $$;

-- Has this server, which is promoted, restored or a copy, take an incarnation of its own before
-- it opens shards, if it still has the one that was seen. A server that is no copy keeps it.
CREATE OR REPLACE FUNCTION firn.begin_reopen(was uuid) RETURNS uuid LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM firn.commit_durably();
	PERFORM FROM firn.server AS v WHERE v.incarnation = was FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'firn: this server is another one than was seen, or somebody else reopens it' USING ERRCODE = 'ID007',
			HINT = (SELECT format('firn shard reopen %s, which looks at all servers again', v.name) FROM firn.server AS v);
	END IF;
	RETURN firn.take_incarnation();
END $$;

-- Keeps the incarnation of another server that is about to open shards, of which this server
-- knows the one that it had before. Where another copy of that server was reopened since, both
-- would serve the same shards: only an operator knows that the other one is gone (anyway).
CREATE OR REPLACE FUNCTION firn.know(server text, incarnation uuid, formerly uuid[], anyway boolean) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	known uuid;
BEGIN
	PERFORM firn.commit_durably();
	SELECT (v.peers ->> server)::uuid INTO known FROM firn.server AS v FOR UPDATE;
	IF known <> ALL (know.formerly || know.incarnation) AND NOT anyway THEN
		RAISE EXCEPTION 'firn: another copy of server % was reopened since', server USING ERRCODE = 'ID003',
			HINT = 'firn shard status';
	END IF;
	UPDATE firn.server AS v SET peers = v.peers || jsonb_build_object(know.server, know.incarnation) WHERE known IS DISTINCT FROM know.incarnation;
END $$;

-- Refuses a shard that must not be opened anew on this server, or whose row was seen on
-- what this is a copy of: the shard may have moved from there since. It changes nothing:
-- what firn.revoke takes from the others is not given back.
CREATE OR REPLACE FUNCTION firn.may_reopen(shard integer, was_term bigint, was_state text, system bigint, timeline text, incarnation uuid) RETURNS firn.shard LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
BEGIN
	SELECT * INTO STRICT s FROM firn.shard AS x WHERE x.shard = may_reopen.shard FOR UPDATE;
	IF s.term <> was_term OR s.state <> was_state THEN
		RAISE EXCEPTION 'firn: shard % was % at term %, and is % at %: somebody else works on it', shard, was_state, was_term, s.state, s.term USING ERRCODE = 'ID007';
	ELSIF (system, timeline, incarnation) IS DISTINCT FROM
			((pg_control_system()).system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), (SELECT v.incarnation FROM firn.server AS v)) THEN
		RAISE EXCEPTION 'firn: shard % was seen on what this is a copy of, or before this was promoted or restored', shard USING ERRCODE = 'ID007',
			HINT = format('firn shard reopen %s, which looks at all servers again', (SELECT v.name FROM firn.server AS v));
	ELSIF s.state = 'moved' AND firn.given_to(s) IS NULL THEN
		RAISE EXCEPTION 'firn: nothing on this server says that its copy of shard % is complete', shard USING ERRCODE = 'ID003';
	ELSIF s.state = 'moved' AND firn.given_to(s) = (SELECT v.name FROM firn.server AS v) AND NOT firn.is_here(s) THEN
		-- The word may have come to what this is a copy of after rows that are not here.
		RAISE EXCEPTION 'firn: shard % was let go to what this is a copy of: rows may be missing here', shard USING ERRCODE = 'ID003',
			HINT = format('%s has them all: firn shard reopen %1$s --shards %s', s.moved_to, shard);
	END IF;
	RETURN s;
END $$;

-- Counts the copy of a shard that went elsewhere as it is, by the word of an operator that
-- there is no other: firn.reopen comes next in the same transaction. The shard's own sequences
-- continue at the numbers of the last mark that has come here, and none is set back.
CREATE OR REPLACE FUNCTION firn.make_do(shard integer, was_term bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
	sequences jsonb;
BEGIN
	UPDATE firn.shard AS x SET state = 'closed', moved_to = NULL WHERE x.shard = make_do.shard AND x.term = was_term AND x.state = 'moved' RETURNING * INTO s;
	IF s.shard IS NULL THEN
		RAISE EXCEPTION 'firn: somebody else works on shard %', shard USING ERRCODE = 'ID007';
	ELSIF firn.mark(s.schema) IS NOT NULL THEN
		EXECUTE format('SELECT m.sequences FROM %I.firn_mark AS m WHERE m.sequences IS NOT NULL ORDER BY m.term DESC LIMIT 1', s.schema) INTO sequences;
		PERFORM firn.advance_sequences(s.schema, sequences);
	END IF;
END $$;

-- The state at which a shard is opened that may have been open elsewhere: above the state of
-- the latest clock that a caller has read, and a second above this server's. No later
-- reading takes back a state that is years ahead, so neither clock is followed far beyond
-- what is known.
CREATE OR REPLACE FUNCTION firn.floor_above(above bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	t bigint := firn.follow_clock(firn.now_state(), NULL);
BEGIN
	IF above - t > 1327104000000 THEN
		RAISE EXCEPTION 'firn: another clock says %, and the clock of this server says %', firn.show_state(above), firn.show_state(t) USING ERRCODE = 'ID009',
			HINT = 'set the clock that is wrong, then run the same command again';
	END IF;
	RETURN greatest(above + 1, t + 512000);
END $$;

-- Opens a shard at a term, above a state, on a server that was promoted or restored, or
-- on which it was closed; or that let it go, or was about to take it, where nobody else
-- can have it any more: after firn.revoke on all others.
CREATE OR REPLACE FUNCTION firn.reopen(shard integer, was_term bigint, was_state text, system bigint, timeline text, incarnation uuid, term bigint, above bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard := firn.may_reopen(shard, was_term, was_state, system, timeline, incarnation);
	sequences jsonb;
BEGIN
	PERFORM firn.commit_durably();
	IF s.state = 'moved' AND firn.given_to(s) = (SELECT v.name FROM firn.server AS v) THEN
		EXECUTE format('SELECT sequences FROM %I.firn_mark WHERE term = $1', s.schema) INTO sequences USING s.term;
		PERFORM firn.advance_sequences(s.schema, sequences);
	END IF;
	DELETE FROM firn.move AS x WHERE x.shard = s.shard;
	PERFORM firn.lower_fence(s.schema);
	UPDATE firn.shard AS x SET state = 'closed', moved_to = NULL, term = reopen.term - 1, attempt = NULL WHERE x.shard = s.shard;
	PERFORM firn.check_order(), firn.open_at(shard, firn.floor_above(above)), firn.forget_dropped();
END $$;

-- The objects of a batch. They are made in a transaction that finds a row of it, and go
-- when there is none.

-- Locks the rows of a batch here, and returns one. It fails where there is none.
CREATE OR REPLACE FUNCTION firn.lock_batch(batch text) RETURNS firn.move LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	m firn.move;
BEGIN
	PERFORM FROM firn.move AS x WHERE x.batch = lock_batch.batch ORDER BY x.shard FOR UPDATE;
	SELECT * INTO m FROM firn.move AS x WHERE x.batch = lock_batch.batch LIMIT 1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'firn: the move % has ended meanwhile', batch USING ERRCODE = 'ID007';
	END IF;
	RETURN m;
END $$;

-- Makes the publication of a batch, of all its shards. On the target it is there before
-- the source's subscription, which so knows all tables once and for all; and is emptied,
-- by firn.empty_publication, before the slot is there: nothing is sent back that replication wrote.
CREATE OR REPLACE FUNCTION firn.publish(batch text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	m firn.move := firn.lock_batch(batch);
	publication name := firn.publication_of(m);
BEGIN
	IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = publication) THEN
		EXECUTE format('CREATE PUBLICATION %I', publication);
		PERFORM firn.add_to_publication(s.schema, publication) FROM firn.move AS x JOIN firn.shard AS s ON s.shard = x.shard WHERE x.batch = m.batch ORDER BY s.shard;
	END IF;
END $$;
CREATE OR REPLACE FUNCTION firn.empty_publication(batch text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	m firn.move := firn.lock_batch(batch);
BEGIN
	PERFORM FROM firn.shard AS s WHERE s.shard IN (SELECT x.shard FROM firn.move AS x WHERE x.batch = m.batch) ORDER BY s.shard FOR UPDATE;
	PERFORM firn.remove_from_publication(s.schema, firn.publication_of(m)) FROM firn.move AS x JOIN firn.shard AS s ON s.shard = x.shard WHERE x.batch = m.batch AND s.state <> 'open';
END $$;

-- What this server would record of a statement inside of a function, with a password in
-- it, as it is set now and as this role may not change. Whatever else is logged shows the
-- statements of clients only, which have none.
CREATE OR REPLACE FUNCTION firn.password_leaks() RETURNS TABLE (setting text, value text) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	FOR setting, value IN SELECT p.name, p.setting FROM pg_settings AS p
		WHERE p.name = 'pg_stat_statements.track' AND p.setting = 'all' AND current_setting('pg_stat_statements.track_utility', true) = 'on'
			OR p.name = 'pgaudit.log' AND p.setting ~* '\m(all|ddl)\M'
			-- What is logged for whoever looks for faults has the statement that it came from.
			OR p.name = 'log_error_verbosity' AND p.setting <> 'terse' AND current_setting('log_min_messages') LIKE 'debug%'
		ORDER BY p.name LOOP
		CONTINUE WHEN (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user);
		IF current_setting('server_version_num')::integer >= 150000 THEN
			CONTINUE WHEN has_parameter_privilege(setting, 'SET');
		END IF;
		RETURN NEXT;
	END LOOP;
END $$;

-- Keeps a password that is in a statement of this transaction out of what the server
-- records, or refuses.
CREATE OR REPLACE FUNCTION firn.hide_password() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	loud text := (SELECT string_agg(format('%s = %s', x.setting, x.value), ', ') FROM firn.password_leaks() AS x);
	one record;
BEGIN
	IF loud IS NOT NULL THEN
		RAISE EXCEPTION 'firn: this server would record the password of the other one: %, which % may not change', loud, current_user USING ERRCODE = '42501';
	END IF;
	FOR one IN SELECT * FROM (VALUES ('pg_stat_statements.track', 'top'), ('pgaudit.log', 'none'), ('log_error_verbosity', 'terse'),
			('debug_print_parse', 'off'), ('debug_print_rewritten', 'off'), ('debug_print_plan', 'off')) AS x (name, value)
			WHERE current_setting(x.name, true) IS NOT NULL LOOP
		BEGIN
			PERFORM set_config(one.name, one.value, true);
		EXCEPTION WHEN insufficient_privilege THEN NULL; -- it is set so that it does no harm
		END;
	END LOOP;
END $$;

-- Makes the subscription of a batch, to a slot that there is or is to be. On the target
-- it copies, and on the source it begins when it is told to. It has to find as many tables
-- as there are: else the address leads elsewhere. The address, which may have a password,
-- is a setting with which the session began: no statement and no parameter has it.
CREATE OR REPLACE FUNCTION firn.subscribe(batch text, tables bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	m firn.move := firn.lock_batch(batch);
	subscription name := firn.subscription_of(m);
	copies boolean := m.target = (SELECT v.name FROM firn.server AS v);
BEGIN
	-- Nothing is copied into a shard that is open here, however late this comes.
	PERFORM CASE WHEN copies THEN firn.check_kept(s) END FROM firn.shard AS s JOIN firn.move AS x ON x.shard = s.shard WHERE x.batch = m.batch FOR UPDATE OF s;
	IF NOT EXISTS (SELECT FROM pg_subscription WHERE subname = subscription AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN
		IF EXISTS (SELECT FROM firn.move AS x JOIN firn.shard AS s ON s.shard = x.shard CROSS JOIN LATERAL firn.replicated(s.schema) AS r WHERE x.batch = m.batch AND NOT firn.is_guarded(r)) THEN
			RAISE EXCEPTION 'firn: tables of a shard would take what comes on a copy of this server, too' USING ERRCODE = 'ID007', HINT = 'run the same command again';
		END IF;
		IF current_setting('firn.address') ~ 'password|://[^/]*:.*@' THEN
			PERFORM firn.hide_password();
		END IF;
		BEGIN
			-- PostgreSQL 18 has parallel workers apply large transactions unless told otherwise, and before 18.2 the
			-- transactions of a worker that failed could be lost.
			EXECUTE format('CREATE SUBSCRIPTION %I CONNECTION %L PUBLICATION %1$I WITH (create_slot = false, slot_name = %1$I, copy_data = %3$s, enabled = %3$s, streaming = off)',
				subscription, current_setting('firn.address'), copies::text);
		EXCEPTION WHEN OTHERS OR query_canceled THEN
			-- Said anew, because the log has the statement that an error came from. An address
			-- that cannot be read is in the message.
			RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = CASE SQLSTATE WHEN '42601' THEN 'firn: the address of the other server cannot be read' ELSE SQLERRM END;
		END;
		IF (SELECT count(*) FROM pg_subscription AS x JOIN pg_subscription_rel AS r ON r.srsubid = x.oid WHERE x.subname = subscription) <> tables THEN
			RAISE EXCEPTION 'firn: the other server is not where % looks for it, or its tables have just changed', (SELECT v.name FROM firn.server AS v) USING ERRCODE = 'ID008';
		END IF;
	END IF;
END $$;
CREATE OR REPLACE FUNCTION firn.enable_subscription(batch text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	EXECUTE format('ALTER SUBSCRIPTION %I ENABLE', firn.subscription_of(firn.lock_batch(batch)));
END $$;

-- Ends the move of a shard on the server that has it: before the other one drops its
-- copy, so that nobody goes on with it.
CREATE OR REPLACE FUNCTION firn.end_move(shard integer, term bigint, attempt text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard := firn.lock_shard(shard, term, attempt);
	m firn.move;
BEGIN
	PERFORM firn.check_here(s);
	DELETE FROM firn.move AS x WHERE x.shard = s.shard RETURNING * INTO m;
	IF m.shard IS NOT NULL THEN
		PERFORM firn.remove_from_publication(s.schema, firn.publication_of(m)), firn.drop_mark(s.schema);
	END IF;
END $$;
CREATE OR REPLACE FUNCTION firn.drop_mark(schema name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF firn.mark(schema) IS NOT NULL THEN
		EXECUTE format('DROP TABLE %s', firn.mark(schema));
	END IF;
END $$;

-- Drops the subscription of a batch here, if no shard of it is left but these, which are
-- not here. Without one, tables that are still being copied can be dropped.
CREATE OR REPLACE FUNCTION firn.unsubscribe(batch text, shards integer[], terms bigint[], attempts text[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	one record;
BEGIN
	FOR one IN SELECT * FROM unnest(shards, terms, attempts) AS x (shard, term, attempt) ORDER BY x.shard LOOP
		PERFORM firn.check_kept(firn.lock_shard(one.shard, one.term, one.attempt));
	END LOOP;
	IF NOT EXISTS (SELECT FROM firn.move AS x WHERE x.batch = unsubscribe.batch AND x.shard <> ALL (shards)) THEN
		PERFORM firn.drop_subscription(x.subname) FROM pg_subscription AS x
			WHERE x.subname IN ('firn_move_' || batch, 'firn_back_' || batch) AND x.subdbid = (SELECT oid FROM pg_database WHERE datname = current_database());
	END IF;
END $$;
CREATE OR REPLACE FUNCTION firn.drop_subscription(subscription name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	-- Without its slot, which is on the other server, it can go in a transaction.
	EXECUTE format('ALTER SUBSCRIPTION %I DISABLE', subscription);
	EXECUTE format('ALTER SUBSCRIPTION %I SET (slot_name = NONE)', subscription);
	EXECUTE format('DROP SUBSCRIPTION %I', subscription);
END $$;

-- Drops the copy of a shard that is not here, and ends its move here.
CREATE OR REPLACE FUNCTION firn.discard(shard integer, term bigint, attempt text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM firn.check_kept(firn.lock_shard(shard, term, attempt));
	DELETE FROM firn.move AS x WHERE x.shard = discard.shard;
	PERFORM firn.drop_copy(shard, true);
END $$;

-- Drops the copy of a shard that another server serves, with all that firn knows of the copy.
-- Compared says that the server that serves the shard has all rows of the copy, or that the others
-- are not needed. A schema without the shard's generators is no copy of it, and stays: it is somebody's.
CREATE OR REPLACE FUNCTION firn.drop_copy(shard integer, compared boolean DEFAULT false) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard;
BEGIN
	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = drop_copy.shard FOR UPDATE;
	IF s.state <> 'moved' IS NOT FALSE THEN
		RAISE EXCEPTION 'firn: the schema of shard % is no old copy: nothing here says that another server serves the shard', shard USING ERRCODE = 'ID007';
	ELSIF EXISTS (SELECT FROM firn.move AS m WHERE m.shard = s.shard) THEN
		RAISE EXCEPTION 'firn: a move needs the copy of shard %', shard USING ERRCODE = 'ID007', HINT = 'firn shard status';
	ELSIF NOT compared THEN
		RAISE EXCEPTION 'firn: the copy of shard % may have rows that the server lacks which serves the shard', shard USING ERRCODE = 'ID007',
			HINT = format('to drop the copy after a comparison: firn shard finish %s', shard);
	END IF;
	PERFORM firn.check_droppable(s.schema);
	IF EXISTS (SELECT FROM firn.generator AS g JOIN pg_class AS c ON c.oid = g."offset" WHERE g.shard = s.shard AND c.relnamespace = to_regnamespace(quote_ident(s.schema))) THEN
		EXECUTE format('DROP SCHEMA %I CASCADE', s.schema);
	END IF;
	DELETE FROM firn.generator AS g WHERE g.shard = s.shard;
END $$;

-- Generators of shards that are elsewhere whose sequences somebody has dropped here.
CREATE OR REPLACE FUNCTION firn.dropped() RETURNS SETOF firn.generator LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
	SELECT g.* FROM firn.generator AS g JOIN firn.shard AS s ON s.shard = g.shard
	WHERE s.state = 'moved' AND NOT EXISTS (SELECT FROM firn.move AS m WHERE m.shard = s.shard)
		AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid IN (g.counter, g."offset"))
$$;
CREATE OR REPLACE FUNCTION firn.forget_dropped() RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS
$$ DELETE FROM firn.generator AS g USING firn.dropped() AS d WHERE g.shard = d.shard AND g.name = d.name $$;
SELECT firn.forget_dropped();

-- Drops the objects of batches that are no more, and returns the slots that stay, because
-- they are in use.
CREATE OR REPLACE FUNCTION firn.drop_leftovers() RETURNS SETOF name LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	one record;
BEGIN
	FOR one IN SELECT * FROM firn.leftovers() LOOP
		IF one.kind = 'subscription' THEN
			PERFORM firn.drop_subscription(one.name);
		ELSIF one.kind = 'publication' THEN
			EXECUTE format('DROP PUBLICATION %I', one.name);
		ELSIF one.busy THEN
			RETURN NEXT one.name;
		ELSE
			PERFORM pg_drop_replication_slot(one.name);
		END IF;
	END LOOP;
END $$;

-- What there is of batches that have no row here.
CREATE OR REPLACE FUNCTION firn.leftovers() RETURNS TABLE (kind text, name name, busy boolean) LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
	SELECT x.* FROM (
		SELECT 'subscription' AS kind, subname AS name, false AS busy FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		UNION ALL SELECT 'publication', pubname, false FROM pg_publication
		UNION ALL SELECT 'slot', slot_name, active FROM pg_replication_slots WHERE database = current_database()) AS x
	WHERE x.name ~ '^firn_(move|back)_[a-z0-9]{12}$' AND NOT EXISTS (SELECT FROM firn.move AS m WHERE m.batch = right(x.name, 12))
$$;

-- Drops the fences of a shard that is here, which are out of use, and when its move has ended the
-- triggers of firn.check_receiver.
CREATE OR REPLACE FUNCTION firn.drop_fences(shard integer, term bigint, attempt text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s firn.shard := firn.lock_shard(shard, term, attempt);
	r record;
BEGIN
	PERFORM firn.check_here(s);
	FOR r IN SELECT x.relation, t.tgname FROM firn.relations(s.schema) AS x JOIN pg_trigger AS t ON t.tgrelid = x.relation
			AND (t.tgname = 'firn_fence' OR t.tgfoid = 'firn.check_receiver()'::regprocedure AND NOT EXISTS (SELECT FROM firn.move AS m WHERE m.shard = s.shard)) LOOP
		EXECUTE format('DROP TRIGGER %I ON %s', r.tgname, r.relation);
	END LOOP;
END $$;

DO $do$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN SELECT p.oid FROM pg_proc AS p WHERE p.pronamespace = 'firn'::regnamespace AND p.proname IN ('publication_of', 'subscription_of', 'replicated', 'lock_shard', 'lock_move',
			'begin_move', 'make_mark', 'restart_generators', 'cancel_cutover', 'claim', 'begin_load', 'end_load', 'fence', 'raise_fence', 'lower_fence', 'note_surplus', 'check_receiver', 'is_guarded', 'guard_tables', 'guard', 'shorten_deadlock_timeout', 'password_leaks', 'hide_password', 'hold_off_autovacuum', 'lock_tables', 'check_followed', 'sequences',
			'read_sequences', 'write_sequences', 'advance_sequences', 'let_go', 'note_copied', 'check_schema', 'published', 'add_to_publication', 'remove_from_publication', 'take', 'prepare_session', 'record_owner', 'check_kept', 'given_to', 'may_revoke', 'revoke', 'overrule', 'begin_reopen', 'know', 'may_reopen', 'floor_above', 'make_do', 'reopen', 'lock_batch', 'publish', 'empty_publication', 'subscribe', 'enable_subscription',
			'end_move', 'drop_mark', 'unsubscribe', 'drop_subscription', 'discard', 'drop_copy', 'dropped', 'forget_dropped', 'drop_leftovers', 'leftovers', 'drop_fences') LOOP
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
	END LOOP;
END $do$;
GRANT EXECUTE ON FUNCTION firn.id, firn.advance(regclass, bigint), firn.states, firn.is_here, firn.cure, firn.check_here, firn.await_opening, firn.enter,
	firn.now_state, firn.pack, firn.decode, firn.first_id, firn.last_id TO "firn_app";
