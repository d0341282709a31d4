package mutants

import "slices"

const (
	generatorSQL = "shard/install/generator.sql"
	clockSQL     = "shard/install/clock.sql"
)

// shards are the mutants of the SQL of shards, and of what moves and reopens them.
func shards() []Mutant {
	return slices.Concat(draws, drawsByOthers, schemas, clocks, owners, reopening, streams, others, movers)
}

// draws are the rules of the generator.
var draws = byRules(generatorSQL,
	[3]string{"a shard has a number past the last", "CHECK (shard BETWEEN 0 AND {{.MaxShard}})", ""},
	// firn.is_here
	[3]string{"a copy on another system is here", "RETURN (s.system, s.timeline, s.database, s.relation, s.incarnation)", "RETURN ((pg_control_system()).system_identifier, s.timeline, s.database, s.relation, s.incarnation)"},
	[3]string{"a copy on another timeline is here", "RETURN (s.system, s.timeline, s.database, s.relation, s.incarnation)", "SELECT (s.system, left(pg_walfile_name(pg_current_wal_lsn()), 8), s.database, s.relation, s.incarnation)"},
	[3]string{"a copy in another database is here", "RETURN (s.system, s.timeline, s.database, s.relation, s.incarnation)", "SELECT (s.system, s.timeline, current_database(), s.relation, s.incarnation)"},
	[3]string{"a copy in another table is here", "RETURN (s.system, s.timeline, s.database, s.relation, s.incarnation)", "SELECT (s.system, s.timeline, s.database, 'firn.shard'::regclass::oid, s.incarnation)"},
	[3]string{"a row of another incarnation is here", "RETURN (s.system, s.timeline, s.database, s.relation, s.incarnation)", "SELECT (s.system, s.timeline, s.database, s.relation, (SELECT v.incarnation FROM firn.server AS v))"},
	// firn.incarnation, firn.take_incarnation, firn.check_incarnation
	[3]string{"a copy has the incarnation of what it is a copy of", "SELECT v.incarnation FROM firn.server AS v WHERE (v.system, v.timeline, v.database, v.relation) IS NOT DISTINCT FROM", "SELECT v.incarnation FROM firn.server AS v WHERE true OR (v.system, v.timeline, v.database, v.relation) IS NOT DISTINCT FROM"},
	[3]string{"a server takes another incarnation each time", "		WHERE (v.system, v.timeline, v.database, v.relation) IS DISTINCT FROM", "		WHERE true OR (v.system, v.timeline, v.database, v.relation) IS DISTINCT FROM"},
	[3]string{"a copy does not know what it was", "SET incarnation = gen_random_uuid(), formerly = v.formerly || v.incarnation,", "SET incarnation = gen_random_uuid(),"},
	[3]string{"a copy opens what comes to it", "	IF firn.incarnation() IS NULL THEN\n", "	IF false THEN\n"},
	[3]string{"a shard is opened on a copy of a server of a cluster", "	ELSE\n		PERFORM firn.check_incarnation();\n", "	ELSE\n		PERFORM firn.take_incarnation();\n"},
	// firn.enter
	[3]string{"a program enters another cluster", " AND y.cluster OPERATOR(pg_catalog.=) enter.cluster AND", " AND"},
	[3]string{"a program enters what is closed", " AND x.state OPERATOR(pg_catalog.=) 'open'\n", "\n"},
	[3]string{"a program enters a copy in another table", " AND x.relation OPERATOR(pg_catalog.=) x.tableoid\n", "\n"},
	[3]string{"a program enters what another incarnation opened", "			AND x.incarnation OPERATOR(pg_catalog.=) y.incarnation AND x.relation", "			AND x.relation"},
	[3]string{"a program enters a copy in another database", "x.database OPERATOR(pg_catalog.=) pg_catalog.current_database()\n				AND x.timeline", "x.timeline"},
	[3]string{"a program enters a copy on another timeline", "				AND x.timeline OPERATOR(pg_catalog.=) pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)\n", ""},
	[3]string{"a program enters a copy on another system", "				AND x.system OPERATOR(pg_catalog.=) (pg_catalog.pg_control_system()).system_identifier END;", " END;"},
	// firn.advance
	[3]string{"ids are given of what is closed", "s.state = 'open' AND g.identity = g.\"offset\" AND s.database", "g.identity = g.\"offset\" AND s.database"},
	[3]string{"ids are given of a restored generator", "s.state = 'open' AND g.identity = g.\"offset\" AND s.database", "s.state = 'open' AND s.database"},
	[3]string{"ids are given in another database", " AND s.database = current_database() AND s.relation = s.tableoid", " AND s.relation = s.tableoid"},
	[3]string{"ids are given in another table", " AND s.database = current_database() AND s.relation = s.tableoid", " AND s.database = current_database()"},
	[3]string{"ids are given on another timeline", "			AND s.timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)\n", ""},
	[3]string{"ids are given on another system", "			AND s.system = (pg_control_system()).system_identifier\n", ""},
	[3]string{"a counter that an owner has begun anew is not brought to the clock", "m := coalesce(pg_sequence_last_value(counter) + 1, 0);", "m := pg_sequence_last_value(counter) + 1;"},
	[3]string{"ids are given of what another incarnation opened", "			AND s.incarnation = (SELECT v.incarnation FROM firn.server AS v)\n", ""},
	[3]string{"the state moves without the lock", "		PERFORM pg_advisory_xact_lock({{.LockClass}}, \"offset\"::oid::integer);\n		f := ", "		f := "},
	[3]string{"ids are given of what was ended", "		IF f IS NULL THEN\n", "		IF false THEN\n"},
	[3]string{"a clock near the end of the layout ends the generator", "IF t >= {{.Limit}} OR (t - pg_sequence", "IF (t - pg_sequence"},
	[3]string{"a draw goes past the end of the layout", "	IF v >= {{.Limit}} THEN\n", "	IF false THEN\n"},
	// firn.id, firn.states
	[3]string{"a fast draw counts on a copy", "WHEN a = b AND here AND a + n", "WHEN a = b AND a + n"},
	[3]string{"a fast draw counts below the clock", " AND a + n >= now_state AND", " AND"},
	[3]string{"a draw of many goes past the end of the layout", "= a AND states[k] < {{.Limit}} THEN", "= a THEN"},
	[3]string{"the order of arguments is not looked at", "	IF NOT firn.in_order(firn.count_argument(), firn.count_argument(), firn.count_argument()) THEN", "	IF false THEN"},
	// firn.write_functions
	[3]string{"a function does not know its generator", "%4$L::regclass::oid OPERATOR(pg_catalog.=) %6$s::oid AND pg_catalog.current_database()", "pg_catalog.current_database()"},
	[3]string{"a function does not know its database", " AND pg_catalog.current_database() OPERATOR(pg_catalog.=) %7$L::name\n", "\n"},
	[3]string{"a function does not know its timeline", "				AND pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()) COLLATE \"C\" OPERATOR(pg_catalog.<) %8$L)", ")"},
	// firn.halt, firn.close, firn.start, firn.open_at, firn.open
	[3]string{"a close does not wait for a draw", "		PERFORM pg_advisory_xact_lock({{.LockClass}}, g.\"offset\"::oid::integer);\n		EXECUTE", "		EXECUTE"},
	[3]string{"a close does not end draws", "		PERFORM setval(g.\"offset\", f, false);   -- draws now read NULL\n", ""},
	[3]string{"a close says less than was given", "highest := greatest(highest, m + f);", "highest := greatest(highest, f);"},
	[3]string{"a close may be lost by a crash", "	PERFORM firn.commit_durably();\n	UPDATE firn.shard AS x SET state = 'closed'", "	UPDATE firn.shard AS x SET state = 'closed'"},
	[3]string{"a close is no step", "SET state = 'closed', term = term + 1 WHERE", "SET state = 'closed' WHERE"},
	[3]string{"a generator starts past the end of the layout", "	IF state >= {{.Limit}} THEN\n", "	IF false THEN\n"},
	[3]string{"an open does not wait for a draw", "	PERFORM pg_advisory_xact_lock({{.LockClass}}, g.\"offset\"::oid::integer);\n	EXECUTE", "	EXECUTE"},
	[3]string{"a generator that was opened here counts as restored", "UPDATE firn.generator AS x SET identity = x.\"offset\"", "UPDATE firn.generator AS x SET identity = x.identity"},
	[3]string{"an open may be lost by a crash", "	PERFORM firn.commit_durably();\n	PERFORM firn.check_here(s) FROM", "	PERFORM firn.check_here(s) FROM"},
	[3]string{"what has moved is opened", "	PERFORM firn.check_here(s) FROM firn.shard AS s WHERE s.shard = open_at.shard AND s.state = 'moved' FOR UPDATE;\n", ""},
	[3]string{"an open is no step", "SET state = 'open', moved_to = NULL, term = term + 1,", "SET state = 'open', moved_to = NULL,"},
	[3]string{"what was opened counts as elsewhere", "			system = (pg_control_system()).system_identifier, timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8), database = current_database(),\n			relation = x.tableoid, incarnation = firn.incarnation()\n		WHERE x.shard = open_at.shard;", "			relation = x.tableoid\n		WHERE x.shard = open_at.shard;"},
	[3]string{"a generator that was never open starts where the others are", "first := lowest + {{.SecondStates}};", "first := lowest;"},
	[3]string{"a shard is opened at a state", "greatest(above + 1, firn.follow_clock", "greatest(above, firn.follow_clock"},
	[3]string{"a shard is opened at the clock", "firn.follow_clock(firn.now_state(), above) + {{.SecondStates}})) $$;", "firn.follow_clock(firn.now_state(), above))) $$;"},
	// firn.create_shard, firn.renew_shard, firn.grant_shard
	[3]string{"two shards are in one schema", "	IF NOT FOUND THEN\n		RAISE EXCEPTION 'firn: the schema % is that", "	IF false THEN\n		RAISE EXCEPTION 'firn: the schema % is that"},
	[3]string{"a shard is in two schemas", "	ELSIF s.schema <> schema THEN\n		RAISE EXCEPTION 'firn: shard % is in", "	ELSIF false THEN\n		RAISE EXCEPTION 'firn: shard % is in"},
	[3]string{"a generator opens that comes to a closed shard", "IF NOT made AND s.state = 'open' AND firn.is_here(s) THEN", "IF NOT made AND firn.is_here(s) THEN"},
	[3]string{"a generator opens that comes to a copy", "IF NOT made AND s.state = 'open' AND firn.is_here(s) THEN", "IF NOT made AND s.state = 'open' THEN"},
	[3]string{"a generator that comes to a shard starts where the others are", "PERFORM firn.start(g, greatest(firn.follow_clock(firn.now_state(), highest), highest) + {{.SecondStates}});", "PERFORM firn.start(g, 0);"},
	[3]string{"what has moved is made again", "WHERE s.shard = renew_shard.shard AND s.state <> 'moved' $$;", "WHERE s.shard = renew_shard.shard $$;"},
	[3]string{"who draws may set the offset", "GRANT SELECT ON SEQUENCE %s TO %I', g.\"offset\"", "GRANT ALL ON SEQUENCE %s TO %I', g.\"offset\""},
	[3]string{"who draws may set the counter", "GRANT USAGE ON SEQUENCE %s TO %I', g.counter", "GRANT ALL ON SEQUENCE %s TO %I', g.counter"},
)

