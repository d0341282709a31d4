package shard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// withClock makes shards 5 and 6 in a database whose clock a test sets.
func withClock(t *testing.T) (db *database, set func(ahead string)) {
	t.Helper()
	db = newDatabase(t)
	clock := strings.NewReplacer("pg_catalog.clock_timestamp()", "test.clock()", "clock_timestamp()", "test.clock()")
	mustExec(t, db.Conn, `
CREATE SCHEMA test;
CREATE TABLE test.ahead (by interval);
INSERT INTO test.ahead VALUES ('0');
CREATE FUNCTION test.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() + by FROM test.ahead $$;`)
	mustExec(t, db.Conn, clock.Replace(script(t, firn.MustLayout("instagram"), insta(5))))
	mustExec(t, db.Conn, clock.Replace(script(t, firn.MustLayout("instagram"), insta(6))))
	return db, func(ahead string) {
		t.Helper()
		mustExec(t, db.Conn, fmt.Sprintf("UPDATE test.ahead SET by = '%s'", ahead))
	}
}

// near draws an id and fails unless its time is the machine's, moved by so much.
func near(t *testing.T, db *database, shard int, ahead time.Duration) {
	t.Helper()
	id, err := tryQuery[int64](t, db.Conn, fmt.Sprintf("SELECT insta%d.next_id()", shard))
	if err != nil {
		t.Fatalf("shard %d, %s ahead: %v", shard, ahead, err)
	}
	p, err := firn.MustLayout("instagram").Decode(firn.ID(id))
	if off := p.Time.Sub(time.Now().Add(ahead)); err != nil || off.Abs() > time.Minute {
		t.Fatalf("shard %d: the time of %d is %s off: %v", shard, id, off, err)
	}
}

const day = 24 * time.Hour

// TestClockJumps: a clock that reads a time past the end of the layout, or years ahead,
// gives no ids, and carries none ahead: once it is right, ids go on by themselves.
func TestClockJumps(t *testing.T) {
	for _, tt := range []struct{ ahead, code string }{
		{"200 years", "ID004"}, {"19 years", "ID009"}, {"2 years", "ID009"}, {"40 days", "ID009"},
	} {
		db, set := withClock(t)
		near(t, db, 5, 0)
		set(tt.ahead)
		for _, sql := range []string{
			"SELECT insta5.next_id()", "SELECT count(*) FROM insta5.next_ids(3)", "SELECT insta6.next_id()",
			"SELECT firn.open(5)", "SELECT firn.create_shard(5, 'insta5', 'next_id', 'other_id')",
		} {
			if e := refused(t, db.Conn, tt.code, sql); !strings.Contains(e.Message, "the clock of this server says 2") || !strings.Contains(e.Hint, "set it: ids go on by themselves") {
				t.Errorf("%s ahead: %s: %s (%s)", tt.ahead, sql, e.Message, e.Hint)
			}
		}
		set("0")
		near(t, db, 5, 0)
		near(t, db, 6, 0)
		mustExec(t, db.Conn, "SELECT firn.close(5); SELECT firn.open(5)")
		near(t, db, 5, 0)
	}
}

// TestIdle: a shard that nobody drew from for long goes on by itself, as long as the
// clock was followed by any shard of the database meanwhile, or the server was up.
func TestIdle(t *testing.T) {
	db, set := withClock(t)
	near(t, db, 5, 0)
	set("7 days")
	near(t, db, 5, 7*day)
	set("30 days")
	near(t, db, 5, 30*day)
	set("55 days")
	near(t, db, 5, 55*day)
	near(t, db, 6, 55*day) // for the first time
	set("0")
	near(t, db, 6, 55*day) // counts on
	set("100 days")
	refused(t, db.Conn, "ID009", "SELECT insta5.next_id()")
	// Each checkpoint_timeout a server that is up counts a checkpoint.
	each := query[int64](t, db.Conn, "SELECT setting::bigint FROM pg_settings WHERE name = 'checkpoint_timeout'")
	mustExec(t, db.Conn, fmt.Sprintf("CREATE OR REPLACE FUNCTION firn.timed_checkpoints() RETURNS bigint LANGUAGE sql AS 'SELECT %d::bigint'", int64(20*day/time.Second)/each+100))
	near(t, db, 5, 100*day)
	set("150 days") // they count once
	refused(t, db.Conn, "ID009", "SELECT insta5.next_id()")
	// A shard that came from elsewhere, where it was in use: its own state bears out the clock.
	mustExec(t, db.Conn, "SELECT firn.close(5); SELECT firn.open_at(5, firn.now_state() - 86400 * 1024000::bigint)")
	near(t, db, 5, 150*day)
	near(t, db, 6, 150*day)
}

