package mutants

// reopening are the rules by which a shard is opened that may have been open elsewhere.
var reopening = byRules(ownerSQL,
	// firn.record_owner
	[3]string{"a server hears of an owner without waiting for another step", "record_owner.shard FOR UPDATE;", "record_owner.shard;"},
	[3]string{"a server that serves a shard is told that another one does", "ELSIF NOT FOUND OR firn.is_here(s) OR s.term > term THEN", "ELSIF NOT FOUND OR s.term > term THEN"},
	[3]string{"a server is told of an owner of before", "ELSIF NOT FOUND OR firn.is_here(s) OR s.term > term THEN", "ELSIF NOT FOUND OR firn.is_here(s) THEN"},
	[3]string{"the copy of a server that was told counts as kept", "	DELETE FROM firn.move AS x WHERE x.shard = s.shard;\n	UPDATE firn.shard AS x SET state = 'moved', moved_to = record_owner.moved_to", "	UPDATE firn.shard AS x SET state = 'moved', moved_to = record_owner.moved_to"},
	// firn.may_revoke, firn.revoke
	[3]string{"a shard is revoked without waiting for another step", "may_revoke.shard FOR UPDATE;", "may_revoke.shard;"},
	[3]string{"a shard is revoked where it is open", "ELSIF s.state = 'open' AND firn.is_here(s) OR s.term >= term THEN\n		RAISE EXCEPTION 'firn: shard % has been worked on here since'", "ELSIF s.term >= term THEN\n		RAISE EXCEPTION 'firn: shard % has been worked on here since'"},
	[3]string{"a shard is revoked though somebody has worked on it since", "ELSIF s.state = 'open' AND firn.is_here(s) OR s.term >= term THEN\n		RAISE EXCEPTION 'firn: shard % has been worked on here since'", "ELSIF s.state = 'open' AND firn.is_here(s) THEN\n		RAISE EXCEPTION 'firn: shard % has been worked on here since'"},
	[3]string{"a shard is revoked that was let go to this server", "AND firn.is_here(s) AND firn.given_to(s) = (SELECT v.name FROM firn.server AS v) THEN\n		RAISE EXCEPTION 'firn: shard % was let go to this server", "AND false THEN\n		RAISE EXCEPTION 'firn: shard % was let go to this server"},
	[3]string{"a shard is revoked where it was since", "ELSIF s.state = 'moved' AND firn.given_to(s) = owner AND s.term > was_term THEN", "ELSIF false THEN"},
	[3]string{"nobody asks whether a shard may be revoked", "	PERFORM firn.may_revoke(shard, term, owner, was_term);\n", ""},
	[3]string{"the move of a shard goes on that was revoked", "	DELETE FROM firn.move AS x WHERE x.shard = s.shard;\n	UPDATE firn.shard AS x SET state = 'moved', moved_to = owner, term = revoke.term", "	UPDATE firn.shard AS x SET state = 'moved', moved_to = owner, term = revoke.term"},
	// firn.overrule
	[3]string{"a shard is closed without waiting for another step", "overrule.shard FOR UPDATE;", "overrule.shard;"},
	[3]string{"a shard is closed that is not open", "IF NOT FOUND OR s.state <> 'open' OR NOT firn.is_here(s) OR s.term > was_term", "IF NOT FOUND OR NOT firn.is_here(s) OR s.term > was_term"},
	[3]string{"a shard is closed that is open on a copy", "IF NOT FOUND OR s.state <> 'open' OR NOT firn.is_here(s) OR s.term > was_term", "IF NOT FOUND OR s.state <> 'open' OR s.term > was_term"},
	[3]string{"a shard is closed where it was opened later", "OR s.term > was_term OR s.term >= term THEN", "OR s.term >= term THEN"},
	[3]string{"a shard is closed though somebody has worked on it since", "OR s.term > was_term OR s.term >= term THEN", "OR s.term > was_term THEN"},
	[3]string{"what was closed has no fences", "	PERFORM firn.raise_fence(s.shard, s.schema);\n	DELETE", "	DELETE"},
	[3]string{"what was closed gives ids", "	-- Last: what ends the generators no rollback takes back.\n	RETURN firn.halt(s.shard);", "	RETURN 7;"},
	// firn.may_reopen, firn.make_do
	[3]string{"a shard is opened without waiting for another step", "may_reopen.shard FOR UPDATE;", "may_reopen.shard;"},
	[3]string{"a shard is opened at another term than was seen", "IF s.term <> was_term OR s.state <> was_state THEN", "IF s.state <> was_state THEN"},
	[3]string{"a shard is opened in another state than was seen", "IF s.term <> was_term OR s.state <> was_state THEN", "IF s.term <> was_term THEN"},
	[3]string{"a shard is opened on another system than was seen", "ELSIF (system, timeline) IS DISTINCT FROM ((pg_control_system()).system_identifier, left(", "ELSIF (timeline, 0) IS DISTINCT FROM (left("},
	[3]string{"a shard is opened on another timeline than was seen", "ELSIF (system, timeline) IS DISTINCT FROM ((pg_control_system()).system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8)) THEN", "ELSIF system IS DISTINCT FROM (pg_control_system()).system_identifier THEN"},
	[3]string{"a copy is opened that nobody calls complete", "ELSIF s.state = 'moved' AND firn.given_to(s) IS NULL THEN", "ELSIF false THEN"},
	[3]string{"a copy of a copy is opened by its word", "AND firn.given_to(s) = (SELECT v.name FROM firn.server AS v) AND NOT firn.is_here(s) THEN", "AND false THEN"},
	[3]string{"a copy is opened as it is, at another term", "AND x.term = was_term AND x.state = 'moved' RETURNING", "AND x.state = 'moved' RETURNING"},
	[3]string{"what is open is opened as it is", "AND x.term = was_term AND x.state = 'moved' RETURNING", "AND x.term = was_term RETURNING"},
	[3]string{"a copy is opened as it is with numbers of before", "		PERFORM firn.advance_sequences(s.schema, sequences);\n	END IF;\nEND $$;", "	END IF;\nEND $$;"},
	// firn.floor_above, firn.reopen
	[3]string{"a clock is followed that is years ahead of this one", "IF above - t > {{.MonthStates}} THEN", "IF false THEN"},
	[3]string{"ids start at the state of another clock", "RETURN greatest(above + 1, t + {{.SecondStates}});", "RETURN greatest(above, t + {{.SecondStates}});"},
	[3]string{"ids start at the state of this clock", "RETURN greatest(above + 1, t + {{.SecondStates}});", "RETURN greatest(above + 1, t);"},
	[3]string{"a shard is opened again with numbers of before", "		PERFORM firn.advance_sequences(s.schema, sequences);\n	END IF;\n	DELETE", "	END IF;\n	DELETE"},
	[3]string{"a sequence is set back", "* sign(p.seqincrement) > 0", "* sign(p.seqincrement) <> 0"},
	[3]string{"programs cannot write to what was opened again", "	PERFORM firn.lower_fence(s.schema);\n	UPDATE", "	UPDATE"},
	[3]string{"the move of what was opened again goes on", "	DELETE FROM firn.move AS x WHERE x.shard = s.shard;\n	PERFORM firn.lower_fence", "	PERFORM firn.lower_fence"},
	[3]string{"what was opened again is at the term of before", "term = reopen.term - 1, attempt", "term = was_term, attempt"},
)