// drawsByOthers are rules of the generator that other tests find.
var drawsByOthers = []Mutant{
	{Name: "what another role made is built on", File: generatorSQL, Old: "IF owner <> quote_ident(current_user) THEN", New: "IF false THEN", Package: "./shard", Tests: "^TestForeignSchema$"},
	{Name: "a database has two layouts", File: generatorSQL, Old: "IF has <> '{{.Layout}}' THEN", New: "IF false THEN", Package: "./shard", Tests: "^TestBadShards$"},
	{Name: "a program enters a standby", File: generatorSQL, Old: "		ELSIF pg_catalog.pg_is_in_recovery() THEN", New: "		ELSIF false THEN", Package: "./shard", Tests: "^TestStandby$"},
	{Name: "the offset moves down", File: generatorSQL, Old: "		IF v < t THEN\n", New: "		IF v <> t THEN\n", Package: "./shard", Tests: "^TestClockSteps$"},
	{Name: "a fast draw goes past the end of the layout", File: generatorSQL, Old: " AND a + n < {{.Limit}}\n", New: "\n", Package: "./shard", Tests: "^TestFastPathEnds$"},
	{Name: "low bits begin anew with each tick", File: generatorSQL, Old: "t - m + (coalesce(n, m) + f & {{.PerTick}} - 1)", New: "t - m", Package: "./shard", Tests: "^TestLowBits$"},
	{Name: "low bits leave out the number of a draw that did not count", File: generatorSQL, Old: "(coalesce(n, m) + f & ", New: "(m + f & ", Package: "./shard", Tests: "^TestLowBits$"},
	{Name: "low bits leave out a number of each draw of many", File: generatorSQL, Old: "		states := first || ARRAY(SELECT a + pg_catalog.nextval(counter) FROM pg_catalog.generate_series(2, k));", New: "		states := ARRAY(SELECT a + pg_catalog.nextval(counter) FROM pg_catalog.generate_series(1, k));", Package: "./shard", Tests: "^TestLowBits$"},
	{Name: "a draw counts whose offset has changed", File: generatorSQL, Old: "WHEN a = b AND here AND a + n", New: "WHEN here AND a + n", Package: "./shard", Tests: "^TestStraddle$"},
	{Name: "a draw of many counts whose offset has changed", File: generatorSQL, Old: "IF pg_catalog.pg_sequence_last_value(\"offset\") = a AND states[k]", New: "IF states[k]", Package: "./shard/install", Tests: "^TestStraddleMany$"},
	{Name: "a draw does not see that the shard was closed", File: generatorSQL, Old: "greatest(f + 1, state - n)", New: "greatest(f, state - n)", Package: "./shard/install", Tests: "^TestStraddleOpen$"},
	{Name: "a function of a closed shard draws", File: generatorSQL, Old: "CASE WHEN s.state = 'open' THEN s.timeline || 'G' ELSE '' END", New: "s.timeline || 'G'", With: "a close does not end draws", Package: "./shard/install", Tests: stepTests},
	{Name: "a million ids and more are drawn at once", File: generatorSQL, Old: "IF k IS NULL OR k NOT BETWEEN 1 AND 1000000 THEN", New: "IF k IS NULL OR k NOT BETWEEN 1 AND 1000001 THEN", Package: "./shard", Tests: "^TestNextIDs$"},
	{Name: "a step is acknowledged that is on this disk alone", File: generatorSQL, Old: "IN ('off', 'local')", New: "IN ('off')", Package: "./shard", Tests: "^TestDurable$"},
	{Name: "ids start where those of a replaced function are", File: generatorSQL, Old: "	IF made AND used THEN\n", New: "	IF false THEN\n", Package: "./shard/install", Tests: stepTests},
	{Name: "a generator whose sequences were dropped is kept", File: generatorSQL, Old: "WHERE oid IN (y.counter, y.\"offset\")) < 2;", New: "WHERE oid IN (y.counter, y.\"offset\")) < 0;", Package: "./shard", Tests: "^TestSequencesDropped$"},
	{Name: "a sequence counts in another way", File: generatorSQL, Old: "			AND seqincrement = 1 AND seqcache = 1 AND NOT seqcycle) THEN", New: ") THEN", Package: "./shard", Tests: "^TestExistingObjects$"},
	{Name: "everybody draws", File: generatorSQL, Old: "firn.refuse, firn.advance(regclass, bigint), firn.id,", New: "firn.refuse, firn.id,", Package: "./shard", Tests: "^TestRole$"},
	{Name: "a function is replaced whose ids are others", File: "shard/install/shard.go", Old: "d.shard = %[3]d AND abs(", New: "abs(%[3]d) >= 0 AND abs(", Package: "./shard", Tests: "^TestReplacesOnlyItsLayout$"},
	{Name: "a role that draws may set the offset", File: "shard/install/shard.go", Old: "\"GRANT SELECT ON SEQUENCE %s.%s TO %s;\\n\"", New: "\"GRANT ALL ON SEQUENCE %s.%s TO %s;\\n\"", Package: "./shard", Tests: "^TestRole$"},
}

