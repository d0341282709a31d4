package install_test

const (
	// onCopy makes the rows of all shards those of a copy, as a promotion does.
	onCopy = "UPDATE firn.shard SET timeline = 'FFFFFFFF'"
	copied = "UPDATE firn.server SET timeline = 'FFFFFFFF'"

	// wordOf1 is that of the source that shard 1 was let go to b.
	wordOf1 = "INSERT INTO insta1.firn_mark VALUES ({t1}, '{k1}', 'b', 7, '{}')"

	// follows gives b a subscription that is at work, as far as the catalog says.
	follows = system + "CREATE SUBSCRIPTION firn_move_{b1} CONNECTION 'dbname=none' PUBLICATION firn_move_{b1} WITH (connect = false, slot_name = NONE); " +
		"UPDATE pg_subscription SET subenabled = true WHERE subname = 'firn_move_{b1}'; " +
		"INSERT INTO pg_subscription_rel SELECT s.oid, r, 'r' FROM pg_subscription AS s, firn.replicated('insta1') AS r WHERE s.subname = 'firn_move_{b1}'; "

	// receives makes the session one that replicates.
	receives = "SET LOCAL session_replication_role = replica; "

	system = "SET LOCAL allow_system_table_mods = on; "
)

// stepRules are those of the steps of a move, in their order.
var stepRules = []rule{
	{"a step of this mover", "a", "", "(firn.lock_shard({1})).term", "{t1}"},
	{"a step of another term", "a", "", "firn.lock_shard(1, {t1} + 1, '{k1}')", "ID007"},
	{"a step of another mover", "a", "", "firn.lock_shard(1, {t1}, 'other')", "ID007"},
	{"a step of no shard", "a", "", "firn.lock_shard(99, 1, 'x')", "ID005"},

	{"begin", "a", "", "firn.begin_move(0, 99, 'me', 'abcdefghijkl', 'b', true)", ""},
	{"begin below a term", "a", "", "firn.begin_move(0, {t0}, 'me', 'abcdefghijkl', 'b', true)", "ID007"},
	{"begin again", "a", "", "firn.begin_move({1}, '{b1}', 'b', false)", ""},
	{"begin what is elsewhere", "b", "", "firn.begin_move(1, 99, 'me', '{b1}', 'b', false)", "ID002"},
	{"begin on a copy", "a", onCopy, "firn.begin_move(0, 99, 'me', 'abcdefghijkl', 'b', true)", "ID003"},
	{"begin what is in another batch", "a", "", "firn.begin_move(1, 99, 'me', 'abcdefghijkl', 'b', true)", "ID007"},
	{"begin what has ended", "a", "", "firn.begin_move(0, 99, 'me', 'abcdefghijkl', 'b', false)", "ID007"},
	{"nobody else may write the mark", "a", "GRANT CREATE ON SCHEMA insta0 TO pg_monitor; ALTER DEFAULT PRIVILEGES IN SCHEMA insta0 GRANT ALL ON TABLES TO pg_monitor; SELECT firn.begin_move(0, 99, 'me', 'abcdefghijkl', 'b', true)", "has_table_privilege('pg_monitor', 'insta0.firn_mark', 'INSERT')", "f"},
	{"a mark with a rule", "a", "CREATE RULE x AS ON INSERT TO insta1.firn_mark DO ALSO NOTHING", "firn.mark('insta1')", ""},
	{"a mark of another owner", "a", "ALTER TABLE insta1.firn_mark OWNER TO pg_monitor", "firn.mark('insta1')", ""},
	{"a mark", "a", "", "firn.mark('insta1')", "insta1.firn_mark"},
	{"begin with a generator that a step has ended", "a", "SELECT setval('insta1.next_id_offset', 5, false); SELECT firn.begin_move(1, 99, 'me', '{b1}', 'b', false)", "insta1.next_id() > 0", "t"},
	{"cancel with a generator that a step has ended", "a", "SELECT setval('insta1.next_id_offset', 5, false); SELECT firn.cancel_cutover({1})", "insta1.next_id() > 0", "t"},

	{"claim", "b", "", "firn.claim(0, 'insta0', 99, 'me', 'abcdefghijkl', 'a', 'b', true)", ""},
	{"claim another schema", "b", "", "firn.claim(1, 'insta0', 99, 'me', '{b1}', 'a', 'b', true)", "42710"},
	{"claim below a term", "b", "", "firn.claim(1, 'insta1', {t1}, 'me', '{b1}', 'a', 'b', true)", "ID007"},
	{"claim on a copy of the server", "b", copied, "firn.claim(0, 'insta0', 99, 'me', 'abcdefghijkl', 'a', 'b', true)", "ID003"},
	{"claim on another server than was seen", "b", "", "firn.claim(0, 'insta0', 99, 'me', 'abcdefghijkl', 'a', 'b', true, gen_random_uuid())", "ID003"},
	{"claim on a server that was taken out", "b", "UPDATE firn.server SET servers = '{a}'", "firn.claim(0, 'insta0', 99, 'me', 'abcdefghijkl', 'a', 'b', true)", "ID006"},
	{"claim what is open", "a", "", "firn.claim(1, 'insta1', 99, 'me', '{b1}', 'b', 'a', true)", "ID007"},
	{"claim on a copy", "b", onCopy, "firn.claim(1, 'insta1', 99, 'me', '{b1}', 'a', 'b', true)", "ID003"},
	{"claim for another batch", "b", "", "firn.claim(1, 'insta1', 99, 'me', 'abcdefghijkl', 'a', 'b', true)", "ID007"},
	{"claim back what has ended", "a", "DELETE FROM firn.move WHERE shard = 2", "firn.claim(2, 'insta2', 99, 'me', '{b2}', 'a', 'b', true)", "ID008"},
	{"claim back what is not kept up to date", "a", "UPDATE firn.move SET loaded = false WHERE shard = 2", "firn.claim(2, 'insta2', 99, 'me', '{b2}', 'a', 'b', true)", "ID008"},
	{"claim back", "a", "", "firn.claim(2, 'insta2', 99, 'me', '{b2}', 'a', 'b', true)", ""},
	{"claim where there is a schema", "b", "CREATE SCHEMA insta0", "firn.claim(0, 'insta0', 99, 'me', 'abcdefghijkl', 'a', 'b', true)", "42P06"},
	{"a claim says where the shard is", "b", "SELECT firn.claim(0, 'insta0', 99, 'me', 'abcdefghijkl', 'a', 'b', true)", "SELECT state || moved_to FROM firn.shard WHERE shard = 0", "moveda"},
	{"a claim to abort keeps nothing", "b", "SELECT firn.claim(1, 'insta1', 99, 'me', '{b1}', 'a', 'b', false)", "SELECT loaded FROM firn.move WHERE shard = 1", "f"},

	{"load what is open", "a", "", "firn.begin_load({1})", "ID007"},
	{"load what is in no move", "b", "DELETE FROM firn.move WHERE shard = 1", "firn.begin_load({1})", "ID007"},
	{"load what is there", "b", "UPDATE firn.move SET loaded = false WHERE shard = 1", "firn.begin_load({1})", "42P06"},
	{"load again", "b", "", "firn.begin_load({1})", "f"},
	{"note what was copied", "a", "UPDATE firn.move SET copied = NULL WHERE shard = 1; SELECT firn.note_copied({1}, firn.fingerprint('insta1', false))", "SELECT copied = firn.fingerprint('insta1', false) FROM firn.move WHERE shard = 1", "t"},
	{"note what was changed since", "a", "", "firn.note_copied({1}, 'another')", "f"},
	{"note what is in no move", "a", "DELETE FROM firn.move WHERE shard = 1", "firn.note_copied({1}, firn.fingerprint('insta1', false))", "f"},
	{"note on a copy", "a", onCopy, "firn.note_copied({1}, firn.fingerprint('insta1', false))", "ID003"},
	{"a copy that is given up is none", "b", "SELECT firn.claim(1, 'insta1', 99, 'me', '{b1}', 'a', 'b', false)", "SELECT loaded OR copied IS NOT NULL FROM firn.move WHERE shard = 1", "f"},
	{"a loaded schema is fenced", "b", "", unfenced, "0"},
	{"a loaded schema is guarded", "b", "", unguarded, "0"},

	{"programs write to a copy", "b", "", "test.run('UPDATE insta1.users SET name = NULL')", "ID002"},
	{"programs write to a copy by its partitioned table", "b", "", "test.run('DELETE FROM insta1.events')", "ID002"},
	{"programs write to what is fenced, and open by their snapshot", "a", "SELECT firn.raise_fence(0, 'insta0')", "test.run('UPDATE insta0.users SET name = NULL')", "ID001"},
	{"replication writes to a copy", "b", receives, "test.run('UPDATE insta1.users SET name = NULL')", ""},
	{"replication writes to a copy of this server", "b", receives + onCopy, "test.run('UPDATE insta1.users SET name = NULL')", "ID003"},
	{"replication copies a table to a copy of this server", "b", receives + onCopy, "test.run('INSERT INTO insta1.users SELECT WHERE false')", "ID003"},
	{"replication truncates on a copy of this server", "b", receives + onCopy, "test.run('TRUNCATE insta1.users')", "ID003"},
	{"replication writes to another shard of a copy of this server", "b", receives + "UPDATE insta1.users SET name = NULL; " + onCopy, "test.run('UPDATE insta3.users SET name = NULL')", "ID003"},

	{"publish what has ended", "a", "", "firn.publish('abcdefghijkl')", "ID007"},
	{"subscribe", "b", "", "firn.subscribe('{b3}', 4)", ""},
	{"subscribe to other tables", "b", "", "firn.subscribe('{b3}', 5)", "ID008"},
	{"subscribe where the shard is open", "b", "UPDATE firn.shard SET state = 'open' WHERE shard = 3", "firn.subscribe('{b3}', 4)", "ID007"},
	{"subscribe on a copy", "b", onCopy, "firn.subscribe('{b3}', 4)", "ID003"},
	{"subscribe without guards", "b", "ALTER TABLE insta3.users DISABLE TRIGGER firn_receiver", "firn.subscribe('{b3}', 4)", "ID007"},
	{"subscribe with guards for programs only", "b", "ALTER TABLE insta3.users ENABLE TRIGGER firn_receiver_all", "firn.subscribe('{b3}', 4)", "ID007"},
	{"subscribe with guards of somebody", "b", "CREATE OR REPLACE TRIGGER firn_receiver AFTER INSERT ON insta3.users EXECUTE FUNCTION suppress_redundant_updates_trigger(); ALTER TABLE insta3.users ENABLE REPLICA TRIGGER firn_receiver", "firn.subscribe('{b3}', 4)", "ID007"},
	{"what serves stays published", "b", "SELECT firn.empty_publication('{b2}')", "cardinality(firn.published('insta2', 'firn_back_{b2}'))", "4"},
	{"what is copied is not sent back", "b", "SELECT firn.add_to_publication('insta1', 'firn_back_{b1}'), firn.empty_publication('{b1}')", "cardinality(firn.published('insta1', 'firn_back_{b1}'))", "0"},

	{"lock a copy", "b", follows, "firn.lock_tables({1})", ""},
	{"lock a copy that was not loaded", "b", follows + "UPDATE firn.move SET loaded = false WHERE shard = 1", "firn.lock_tables({1})", "ID008"},
	{"lock a copy whose subscription is off", "b", follows + "ALTER SUBSCRIPTION firn_move_{b1} DISABLE", "firn.lock_tables({1})", "ID008"},
	{"lock a copy of which a table is being copied", "b", follows + "UPDATE pg_subscription_rel SET srsubstate = 'd' WHERE srrelid = 'insta1.users'::regclass", "firn.lock_tables({1})", "ID008"},
	{"lock a copy with a table that nobody fills", "b", follows + "CREATE TABLE insta1.more (id bigint PRIMARY KEY); SELECT firn.guard_tables(1, 'insta1'); UPDATE firn.move SET copied = firn.fingerprint('insta1', false) WHERE shard = 1", "firn.lock_tables({1})", "ID008"},
	{"lock a copy of another schema", "b", follows + "ALTER TABLE insta1.users ADD COLUMN nick text", "firn.lock_tables({1})", "ID008"},
	{"lock a copy that would take what is another's", "b", follows + "ALTER TABLE insta1.users DISABLE TRIGGER firn_receiver_all", "firn.lock_tables({1})", "ID008"},
	{"lock what is on a copy", "b", follows + onCopy, "firn.lock_tables({1})", "ID008"},
	{"autovacuum waits", "a", "SELECT firn.hold_off_autovacuum(1)", "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'ShareUpdateExclusiveLock' AND relation IN (SELECT relation FROM firn.relations('insta1'))", "4"},
	{"who waits for autovacuum waits longer than it may", "a", "SET LOCAL lock_timeout = 30; SELECT firn.hold_off_autovacuum(1)", "SELECT setting::integer > 2 * (SELECT setting::integer FROM pg_settings WHERE name = 'deadlock_timeout') FROM pg_settings WHERE name = 'lock_timeout'", "t"},
	{"programs wait where a copy is locked", "b", follows + "SELECT firn.lock_tables({1})", "SELECT string_agg(mode, ' ') FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND classid = x'6669726f'::integer AND objid = 1", "ExclusiveLock"},
	{"what is written to a copy that is locked will be sent back", "b", follows + "SELECT firn.lock_tables({1})", "cardinality(firn.published('insta1', 'firn_back_{b1}'))", "4"},
	{"writers wait", "a", "SELECT firn.lock_tables({1})", "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'ShareRowExclusiveLock' AND relation IN (SELECT relation FROM firn.relations('insta1'))", "4"},
	{"who draws from a sequence waits", "a", "SELECT firn.lock_tables({1})", "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'ShareRowExclusiveLock' AND relation = 'insta1.users_number_seq'::regclass", "1"},

	{"let go", "a", "", letGoOf1 + " > 0", "t"},
	{"let go again", "a", "SELECT " + letGoOf1, letGoOf1 + " = (SELECT floor FROM insta1.firn_mark WHERE term = {t1})", "t"},
	{"let go what is closed", "a", "UPDATE firn.shard SET state = 'closed' WHERE shard = 1", letGoOf1, "ID001"},
	{"let go on a copy", "a", onCopy, letGoOf1, "ID003"},
	{"let go to a server that is not of the move", "a", "", "firn.let_go({1}, 'c', '{}')", "ID007"},
	{"let go to itself", "a", "", "firn.let_go({1}, 'a', '{}')", "ID007"},
	{"let go what is in no move", "a", "DELETE FROM firn.move WHERE shard = 1", letGoOf1, "ID007"},
	{"let go of another schema", "a", "ALTER TABLE insta1.users ADD COLUMN nick text", letGoOf1, "ID008"},
	{"let go of what was not copied", "a", "UPDATE firn.move SET copied = NULL WHERE shard = 1", letGoOf1, "ID008"},
	{"let go with a table that is not replicated", "a", "ALTER PUBLICATION firn_move_{b1} DROP TABLE insta1.users", letGoOf1, "ID008"},
	{"let go with a publication of somebody", "a", "CREATE PUBLICATION mine FOR TABLE insta1.users", letGoOf1, "2BP01"},
	{"what was let go is fenced", "a", "SELECT " + letGoOf1, unfenced, "0"},
	{"what was let go is fenced again", "a", "SELECT firn.raise_fence(1, 'insta1'), firn.lower_fence('insta1'); SELECT " + letGoOf1, unfenced, "0"},
	{"what was let go is guarded", "a", "SELECT " + letGoOf1, unguarded, "0"},
	{"what was let go has moved", "a", "SELECT " + letGoOf1, "SELECT state || moved_to FROM firn.shard WHERE shard = 1", "movedb"},
	{"what was let go gives no ids", "a", "SELECT firn.start(g, " + ahead + ") FROM firn.generator AS g WHERE g.shard = 1; SELECT " + letGoOf1, "insta1.next_id()", "ID002"},
	{"what comes back is not sent again", "a", "SELECT " + letGoOf1, "cardinality(firn.published('insta1', 'firn_move_{b1}'))", "0"},
	{"the mark has the numbers of sequences", "a", "SELECT " + letGoOf1, "SELECT sequences FROM insta1.firn_mark WHERE term = {t1}", `{"users_number_seq": ["500", true]}`},
}

const (
	letGoOf1  = "firn.let_go({1}, 'b', '{}')"
	unfenced  = "SELECT count(*) FROM firn.relations('insta1') AS r WHERE NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = r.relation AND tgname = 'firn_fence' AND tgenabled = 'O' AND tgtype & 60 = 60)"
	unguarded = "SELECT count(*) FROM firn.replicated('insta1') AS r WHERE NOT firn.is_guarded(r)"
)
