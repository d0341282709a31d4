package install_test

import "testing"

// ahead is a state an hour ahead of the clock.
const ahead = "firn.now_state() + 3600000 * 512::bigint"

// openingRules are those of what opens a shard, and of what drops a copy.
var openingRules = []rule{
	{"take", "b", wordOf1, "firn.take({1})", "t"},
	{"take without a word", "b", "", "firn.take({1})", "f"},
	{"take by the word of another term", "b", "INSERT INTO insta1.firn_mark VALUES ({t1} - 1, '{k1}', 'b', 7, '{}')", "firn.take({1})", "f"},
	{"take by the word of another mover", "b", "INSERT INTO insta1.firn_mark VALUES ({t1}, 'other', 'b', 7, '{}')", "firn.take({1})", "f"},
	{"take by a word for another server", "b", "INSERT INTO insta1.firn_mark VALUES ({t1}, '{k1}', 'c', 7, '{}')", "firn.take({1})", "f"},
	{"take again", "b", wordOf1 + "; SELECT firn.take({1})", "firn.take({1})", "t"},
	{"take on a copy", "b", wordOf1 + "; " + onCopy, "firn.take({1})", "ID003"},
	{"take what was not loaded", "b", wordOf1 + "; UPDATE firn.move SET loaded = false WHERE shard = 1", "firn.take({1})", "ID007"},
	{"take what is in no move", "b", wordOf1 + "; DELETE FROM firn.move WHERE shard = 1", "firn.take({1})", "ID007"},
	{"take what is open", "a", "", "firn.take({1})", "ID007"},
	{"who takes is at a term of its own", "b", wordOf1 + "; SELECT firn.take({1})", "SELECT term - {t1} || attempt FROM firn.shard WHERE shard = 1", "1{k1}+"},
	{"ids start above those that were given", "b", "INSERT INTO insta1.firn_mark VALUES ({t1}, '{k1}', 'b', " + ahead + ", '{}'); SELECT firn.take({1})", "insta1.next_id() > (SELECT firn.pack(floor, 1) FROM insta1.firn_mark WHERE term = {t1})", "t"},
	{"programs write to what was taken", "b", wordOf1 + "; SELECT firn.take({1})", "SELECT count(*) FROM pg_trigger WHERE tgname = 'firn_fence' AND tgenabled <> 'D' AND tgrelid IN (SELECT relation FROM firn.relations('insta1'))", "0"},
	{"what is written to it is sent back", "b", wordOf1 + "; SELECT firn.take({1})", "cardinality(firn.published('insta1', 'firn_back_{b1}'))", "4"},
	{"sequences continue", "b", wordWith("700") + "; SELECT firn.take({1})", "nextval('insta1.users_number_seq')", "701"},

	{"record the owner of what is open", "a", "", "firn.record_owner(1, 99, 'b')", "ID007"},
	{"record the owner", "a", onCopy, "firn.record_owner(1, 99, 'b')", ""},
	{"record the owner below a term", "a", onCopy, "firn.record_owner(1, {t1} - 1, 'b')", "ID007"},
	{"a copy is not kept any more", "a", onCopy + "; SELECT firn.record_owner(1, 99, 'b')", "SELECT count(*) FROM firn.move WHERE shard = 1", "0"},
	{"a copy gives no ids", "a", onCopy + "; SELECT firn.record_owner(1, 99, 'b')", "insta1.next_id()", "ID002"},

	{"revoke", "b", "", "firn.may_revoke(1, 99, 'a', 98)", ""},
	{"revoke what is open", "a", "", "firn.may_revoke(0, 99, 'b', 98)", "ID007"},
	{"revoke what is open on a copy", "a", onCopy, "firn.may_revoke(0, 99, 'b', 98)", ""},
	{"revoke below a term", "a", "", "firn.may_revoke(2, {t2}, 'b', 98)", "ID007"},
	{"revoke what was let go to this server", "b", wordOf1, "firn.may_revoke(1, 99, 'a', 98)", "ID007"},
	{"revoke what was here last", "a", "", "firn.may_revoke(2, 99, 'b', {t2} - 1)", "ID007"},
	{"revoke what went there", "a", "", "firn.may_revoke(2, 99, 'b', {t2})", ""},
	{"revoke asks that", "a", "", "firn.revoke(0, 'insta0', 99, 'b', 98)", "ID007"},
	{"what was revoked is not taken", "b", "SELECT firn.revoke(1, 'insta1', 99, 'a', 98); " + wordOf1, "firn.take({1})", "ID007"},
	{"the move of what was revoked has ended", "b", "SELECT firn.revoke(1, 'insta1', 99, 'a', 98)", "SELECT count(*) FROM firn.move WHERE shard = 1", "0"},

	{"overrule", "a", "", "firn.overrule(0, 99, 'b', 98) > 0", "t"},
	{"overrule no shard", "a", "", "firn.overrule(99, 99, 'b', 98)", "ID007"},
	{"overrule what has moved", "a", "", "firn.overrule(2, 99, 'b', 98)", "ID007"},
	{"overrule a copy", "a", onCopy, "firn.overrule(0, 99, 'b', 98)", "ID007"},
	{"overrule a later one", "a", "", "firn.overrule(0, 99, 'b', {t0} - 1)", "ID007"},
	{"overrule below a term", "a", "", "firn.overrule(0, {t0}, 'b', 98)", "ID007"},
	{"what was overruled is fenced", "a", "SELECT firn.overrule(1, 99, 'b', 98)", unfenced, "0"},
	{"what was overruled gives no ids", "a", opened + "SELECT firn.overrule(0, 99, 'b', 98)", "insta0.next_id()", "ID002"},

	{"reopen", "a", "", mayReopen("0, {t0}, 'open', system, timeline, incarnation"), "{t0}"},
	{"reopen at another term", "a", "", mayReopen("0, {t0} + 1, 'open', system, timeline, incarnation"), "ID007"},
	{"reopen in another state", "a", "", mayReopen("0, {t0}, 'closed', system, timeline, incarnation"), "ID007"},
	{"reopen another system", "a", "", mayReopen("0, {t0}, 'open', system + 1, timeline, incarnation"), "ID007"},
	{"reopen another timeline", "a", "", mayReopen("0, {t0}, 'open', system, 'FFFFFFFF', incarnation"), "ID007"},
	{"reopen another incarnation", "a", "", mayReopen("0, {t0}, 'open', system, timeline, gen_random_uuid()"), "ID007"},
	{"a server that is no copy keeps its incarnation", "a", "", "SELECT firn.begin_reopen(v.incarnation) = v.incarnation FROM firn.server AS v", "t"},
	{"a copy takes an incarnation", "a", copied, "SELECT firn.begin_reopen(v.incarnation) <> v.incarnation FROM firn.server AS v", "t"},
	{"a copy takes one incarnation", "a", copied + "; SELECT firn.begin_reopen(v.incarnation) FROM firn.server AS v", "SELECT firn.begin_reopen(v.incarnation) = v.incarnation AND firn.incarnation() = v.incarnation FROM firn.server AS v", "t"},
	{"a copy knows what it was", "a", "CREATE TEMPORARY TABLE was AS SELECT v.incarnation FROM firn.server AS v; " + copied + "; SELECT firn.begin_reopen(w.incarnation) FROM was AS w", "SELECT v.formerly = ARRAY[w.incarnation] FROM firn.server AS v, was AS w", "t"},
	{"another copy than was seen", "a", copied, "firn.begin_reopen(gen_random_uuid())", "ID007"},
	{"a server that nobody knows yet", "a", "SELECT firn.know('b', '11111111-1111-1111-1111-111111111111', '{}', false)", "SELECT v.peers ->> 'b' FROM firn.server AS v", "11111111-1111-1111-1111-111111111111"},
	{"a copy of the server that is known", "a", "SELECT firn.know('b', '11111111-1111-1111-1111-111111111111', '{}', false); SELECT firn.know('b', '22222222-2222-2222-2222-222222222222', '{11111111-1111-1111-1111-111111111111}', false)", "SELECT v.peers ->> 'b' FROM firn.server AS v", "22222222-2222-2222-2222-222222222222"},
	{"the server that is known", "a", "SELECT firn.know('b', '11111111-1111-1111-1111-111111111111', '{}', false)", "firn.know('b', '11111111-1111-1111-1111-111111111111', '{}', false)", ""},
	{"another copy of what was known", "a", "SELECT firn.know('b', '11111111-1111-1111-1111-111111111111', '{33333333-3333-3333-3333-333333333333}', false)", "firn.know('b', '22222222-2222-2222-2222-222222222222', '{33333333-3333-3333-3333-333333333333}', false)", "ID003"},
	{"another copy, by the word of an operator", "a", "SELECT firn.know('b', '11111111-1111-1111-1111-111111111111', '{33333333-3333-3333-3333-333333333333}', false); SELECT firn.know('b', '22222222-2222-2222-2222-222222222222', '{33333333-3333-3333-3333-333333333333}', true)", "SELECT v.peers ->> 'b' FROM firn.server AS v", "22222222-2222-2222-2222-222222222222"},
	{"nothing is opened on a copy", "a", "SELECT firn.close(0); " + copied, "firn.open(0)", "ID003"},
	{"what a copy is told of an owner is not its own", "a", onCopy + "; " + copied + "; SELECT firn.record_owner(1, 99, 'b')", "SELECT s.moved_to || firn.is_here(s) FROM firn.shard AS s WHERE s.shard = 1", "bfalse"},
	{"what another server takes from a copy is not its own", "a", copied + "; SELECT firn.revoke(7, 'insta7', 5, 'b', 2)", "SELECT firn.is_here(s) FROM firn.shard AS s WHERE s.shard = 7", "f"},
	{"reopen a copy that nobody calls complete", "b", "", mayReopen("1, {t1}, 'moved', system, timeline, incarnation"), "ID003"},
	{"reopen what was let go to this server", "b", wordOf1, mayReopen("1, {t1}, 'moved', system, timeline, incarnation"), "{t1}"},
	{"reopen what was let go to another", "b", wordOf1 + "; " + onCopy, mayReopen("1, {t1}, 'moved', system, '00000001', incarnation"), "ID003"},
	{"reopened sequences continue", "b", wordWith("1700") + "; SELECT " + reopen1, "nextval('insta1.users_number_seq')", "1701"},
	{"reopened sequences are not set back", "b", "SELECT setval('insta1.users_number_seq', 1900); " + wordWith("1700") + "; SELECT " + reopen1, "nextval('insta1.users_number_seq')", "1901"},
	{"a reopened sequence continues after the number that the mark says was drawn", "b", "SELECT setval('insta1.users_number_seq', 2700, false); " + wordWith("2700") + "; SELECT " + reopen1, "nextval('insta1.users_number_seq')", "2701"},
	{"a reopened sequence that descends", "b", "ALTER SEQUENCE insta1.users_number_seq INCREMENT -1 MINVALUE -100; SELECT setval('insta1.users_number_seq', -5); " + wordWith("-9") + "; SELECT " + reopen1, "nextval('insta1.users_number_seq')", "-10"},
	{"a reopened sequence with CYCLE continues as the mark says", "b", "ALTER SEQUENCE insta1.users_number_seq MAXVALUE 100000 CYCLE; SELECT setval('insta1.users_number_seq', 90000); " + wordWith("7") + "; SELECT " + reopen1, "nextval('insta1.users_number_seq')", "8"},
	{"programs write to what was reopened", "b", wordOf1 + "; SELECT " + reopen1, "SELECT count(*) FROM pg_trigger WHERE tgname = 'firn_fence' AND tgenabled <> 'D' AND tgrelid IN (SELECT relation FROM firn.relations('insta1'))", "0"},
	{"the move of what was reopened has ended", "b", wordOf1 + "; SELECT " + reopen1, "SELECT count(*) FROM firn.move WHERE shard = 1", "0"},
	{"what was reopened is at the term", "b", wordOf1 + "; SELECT " + reopen1, "SELECT term || state FROM firn.shard WHERE shard = 1", "99open"},
	{"a copy as it is, at another term", "a", "", "firn.make_do(2, {t2} + 1)", "ID007"},
	{"a copy as it is, of what is open", "a", "", "firn.make_do(0, {t0})", "ID007"},
	{"a copy as it is", "a", "", "firn.make_do(2, {t2})", ""},
	{"a copy as it is has the last numbers", "a", "UPDATE insta2.firn_mark SET sequences = '{\"users_number_seq\": [\"700\", true]}' WHERE term = {t2}; SELECT firn.make_do(2, {t2})", "nextval('insta2.users_number_seq')", "701"},
	{"another clock is years ahead", "a", "", "firn.floor_above(firn.now_state() + 40 * 86400000::bigint * 512)", "ID009"},
	{"above another clock", "a", "", "SELECT firn.floor_above(x) - x FROM (SELECT " + ahead + ") AS y (x)", "1"},
	{"above this clock", "a", "", "firn.floor_above(0) - firn.now_state() > 900 * 512", "t"},

	{"end what is elsewhere", "a", "", "firn.end_move({2})", "ID002"},
	{"what has ended is sent nowhere", "b", "SELECT firn.end_move({2})", "cardinality(firn.published('insta2', 'firn_back_{b2}'))", "0"},
	{"unsubscribe where it is open", "a", "", "firn.unsubscribe('{b1}', ARRAY[1], ARRAY[{t1}], ARRAY['{k1}'])", "ID007"},
	{"unsubscribe", "b", follows + unsubscribe1, "SELECT count(*) FROM pg_subscription WHERE subname = 'firn_move_{b1}'", "0"},
	{"unsubscribe what other shards need", "b", follows + "UPDATE firn.move SET batch = '{b1}' WHERE shard = 3; " + unsubscribe1, "SELECT count(*) FROM pg_subscription WHERE subname = 'firn_move_{b1}'", "1"},
	{"what moves need is not left over", "a", "", "SELECT count(*) FROM firn.leftovers()", "0"},
	{"what moves do not need is left over", "a", "DELETE FROM firn.move WHERE shard = 1", "SELECT string_agg(name, ' ') FROM firn.leftovers()", "firn_move_{b1}"},
	{"what others have is not left over", "a", "CREATE PUBLICATION firn_mine", "SELECT count(*) FROM firn.leftovers()", "0"},
	{"a copy that was let go with all rows has no rows too many", "a", "UPDATE firn.move SET counted = true; SELECT firn.note_surplus(2, '{b2}', 'x', false)", "SELECT surplus FROM firn.move WHERE shard = 2", ""},
	{"rows too many are those of a batch", "a", "SELECT firn.note_surplus(2, '{b1}', 'x', false)", "SELECT surplus FROM firn.move WHERE shard = 2", ""},
	{"rows too many", "a", "SELECT firn.note_surplus(2, '{b2}', 'x', false)", "SELECT surplus FROM firn.move WHERE shard = 2", "x"},
	{"a generator of what is here is not forgotten", "a", "DROP SCHEMA insta0 CASCADE; SELECT firn.forget_dropped()", "SELECT count(*) FROM firn.generator WHERE shard = 0", "1"},
	{"a generator of a move is not forgotten", "a", "DROP SCHEMA insta2 CASCADE; SELECT firn.forget_dropped()", "SELECT count(*) FROM firn.generator WHERE shard = 2", "1"},
	{"a generator of a copy is forgotten with the copy", "a", "DELETE FROM firn.move; DROP SCHEMA insta2 CASCADE; SELECT firn.forget_dropped()", "SELECT count(*) FROM firn.generator WHERE shard = 2", "0"},
	{"discard what is open", "a", "", "firn.discard({1})", "ID007"},
	{"discard on a copy", "b", onCopy, "firn.discard({1})", "ID003"},
	{"drop a copy that a move needs", "a", "", "firn.drop_copy(2, true)", "ID007"},
	{"drop a copy that was not compared", "a", "DELETE FROM firn.move", "firn.drop_copy(2, false)", "ID007"},
	{"drop what is open", "a", "DELETE FROM firn.move", "firn.drop_copy(0, true)", "ID007"},
	{"drop what others need", "a", "DELETE FROM firn.move; CREATE VIEW public.v AS SELECT id FROM insta2.users", "firn.drop_copy(2, true)", "2BP01"},
	{"drop what others write to", "a", "DELETE FROM firn.move; " + system + "CREATE SUBSCRIPTION mine CONNECTION 'dbname=none' PUBLICATION x WITH (connect = false, slot_name = NONE); INSERT INTO pg_subscription_rel SELECT s.oid, 'insta2.users'::regclass, 'r' FROM pg_subscription AS s WHERE s.subname = 'mine'", "firn.drop_copy(2, true)", "2BP01"},
	{"drop no copy of the shard", "a", "DELETE FROM firn.move; DELETE FROM firn.generator WHERE shard = 2; SELECT firn.drop_copy(2, true)", "to_regnamespace('insta2')", "insta2"},
	{"drop a copy", "a", "DELETE FROM firn.move; SELECT firn.drop_copy(2, true)", "to_regnamespace('insta2')", ""},
	{"drop the fences of what is elsewhere", "a", "", "firn.drop_fences({2})", "ID002"},
	{"PUBLIC may execute only these functions", "a", "", "SELECT string_agg(p.proname::text, ' ' ORDER BY p.proname) FROM pg_proc AS p WHERE p.pronamespace = 'firn'::regnamespace AND has_function_privilege('public', p.oid, 'EXECUTE')", "decode first_id last_id now_state pack"},
	{"guards stay as long as a move", "b", "SELECT firn.drop_fences({2})", "SELECT count(*) FROM firn.replicated('insta2') AS r WHERE NOT firn.is_guarded(r)", "0"},
}

