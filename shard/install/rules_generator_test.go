package install_test

import (
	"fmt"
	"testing"
)

// opened opens shard 0 an hour ahead of the clock, so that a draw does not have to move it up.
const opened = "SELECT firn.open_at(0, " + ahead + "); "

// generatorRules are those of what gives ids.
var generatorRules = []rule{
	{"enter", "a", "", "firn.enter(0, 'rules')", ""},
	{"enter another cluster", "a", "", "firn.enter(0, 'other')", "ID006"},
	{"enter no shard", "a", "", "firn.enter(99, 'rules')", "ID005"},
	{"enter what is closed", "a", "UPDATE firn.shard SET state = 'closed'", "firn.enter(0, 'rules')", "ID001"},
	{"enter what has moved", "b", "", "firn.enter(1, 'rules')", "ID002"},
	{"draw what is closed", "a", "UPDATE firn.shard SET state = 'closed'", "firn.advance('insta0.next_id_offset', NULL)", "ID001"},
	{"draw what was ended", "a", "SELECT setval('insta0.next_id_offset', 5, false)", "insta0.next_id()", "ID001"},
	{"draw from a restored generator", "a", "UPDATE firn.generator SET identity = identity::integer + 1", "firn.advance('insta0.next_id_offset', NULL)", "ID003"},
	{"draw from a restored generator, with its function", "a", opened + "UPDATE firn.generator SET identity = identity::integer + 1; " + rewrite, "insta0.next_id()", "ID003"},

	{"ids are above those of a function that is replaced", "b", "CREATE SCHEMA insta9; CREATE FUNCTION insta9.next_id() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'; SELECT firn.create_shard(9, 'insta9')", "insta9.next_id() > firn.pack(firn.now_state(), 9) + (450::bigint << 22)", "t"},
	{"ids follow the clock", "b", "SELECT firn.create_shard(9, 'insta9'), pg_sleep(0.01)", "SELECT insta9.next_id() >= firn.pack(x, 9) FROM (SELECT firn.now_state() OFFSET 0) AS y (x)", "t"},
	{"ids follow the clock where an owner has begun the counter anew", "b", "SELECT firn.create_shard(9, 'insta9'); SELECT insta9.next_ids(1000); SELECT pg_sleep(0.01); ALTER SEQUENCE insta9.next_id_counter RESTART", "SELECT min(i) >= firn.pack(x, 9) FROM (SELECT firn.now_state() OFFSET 0) AS y (x), insta9.next_ids(2) AS i GROUP BY x", "t"},
	{"one past the end of the layout", "b", "SELECT firn.create_shard(9, 'insta9'), firn.open_at(9, " + end + " - 3); SELECT nextval('insta9.next_id_counter') FROM generate_series(1, 5)", "insta9.next_id()", "ID004"},
	{"many past the end of the layout", "b", "SELECT firn.create_shard(9, 'insta9'), firn.open_at(9, " + end + " - 10)", "SELECT max(i) FROM insta9.next_ids(100) AS i", "ID004"},
	{
		"a clock near the end of the layout does not move the state there", "b",
		"CREATE TEMPORARY TABLE was AS SELECT last_value FROM firn.clock_state; SELECT firn.create_shard(9, 'insta9'), setval('firn.clock_state', " + end + " - 10); " +
			"CREATE OR REPLACE FUNCTION firn.now_state() RETURNS bigint LANGUAGE sql AS 'SELECT " + end + "'; " +
			"DO $$ BEGIN PERFORM firn.advance('insta9.next_id_offset', NULL); EXCEPTION WHEN SQLSTATE 'ID004' THEN NULL; END $$; SELECT setval('firn.clock_state', last_value) FROM was",
		"pg_sequence_last_value('insta9.next_id_offset') < " + end + " / 2", "t",
	},

	{"close says what was not given", "a", "", "SELECT firn.pack(firn.close(0), 0) >= x FROM (SELECT max(i) FROM insta0.next_ids(100) AS i) AS y (x)", "t"},
	{"close is a step", "a", "SELECT firn.close(0)", "SELECT term - {t0} || state FROM firn.shard WHERE shard = 0", "1closed"},
	{"what is closed gives nothing", "a", opened + "SELECT firn.close(0)", "insta0.next_id()", "ID001"},
	{"what is closed gives nothing, rolled back", "a", "SAVEPOINT x; SELECT firn.close(0); ROLLBACK TO x", "insta0.next_id()", "ID001"},
	{"open is a step", "a", "SELECT firn.open(0)", "SELECT term - {t0} || state FROM firn.shard WHERE shard = 0", "1open"},
	{"open what has moved", "b", "", "firn.open(1)", "ID002"},
	{"open above a state", "a", "", "SELECT firn.open(0, x) > x FROM (SELECT " + ahead + ") AS y (x)", "t"},
	{"open above the clock", "b", "SELECT firn.create_shard(9, 'insta9')", "firn.open(9) - firn.now_state() > 450 * 512", "t"},
	{"open a restored generator", "a", "UPDATE firn.generator SET identity = identity::integer + 1; SELECT firn.open(0)", "firn.advance('insta0.next_id_offset', NULL) > 0", "t"},
	{"open past the end", "a", "", "firn.open(0, " + end + ")", "22023"},
	{"open on another copy", "a", "UPDATE firn.shard SET system = 1; SELECT firn.open(0)", "firn.enter(0, 'rules')", ""},

	{"make a shard past the last", "a", "", "firn.create_shard(8192, 'other')", "23514"},
	{"make a shard in another schema", "a", "", "firn.create_shard(0, 'other')", "42710"},
	{"make a second shard in a schema", "a", "", "firn.create_shard(9, 'insta0')", "42710"},
	{"make a shard again that is closed", "a", "SELECT firn.close(0), firn.create_shard(0, 'insta0')", "SELECT state FROM firn.shard WHERE shard = 0", "closed"},
	{"a generator that comes to a closed shard", "a", "SELECT firn.close(0), firn.create_shard(0, 'insta0', 'more')", "insta0.more()", "ID001"},
	{"a generator that comes to a closed shard stays ended", "a", "SELECT firn.close(0), firn.create_shard(0, 'insta0', 'more')", "pg_sequence_last_value('insta0.more_offset')", ""},
	{"a generator that comes to a copy stays ended", "a", "UPDATE firn.shard SET timeline = '00000000'; SELECT firn.create_shard(0, 'insta0', 'more')", "pg_sequence_last_value('insta0.more_offset')", ""},
	{"a generator that comes to a shard", "a", opened + "SELECT firn.create_shard(0, 'insta0', 'more')", "insta0.more() > insta0.next_id() + (450::bigint << 22)", "t"},
	{"a generator that was never open", "a", opened + "SELECT firn.close(0), firn.create_shard(0, 'insta0', 'more'), firn.open(0)", "insta0.more() > insta0.next_id() + (450::bigint << 22)", "t"},
	{"renew what has moved", "b", "SELECT firn.claim(0, 'insta0', 99, 'me', 'abcdefghijkl', 'a', 'b', true), firn.renew_shard(0)", "to_regnamespace('insta0')", ""},
	{"who draws does not set the offset", "a", grant, "has_sequence_privilege('pg_monitor', 'insta0.next_id_offset', 'UPDATE')", "f"},
	{"who draws does not set the counter", "a", grant, "has_sequence_privilege('pg_monitor', 'insta0.next_id_counter', 'UPDATE')", "f"},
	{"arguments in another order", "a", "CREATE OR REPLACE FUNCTION firn.count_argument() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'", "firn.check_order()", "0A000"},
}