// schemas are the rules of what counts as a part of a shard.
var schemas = append(byRules("shard/install/catalog.sql",
	[3]string{"a partitioned table has no fence", "AND c.relkind IN ('r', 'p') AND c.relname", "AND c.relkind IN ('r') AND c.relname"},
	[3]string{"the mark is written by somebody's rule", " AND c.relkind = 'r' AND NOT c.relhasrules\n", " AND c.relkind = 'r'\n"},
	[3]string{"the mark belongs to anybody", "		AND (o.rolname = current_user OR o.rolsuper OR o.oid = (SELECT f.nspowner FROM pg_namespace AS f WHERE f.nspname = 'firn'))\n", ""},
),
	Mutant{Name: "a copy has other rights", File: "shard/install/catalog.sql", Old: "firn.rights(c.relacl, CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::\"char\", c.relowner, portable)) FROM c", New: "c.relkind) FROM c", Package: "./shard", Tests: "^TestFingerprint$"},
	Mutant{Name: "a copy has a trigger that is out of use", File: "shard/install/catalog.sql", Old: "firn.printed(pg_get_triggerdef(t.oid), portable), t.tgenabled)", New: "firn.printed(pg_get_triggerdef(t.oid), portable), '')", Package: "./shard", Tests: "^TestFingerprint$"},
	Mutant{Name: "the mark runs somebody's trigger", File: "shard/install/catalog.sql", Old: "t.tgfoid IS DISTINCT FROM to_regprocedure('firn.check_receiver()')::oid)", New: "false)", Package: "./shard/move", Tests: "^TestNotOurMark$"},
	Mutant{Name: "the mark has other columns", File: "shard/install/catalog.sql", Old: "			= '{term,attempt,moved_to,floor,sequences}'\n", New: "			<> '{}'\n", Package: "./shard/move", Tests: "^TestNotOurMark$"},
)

