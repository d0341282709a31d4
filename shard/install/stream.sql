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