// end is the first state past the end of the layout.
const end = "(1::bigint << 50)"

const grant = "SELECT firn.grant_shard(0, 'pg_monitor')"

const rewrite = "SELECT firn.write_functions(g) FROM firn.generator AS g WHERE shard = 0"

// elsewhere are rules about a shard that was opened on what this is a copy of, which differs in one thing.
func elsewhere() (all []rule) {
	for _, differs := range []string{"system = 1", "timeline = '00000000'", "database = 'other'", "relation = 1", "incarnation = gen_random_uuid()"} {
		here := "UPDATE firn.shard SET " + differs
		all = append(all,
			rule{"is it here with " + differs, "a", here, "SELECT firn.is_here(s) FROM firn.shard AS s WHERE shard = 0", "f"},
			rule{"enter with " + differs, "a", here, "firn.enter(0, 'rules')", "ID003"},
			rule{"draw with " + differs, "a", here, "firn.advance('insta0.next_id_offset', NULL)", "ID003"})
		if differs[0] == 't' || differs[0] == 'd' {
			all = append(all, rule{"draw with a function of there, " + differs, "a", opened + here + "; " + rewrite, "insta0.next_id()", "ID003"})
		}
	}
	return all
}

// inTurn: to close and to open wait for the lock under which a draw moves the state, and so does a draw.
func inTurn(t *testing.T, a site) {
	t.Helper()
	other := site{"a", connect(t, a.Config().ConnString()), nil}
	other.must(t, fmt.Sprintf("SELECT pg_advisory_lock(%d, 'insta0.next_id_offset'::regclass::oid::integer)", 0x6669726e))
	for _, step := range []string{"firn.close(0)", "firn.open_at(0, 0)", "firn.advance('insta0.next_id_offset', NULL)"} {
		if got := a.says(t, "SET LOCAL lock_timeout = '100ms'", step); got != "55P03" {
			t.Errorf("%s does not wait for a draw, and says %q", step, got)
		}
	}
	other.must(t, "SELECT pg_advisory_unlock_all()")
}
