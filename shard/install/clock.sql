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
	IF t >= {{.Limit}} THEN
		RAISE EXCEPTION 'firn: the clock of this server says %, and the layout ends on {{.End}}: no id can carry this time', firn.show_time(clock_timestamp()) USING ERRCODE = 'ID004',
			HINT = 'if the clock is wrong, set it: ids go on by themselves; if it is right, the layout has ended';
	ELSIF jump > {{.MonthStates}} THEN
		up := (SELECT setting::double precision FROM pg_settings WHERE name = 'checkpoint_timeout')
			* (firn.timed_checkpoints() - pg_sequence_last_value('firn.clock_checkpoints'));
		IF jump - {{.MonthStates}} > coalesce(up, 0) * {{.SecondStates}} THEN
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
		IF t < {{.Limit}} THEN
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
	PERFORM firn.note_clock(t) FROM firn.now_state() AS t WHERE t < {{.Limit}} AND pg_catalog.pg_sequence_last_value('firn.clock_state') IS NULL;
END $do$;

REVOKE ALL ON FUNCTION firn.show_time, firn.show_state, firn.timed_checkpoints, firn.follow_clock, firn.note_clock, firn.trust_clock FROM PUBLIC;