// streams are the rules of what replicates, and of what is dropped.
var streams = byRules(streamSQL,
	[3]string{"a stream is made of a move that has ended", "	IF NOT FOUND THEN\n		RAISE EXCEPTION 'firn: the move % has ended meanwhile'", "	IF false THEN\n		RAISE EXCEPTION 'firn: the move % has ended meanwhile'"},
	[3]string{"what serves is sent nowhere", "WHERE x.batch = m.batch AND s.state <> 'open';", "WHERE x.batch = m.batch;"},
	[3]string{"rows are copied into a shard that is open", "	PERFORM CASE WHEN copies THEN firn.check_kept(s) END FROM", "	PERFORM 1 FROM"},
	[3]string{"rows are copied into a shard that opens meanwhile", "WHERE x.batch = m.batch FOR UPDATE OF s;", "WHERE x.batch = m.batch;"},
	[3]string{"tables without guards are subscribed", "WHERE x.batch = m.batch AND NOT firn.is_guarded(r)) THEN", "WHERE false) THEN"},
	[3]string{"another server is subscribed to", "WHERE x.subname = subscription) <> tables THEN", "WHERE x.subname = subscription) < 1 THEN"},
	[3]string{"a move ends where the shard is not", "	PERFORM firn.check_here(s);\n	DELETE FROM firn.move", "	DELETE FROM firn.move"},
	[3]string{"what has ended is still sent", "PERFORM firn.remove_from_publication(s.schema, firn.publication_of(m)), firn.drop_mark(s.schema);", "PERFORM firn.drop_mark(s.schema);"},
	[3]string{"a stream ends of what is open", "PERFORM firn.check_kept(firn.lock_shard(one.shard, one.term, one.attempt));", "PERFORM firn.lock_shard(one.shard, one.term, one.attempt);"},
	[3]string{"a copy is discarded that is open", "	PERFORM firn.check_kept(firn.lock_shard(shard, term, attempt));\n	DELETE", "	PERFORM firn.lock_shard(shard, term, attempt);\n	DELETE"},
	[3]string{"a copy is dropped that opens meanwhile", "drop_copy.shard FOR UPDATE;", "drop_copy.shard;"},
	[3]string{"a shard is dropped that is open", "IF s.state <> 'moved' IS NOT FALSE THEN", "IF false THEN"},
	[3]string{"a copy is dropped that a move needs", "ELSIF EXISTS (SELECT FROM firn.move AS m WHERE m.shard = s.shard) THEN\n		RAISE", "ELSIF false THEN\n		RAISE"},
	[3]string{"a copy is dropped that was not compared", "	ELSIF NOT compared THEN\n", "	ELSIF false THEN\n"},
	[3]string{"a schema is dropped that is no copy", "IF EXISTS (SELECT FROM firn.generator AS g JOIN pg_class AS c ON c.oid = g.\"offset\" WHERE g.shard = s.shard AND c.relnamespace = to_regnamespace(quote_ident(s.schema))) THEN", "IF to_regnamespace(quote_ident(s.schema)) IS NOT NULL THEN"},
	[3]string{"fences are dropped of what is elsewhere", "	PERFORM firn.check_here(s);\n	FOR r IN", "	FOR r IN"},
	[3]string{"guards are dropped while a move needs them", "= 'firn.check_receiver()'::regprocedure AND NOT EXISTS (SELECT FROM firn.move AS m WHERE m.shard = s.shard)) LOOP", "= 'firn.check_receiver()'::regprocedure) LOOP"},
)

// others are the rules about what others have to do with a shard.
var others = append(byRules(othersSQL,
	[3]string{"a copy is dropped with what other schemas have", "	IF others IS NOT NULL THEN\n", "	IF false THEN\n"},
	[3]string{"a copy is dropped that a subscription writes to", "	ELSIF writing IS NOT NULL THEN\n", "	ELSIF false THEN\n"},
	[3]string{"a shard is let go though a publication has it", "ELSIF x.name <> ALL (consumers) THEN", "ELSIF false THEN"},
),
	Mutant{Name: "a shard is let go though a subscription writes to it", File: othersSQL, Old: "IF x.kind = 'subscription' THEN\n			RAISE", New: "IF false THEN\n			RAISE", Package: "./shard/move", Tests: "^TestOthersComeLate$"},
)