// TestTimedCheckpoints: what says that a server was up is there in this version.
func TestTimedCheckpoints(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	if n := query[int64](t, db.Conn, "SELECT firn.timed_checkpoints()"); n < 0 {
		t.Error(n)
	}
}

// TestTrustClock: an operator says that a clock is right that was not followed, with the
// date; what the message says, typed as it stands, trusts no wrong clock.
func TestTrustClock(t *testing.T) {
	db, set := withClock(t)
	near(t, db, 5, 0)
	set("2 years")
	e := refused(t, db.Conn, "ID009", "SELECT insta5.next_id()")
	_, hint, _ := strings.Cut(e.Hint, "SELECT ")
	refused(t, db.Conn, "22007", "SELECT "+hint)
	if e := refused(t, db.Conn, "22023", "SELECT firn.trust_clock(current_date)"); !strings.Contains(e.Message, "the clock of this server says 2") {
		t.Error(e.Message)
	}
	mustExec(t, db.Conn, "DO $$ BEGIN CREATE ROLE app LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$; GRANT USAGE ON SCHEMA firn TO app")
	app := connect(t, strings.Replace(db.url, "t@", "app@", 1))
	refused(t, app, "42501", "SELECT firn.trust_clock('2030-01-01')")
	refused(t, app, "42501", "SELECT setval('firn.clock_state', 1)")
	refused(t, db.Conn, "ID009", "SELECT insta5.next_id()")
	const right = "SELECT firn.trust_clock((clock_timestamp() + interval '2 years')::date)"
	if text := query[string](t, db.Conn, right); !strings.Contains(text, "ids go on from 2") {
		t.Error(text)
	}
	near(t, db, 5, time.Until(time.Now().AddDate(2, 0, 0)))
	near(t, db, 6, time.Until(time.Now().AddDate(2, 0, 0)))
	// Said of a clock that was set back, it makes that the one that is followed.
	set("1 year")
	mustExec(t, db.Conn, "SELECT firn.trust_clock((clock_timestamp() + interval '1 year')::date)")
	if e := refused(t, db.Conn, "22023", right); !strings.Contains(e.Message, "not 2") {
		t.Error(e.Message)
	}
	set("200 years")
	refused(t, db.Conn, "ID004", "SELECT firn.trust_clock((clock_timestamp() + interval '200 years')::date)")
	set("19 years")
	refused(t, db.Conn, "ID009", "SELECT firn.open(5)") // that date was not kept
}

// TestClockSetBack: a clock that was set back for a moment, or jumps while the SQL is run again, leaves
// what is known of the time as it was.
func TestClockSetBack(t *testing.T) {
	db, set := withClock(t)
	near(t, db, 5, 0)
	set("-40 days")
	mustExec(t, db.Conn, "SELECT firn.open(5)")
	set("0")
	mustExec(t, db.Conn, "SELECT firn.open(5)")
	near(t, db, 5, 0)
	set("2 years")
	mustExec(t, db.Conn, strings.NewReplacer("pg_catalog.clock_timestamp()", "test.clock()", "clock_timestamp()", "test.clock()").Replace(script(t, firn.MustLayout("instagram"), insta(5))))
	refused(t, db.Conn, "ID009", "SELECT insta5.next_id()")
}
