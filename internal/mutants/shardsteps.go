package mutants

const (
	ownerSQL  = "shard/install/owner.sql"
	streamSQL = "shard/install/stream.sql"
	othersSQL = "shard/install/others.sql"
	// stepTests call the functions of the steps one by one, on two databases without replication.
	stepTests = "^TestRules$"
)

// byRules are mutants of a file that the tests of the steps find: name, text, text instead.
func byRules(file string, all ...[3]string) (ms []Mutant) {
	for _, m := range all {
		ms = append(ms, Mutant{Name: m[0], File: file, Old: m[1], New: m[2], Package: "./shard/install", Tests: stepTests})
	}
	return ms
}

// owners are the rules by which a shard is owned, in the order of shard/install/owner.sql.
var owners = byRules(ownerSQL,
	// firn.lock_shard, firn.lock_move
	[3]string{"a step of a shard does not wait for another step", "lock_shard.shard FOR UPDATE;", "lock_shard.shard;"},
	[3]string{"a step of another term passes", "ELSIF s.term <> term OR s.attempt IS DISTINCT FROM attempt THEN", "ELSIF s.attempt IS DISTINCT FROM attempt THEN"},
	[3]string{"a step of another mover passes", "ELSIF s.term <> term OR s.attempt IS DISTINCT FROM attempt THEN", "ELSIF s.term <> term THEN"},
	[3]string{"a step may be lost by a crash after it was acknowledged", "	PERFORM firn.commit_durably();\n	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = lock_shard.shard", "	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = lock_shard.shard"},
	[3]string{"a shard is in two moves", "IF FOUND AND m.batch <> batch THEN", "IF false THEN"},
	// firn.begin_move
	[3]string{"a mover begins without waiting for another one", "begin_move.shard FOR UPDATE;", "begin_move.shard;"},
	[3]string{"a mover begins though another one has begun since", "	ELSIF s.term >= term THEN\n		RAISE EXCEPTION 'firn: shard % is at term % already, not below %', shard, s.term, term USING ERRCODE = 'ID007',\n			HINT = 'somebody else has worked on it since';\n	END IF;\n	PERFORM firn.check_here(s);", "	END IF;\n	PERFORM firn.check_here(s);"},
	[3]string{"a move begins where the shard is not", "	PERFORM firn.check_here(s);\n	m := firn.lock_move(shard, batch);", "	m := firn.lock_move(shard, batch);"},
	[3]string{"a move begins again that has ended", "IF m.shard IS NULL AND NOT first THEN", "IF false THEN"},
	[3]string{"a begin may be lost by a crash", "	PERFORM firn.commit_durably();\n	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = begin_move.shard", "	SELECT * INTO s FROM firn.shard AS x WHERE x.shard = begin_move.shard"},
	[3]string{"a mover that begins leaves a generator ended", "firn.make_mark(s.schema), firn.restart_generators(s.shard);", "firn.make_mark(s.schema);"},
	[3]string{"a mover that is refused at the last moment leaves a generator ended", "		PERFORM firn.restart_generators(shard);\n", "		NULL;\n"},
	[3]string{"programs may write where a shard is", "EXECUTE format('REVOKE ALL ON %I.firn_mark FROM %s', schema, other);", "NULL;"},
	// firn.claim, firn.check_kept
	[3]string{"a claim does not wait for another step", "claim.shard FOR UPDATE;", "claim.shard;"},
	[3]string{"a claim gives a shard the schema of another one", "IF NOT FOUND OR s.schema <> schema THEN\n		RAISE EXCEPTION 'firn: the schema % and", "IF NOT FOUND THEN\n		RAISE EXCEPTION 'firn: the schema % and"},
	[3]string{"a claim passes though another one has come since", "	ELSIF s.term >= term THEN\n		RAISE EXCEPTION 'firn: shard % is at term % already, not below %', shard, s.term, term USING ERRCODE = 'ID007',\n			HINT = 'somebody else has worked on it since';\n	ELSIF NOT EXISTS", "	ELSIF NOT EXISTS"},
	[3]string{"a shard comes to a server that was taken out", "ELSIF NOT EXISTS (SELECT FROM firn.server AS v WHERE v.name = ANY (v.servers)) THEN", "ELSIF false THEN"},
	[3]string{"a claim is for what was known of a shard, whatever it was", "		PERFORM firn.check_kept(s);\n	END IF;\n	m :=", "		NULL;\n	END IF;\n	m :="},
	[3]string{"a copy passes whose move has ended", "IF m.shard IS NULL AND here <> target OR keep AND here = source AND NOT m.loaded THEN", "IF keep AND here = source AND NOT m.loaded THEN"},
	[3]string{"a copy passes that is not kept up to date", "IF m.shard IS NULL AND here <> target OR keep AND here = source AND NOT m.loaded THEN", "IF m.shard IS NULL AND here <> target THEN"},
	[3]string{"a claim is for a schema that is there", "ELSIF m.shard IS NULL AND to_regnamespace(quote_ident(schema)) IS NOT NULL THEN", "ELSIF false THEN"},
	[3]string{"a claim to abort keeps the copy", "	IF NOT keep THEN\n", "	IF false THEN\n"},
	[3]string{"a claim may be lost by a crash", "	PERFORM firn.commit_durably(), firn.check_incarnation();\n	IF claim.", "	PERFORM firn.check_incarnation();\n	IF claim."},
	[3]string{"a shard comes to a copy of a server", "	PERFORM firn.commit_durably(), firn.check_incarnation();\n	IF claim.", "	PERFORM firn.commit_durably();\n	IF claim."},
	[3]string{"a shard comes to another copy than was seen", "	IF claim.incarnation <> firn.incarnation() THEN", "	IF false THEN"},
	[3]string{"what a copy of a server knows is kept", "	IF NOT firn.is_here(s) THEN\n		RAISE EXCEPTION 'firn: what is known", "	IF false THEN\n		RAISE EXCEPTION 'firn: what is known"},
	[3]string{"what is open is let go of", "	ELSIF s.state = 'open' THEN\n		RAISE EXCEPTION 'firn: shard % is open here'", "	ELSIF false THEN\n		RAISE EXCEPTION 'firn: shard % is open here'"},
	// firn.begin_load, firn.end_load, fences
	[3]string{"a schema is loaded of a shard that is in no move", "IF done IS NULL OR s.state <> 'moved' THEN", "IF s.state <> 'moved' THEN"},
	[3]string{"a schema is loaded of a shard that is open", "IF done IS NULL OR s.state <> 'moved' THEN", "IF done IS NULL THEN"},
	[3]string{"a schema is loaded that is there", "ELSIF NOT done AND to_regnamespace(quote_ident(s.schema)) IS NOT NULL THEN", "ELSIF false THEN"},
	[3]string{"a copy has no fences", "PERFORM firn.raise_fence(shard, s.schema), firn.guard_tables(shard, s.schema);", "PERFORM firn.guard_tables(shard, s.schema);"},
	[3]string{"a copy has no guards", "PERFORM firn.raise_fence(shard, s.schema), firn.guard_tables(shard, s.schema);", "PERFORM firn.raise_fence(shard, s.schema);"},
	[3]string{"a fence that was put out of use stays so", "EXECUTE format('ALTER TABLE ONLY %s ENABLE TRIGGER firn_fence', r);", "NULL;"},
	[3]string{"a fence lets rows be deleted", "BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION firn.fence", "BEFORE INSERT OR UPDATE OR TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION firn.fence"},
	[3]string{"a fence says that a shard is about to come which has gone", "	PERFORM firn.check_here(s) FROM firn.shard AS s WHERE s.shard = TG_ARGV[0]::integer;\n", ""},
	[3]string{"a fence goes by what a snapshot says", "	RAISE EXCEPTION 'firn: shard % moves', TG_ARGV[0] USING ERRCODE = 'ID001', HINT = 'retry the transaction';\n", "	RETURN NULL;\n"},
	[3]string{"a copy of a server takes what is for the server", "IF NOT EXISTS (SELECT FROM firn.shard AS s WHERE s.shard = TG_ARGV[0]::integer AND firn.is_here(s)) THEN", "IF false THEN"},
	[3]string{"a copy of a server is truncated", "BEFORE INSERT OR TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION firn.check_receiver", "BEFORE INSERT ON %s FOR EACH STATEMENT EXECUTE FUNCTION firn.check_receiver"},
	[3]string{"one look is enough for all shards", "PERFORM set_config('firn.receiver_' || TG_ARGV[0], 'here', false);", "PERFORM set_config('firn.receiver_' || x, 'here', false) FROM generate_series(0, 9) AS x;"},
	[3]string{"a guard that is out of use passes", "AND t.tgenabled = 'R' AND t.tgfoid", "AND t.tgfoid"},
	[3]string{"a guard that does something else passes", "AND t.tgenabled = 'R' AND t.tgfoid = 'firn.check_receiver()'::regprocedure);", "AND t.tgenabled = 'R');"},
	// firn.hold_off_autovacuum
	[3]string{"autovacuum may begin while a shard is let go", "EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', relations);", "NULL;"},
	// firn.lock_tables, firn.check_followed
	[3]string{"writers do not wait for a shard that is let go", "WHEN 'open' THEN 'SHARE ROW EXCLUSIVE' ELSE", "WHEN 'open' THEN 'SHARE UPDATE EXCLUSIVE' ELSE"},
	[3]string{"numbers are drawn while a shard is let go", "EXECUTE format('ALTER SEQUENCE %s CACHE %s', q, (SELECT seqcache FROM pg_sequence WHERE seqrelid = q));", "NULL;"},
	[3]string{"a copy passes that was not loaded", "WHERE m.shard = s.shard AND m.loaded AND i.subenabled", "WHERE m.shard = s.shard AND i.subenabled"},
	[3]string{"a copy passes whose subscription is off", "AND m.loaded AND i.subenabled AND", "AND m.loaded AND"},
	[3]string{"a copy passes that is being copied", "AND r.srrelid = x AND r.srsubstate = 'r')", "AND r.srrelid = x)"},
	[3]string{"a copy passes of which a table is not replicated", "AND r.srrelid = x AND r.srsubstate = 'r')", "AND r.srsubstate = 'r')"},
	[3]string{"a copy without guards passes", "AND r.srsubstate = 'r') OR NOT firn.is_guarded(x));", "AND r.srsubstate = 'r'));"},
	[3]string{"a copy on a copy of the server passes", "IF NOT firn.is_here(s) OR missing IS NOT NULL THEN", "IF missing IS NOT NULL THEN"},
	[3]string{"a copy passes whose schema has changed", "PERFORM firn.check_followed(s), firn.check_schema(s);", "PERFORM firn.check_followed(s);"},
	// firn.note_copied, firn.check_schema
	[3]string{"a schema is noted that was changed while it was dumped", "IF before IS DISTINCT FROM firn.fingerprint(s.schema, false) THEN", "IF false THEN"},
	[3]string{"a schema is noted on a copy of the server", "	PERFORM firn.check_here(s);\n	IF before", "	IF before"},
	[3]string{"a schema passes of which no copy was made", "	IF was IS DISTINCT FROM is_now THEN", "	IF was <> is_now THEN"},
	// firn.let_go
	[3]string{"a shard is let go where it is not", "	PERFORM firn.check_here(s);\n	SELECT * INTO m FROM firn.move", "	SELECT * INTO m FROM firn.move"},
	[3]string{"a shard is let go that is in no move", "IF NOT FOUND OR moved_to NOT IN (m.source, m.target) OR moved_to =", "IF moved_to NOT IN (m.source, m.target) OR moved_to ="},
	[3]string{"a shard is let go to any server", "OR moved_to NOT IN (m.source, m.target) OR moved_to =", "OR moved_to ="},
	[3]string{"a shard is let go to where it is", "OR moved_to = (SELECT v.name FROM firn.server AS v) THEN\n		RAISE EXCEPTION 'firn: shard % is not on its way to %'", "THEN\n		RAISE EXCEPTION 'firn: shard % is not on its way to %'"},
	[3]string{"a shard is let go whose schema has changed", "	PERFORM firn.check_schema(s);\n", ""},
	[3]string{"a shard is let go with tables that are not replicated", "IF firn.published(s.schema, firn.publication_of(m)) IS DISTINCT FROM", "IF NULL IS DISTINCT FROM NULL::regclass[] AND NULL IS DISTINCT FROM"},
	[3]string{"a shard is let go of which others would lose rows", "PERFORM firn.check_streams(s, moved_to, consumers), firn.raise_fence(", "PERFORM firn.raise_fence("},
	[3]string{"what was let go has no fences", "firn.check_streams(s, moved_to, consumers), firn.raise_fence(s.shard, s.schema), firn.guard_tables", "firn.check_streams(s, moved_to, consumers), firn.guard_tables"},
	[3]string{"what was let go has no guards", "firn.raise_fence(s.shard, s.schema), firn.guard_tables(s.shard, s.schema);\n	sequences", "firn.raise_fence(s.shard, s.schema);\n	sequences"},
	[3]string{"what was let go gives ids", "	f := firn.halt(s.shard);\n	EXECUTE", "	f := 7;\n	EXECUTE"},
	[3]string{"what comes back is sent again", "	PERFORM firn.remove_from_publication(s.schema, firn.publication_of(m));\n	RETURN f;", "	RETURN f;"},
	[3]string{"the numbers of sequences do not go along", "	sequences := firn.read_sequences(s.schema);\n	UPDATE", "	UPDATE"},
	// firn.take
	[3]string{"a shard is taken without waiting for another step", "take.shard FOR UPDATE;", "take.shard;"},
	[3]string{"a shard is taken that was not loaded", "IF s.state <> 'moved' OR NOT m.loaded IS TRUE THEN", "IF s.state <> 'moved' THEN"},
	[3]string{"a shard is taken on a copy", "	ELSIF NOT firn.is_here(s) THEN\n		RAISE EXCEPTION 'firn: shard % was on its way", "	ELSIF false THEN\n		RAISE EXCEPTION 'firn: shard % was on its way"},
	[3]string{"a shard is taken by the word of another term", "firn_mark WHERE term = $1 AND attempt = $2 AND moved_to = (SELECT name", "firn_mark WHERE $1 > 0 AND attempt = $2 AND moved_to = (SELECT name"},
	[3]string{"a shard is taken by the word of another mover", "firn_mark WHERE term = $1 AND attempt = $2 AND moved_to = (SELECT name", "firn_mark WHERE term = $1 AND $2 IS NOT NULL AND moved_to = (SELECT name"},
	[3]string{"a shard is taken by a word for another server", "AND attempt = $2 AND moved_to = (SELECT name FROM firn.server)', s.schema)", "AND attempt = $2', s.schema)"},
	[3]string{"a shard is taken without a word", "	IF f IS NULL THEN\n		RETURN false;\n	END IF;\n	PERFORM firn.shorten", "	PERFORM firn.shorten"},
	[3]string{"programs cannot write to what was taken", "PERFORM firn.lower_fence(s.schema), firn.write_sequences(s.schema, sequences);", "PERFORM firn.write_sequences(s.schema, sequences);"},
	[3]string{"numbers of sequences are drawn again", "PERFORM firn.lower_fence(s.schema), firn.write_sequences(s.schema, sequences);", "PERFORM firn.lower_fence(s.schema);"},
	[3]string{"what is written to what was taken is not sent back", "	PERFORM firn.add_to_publication(s.schema, firn.publication_of(m));\n", ""},
	[3]string{"who takes a shard stays at the term of the mover", "term = take.term + 1, attempt = take.attempt || '+'", "term = take.term, attempt = take.attempt"},
	[3]string{"ids start below those that were given", "PERFORM firn.start(g, f + 1) FROM", "PERFORM firn.start(g, 0) FROM"},
)