// clocks are the rules about clocks of servers.
var clocks = []Mutant{
	{Name: "a clock past the end of the layout is followed", File: clockSQL, Old: "	IF t >= {{.Limit}} THEN\n		RAISE", New: "	IF false THEN\n		RAISE", Package: "./shard", Tests: "^TestClockJumps$"},
	{Name: "a clock is followed that has jumped", File: clockSQL, Old: "	ELSIF jump > {{.MonthStates}} THEN\n", New: "	ELSIF false THEN\n", Package: "./shard", Tests: "^TestClockJumps$"},
	{Name: "a clock is followed that has jumped beside a state", File: generatorSQL, Old: "{{.HourStates}}) IS NOT TRUE THEN", New: "{{.HourStates}}) IS NULL THEN", Package: "./shard", Tests: "^TestClockJumps$"},
	{Name: "a server that was up does not know the time", File: clockSQL, Old: "> coalesce(up, 0) * {{.SecondStates}} THEN", New: "> 0 THEN", Package: "./shard", Tests: "^TestIdle$"},
	{Name: "a state that is known does not count", File: clockSQL, Old: "jump bigint := t - greatest(seen, known);", New: "jump bigint := t - seen;", Package: "./shard", Tests: "^TestIdle$"},
	{Name: "a clock that was set back is followed back", File: clockSQL, Old: "	IF seen IS NULL OR t > seen THEN\n", New: "	IF true THEN\n", Package: "./shard", Tests: "^TestClockSetBack$"},
	{Name: "the SQL run again trusts the clock", File: clockSQL, Old: " AND pg_catalog.pg_sequence_last_value('firn.clock_state') IS NULL;", New: ";", Package: "./shard", Tests: "^TestClockSetBack$"},
	{Name: "an operator trusts a clock with any date", File: clockSQL, Old: "IF clock AT TIME ZONE 'UTC' BETWEEN today - interval '14 hours' AND today + interval '36 hours' THEN", New: "IF true THEN", Package: "./shard", Tests: "^TestTrustClock$"},
	{Name: "an operator trusts a clock past the end of the layout", File: clockSQL, Old: "		IF t < {{.Limit}} THEN\n", New: "		IF true THEN\n", Package: "./shard", Tests: "^TestTrustClock$"},
}