const reopen1 = "firn.reopen(1, {t1}, 'moved', (pg_control_system()).system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), (SELECT incarnation FROM firn.server), 99, 0)"

const unsubscribe1 = "SELECT firn.unsubscribe('{b1}', ARRAY[1], ARRAY[{t1}], ARRAY['{k1}'])"

// wordWith is wordOf1 with the number that a sequence is at.
func wordWith(number string) string {
	return "INSERT INTO insta1.firn_mark VALUES ({t1}, '{k1}', 'b', 7, '{\"users_number_seq\": [\"" + number + "\", true]}')"
}

func mayReopen(arguments string) string {
	return "SELECT (firn.may_reopen(" + arguments + ")).term FROM (SELECT (pg_control_system()).system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), (SELECT incarnation FROM firn.server)) AS x (system, timeline, incarnation)"
}

// awaited: a program that comes while a mover opens the shard enters as soon as that is done. If the mover gives up, or
// takes longer than the program may wait, the program gets the usual error. It keeps no lock for which a mover would wait.
func awaited(t *testing.T, b site) {
	t.Helper()
	const enter, held = "firn.enter(1, 'rules')", "pg_try_advisory_xact_lock(x'6669726f'::integer, 1)"
	mover := site{"b", connect(t, b.Config().ConnString()), b.words}
	const lock = "BEGIN; SELECT " + held
	for _, tt := range []struct{ then, want string }{
		{"UPDATE firn.shard SET state = 'open' WHERE shard = 1; COMMIT", ""},
		{"ROLLBACK", "ID002"},
	} {
		mover.must(t, lock)
		said := make(chan string, 1)
		go func() { said <- b.says(t, "", enter) }()
		waits := waitsFor(t, mover, b)
		mover.must(t, tt.then)
		if got := <-said; got != tt.want || !waits {
			t.Errorf("while a mover does %s, a program that enters gets %q, not %q, and waits: %v", tt.then, got, tt.want, waits)
		}
		mover.must(t, "UPDATE firn.shard SET state = 'moved' WHERE shard = 1")
	}

	mover.must(t, lock)
	for _, given := range []string{"", "SET LOCAL statement_timeout = '40ms'", "SET LOCAL lock_timeout = '1ms'"} {
		if got := b.says(t, given, enter); got != "ID002" {
			t.Errorf("where a mover takes long, a program gets %q after %q", got, given)
		}
	}
	entered := make(chan error, 1)
	tx, err := b.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, err := tx.Exec(t.Context(), "SELECT "+enter); entered <- err }()
	waitsFor(t, mover, b)
	mover.must(t, "UPDATE firn.shard SET state = 'open' WHERE shard = 1; COMMIT")
	if err := <-entered; err != nil {
		t.Error(err)
	}
	if got := mover.says(t, "", held); got != "t" {
		t.Errorf("a program that has entered keeps the lock: %s", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	mover.must(t, "UPDATE firn.shard SET state = 'moved' WHERE shard = 1")
}
