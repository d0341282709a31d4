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
		PERFORM pg_advisory_xact_lock({{.OpeningClass}}, s.shard);
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
	IF above - t > {{.MonthStates}} THEN
		RAISE EXCEPTION 'firn: another clock says %, and the clock of this server says %', firn.show_state(above), firn.show_state(t) USING ERRCODE = 'ID009',
			HINT = 'set the clock that is wrong, then run the same command again';
	END IF;
	RETURN greatest(above + 1, t + {{.SecondStates}});
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
