package setup_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/setup"
)

// TestAboveClocks: the latest clock is a floor for all later ids. It counts only where
// another clock agrees.
func TestAboveClocks(t *testing.T) {
	const year = 365 * 24 * time.Hour
	now := time.Now()
	for _, tt := range []struct {
		name   string
		clocks map[string]time.Duration
		ahead  time.Duration // of the floor
		wrong  string        // whose clock is doubted
	}{
		{"all agree", map[string]time.Duration{"a": time.Second, "b": -time.Second}, time.Second, ""},
		{"one is behind", map[string]time.Duration{"a": -6 * year, "b": 20 * time.Second}, 20 * time.Second, ""},
		{"all servers are behind", map[string]time.Duration{"a": -6 * year, "b": -6 * year}, 0, "this host"},
		{"one is ahead", map[string]time.Duration{"a": 0, "b": 5 * year}, 0, "server b"},
		{"one is ahead by two hours", map[string]time.Duration{"a": 0, "b": 2 * time.Hour}, 0, "server b"},
		{"the only one is ahead", map[string]time.Duration{"a": 5 * year}, 0, "server a"},
	} {
		state, err := setup.Above(firn.MustLayout("instagram"), now, tt.clocks, 10*time.Second)
		var clock *setup.ClockError
		if tt.wrong != "" {
			if !errors.As(err, &clock) || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s: %d, %v", tt.name, state, err)
			}
			continue
		}
		if want := firn.MustLayout("instagram").Tick(now.Add(tt.ahead + 10*time.Second)); err != nil || state>>10 != int64(want) {
			t.Errorf("%s: %d, %v", tt.name, state>>10-int64(want), err)
		}
	}
}

// TestReopenClock: a server whose clock has jumped, or that is told of one that has, opens
// no shard, and takes none from the others. It opens it once the clock is right, or an
// operator has said so.
func TestReopenClock(t *testing.T) {
	db := newDatabase(t)
	var b strings.Builder
	if err := errors.Join(install.WriteSQL(&b, firn.MustLayout("instagram"), install.Definition{Number: 1, Schema: "insta1"}), install.WriteMoves(&b, firn.MustLayout("instagram"))); err != nil {
		t.Fatal(err)
	}
	clock := strings.NewReplacer("pg_catalog.clock_timestamp()", "test.clock()", "clock_timestamp()", "test.clock()")
	db.must(t, "CREATE SCHEMA test; CREATE TABLE test.ahead AS SELECT interval '0' AS by; CREATE FUNCTION test.clock() RETURNS timestamptz LANGUAGE sql AS 'SELECT clock_timestamp() + by FROM test.ahead'")
	db.must(t, clock.Replace(b.String()))
	db.must(t, "UPDATE firn.server SET cluster = 'c1', name = 'a', shards = 2, keys = 'mod', schemas = 'insta%d'; SELECT insta1.next_id(); SELECT firn.close(1)")
	reopen := func(above time.Duration) error {
		plan, err := setup.PlanReopen("a", look(t, db.Conn), nil, nil, nil)
		if err != nil || len(plan.Shards) != 1 {
			t.Fatalf("%+v, %v", plan, err)
		}
		other := newDatabase(t)
		other.must(t, b.String())
		other.must(t, "UPDATE firn.server SET cluster = 'c1', name = 'b'; DELETE FROM firn.generator; DELETE FROM firn.shard")
		state := int64(firn.MustLayout("instagram").Tick(time.Now().Add(above))) << 10
		err = plan.Reopen(t.Context(), db.Conn, map[string]*pgx.Conn{"b": other.Conn}, plan.Shards[0], state)
		if n := other.one(t, "SELECT count(*)::text FROM firn.shard"); err != nil && n != "0" {
			t.Errorf("%s above: refused, and taken from the other server", above)
		}
		return err
	}
	refused := func(what string, err error, hint string) {
		t.Helper()
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "ID009" || !strings.Contains(pg.Hint, hint) {
			t.Errorf("%s: %v", what, err)
		}
	}
	const year = 365 * 24 * time.Hour
	refused("a floor years ahead", reopen(5*year), "set the clock that is wrong")
	db.must(t, "UPDATE test.ahead SET by = '5 years'")
	refused("the clock is years ahead", reopen(5*year), "SELECT firn.trust_clock")
	refused("the clock is years ahead, without a floor", reopen(-50*year), "SELECT firn.trust_clock")
	db.must(t, "UPDATE test.ahead SET by = '0'")
	if err := reopen(time.Minute); err != nil {
		t.Fatal(err)
	}
	if ahead := db.one(t, "SELECT ((firn.decode(insta1.next_id())).time < clock_timestamp() + interval '2 minutes')::text"); ahead != "true" {
		t.Errorf("ids are ahead: %s", ahead)
	}
	db.must(t, "SELECT firn.close(1); UPDATE test.ahead SET by = '5 years'; SELECT firn.trust_clock((clock_timestamp() + interval '5 years')::date)")
	if err := reopen(5 * year); err != nil {
		t.Error(err)
	}
}

// TestInitClock: a server that comes into a cluster has its clock followed from then on. One
// that is far from this host's is refused, and nothing is made.
func TestInitClock(t *testing.T) {
	for _, by := range []string{"3 years", "-3 years", "2 hours"} {
		ahead := newDatabase(t)
		name := ahead.Config().Database
		ahead.must(t, fmt.Sprintf(`CREATE SCHEMA test; CREATE FUNCTION test.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT pg_catalog.clock_timestamp() + interval ''%s''';
			ALTER DATABASE %s SET search_path = test, pg_catalog`, by, name))
		var clock *setup.ClockError
		servers := serversOf(ahead)
		if _, err := tryInit(t.Context(), servers, setup.Wish{Count: 2}); !errors.As(err, &clock) || clock.Clock != "server a" && clock.Other != "server a" {
			t.Errorf("%s ahead: init: %v", by, err)
		}
		if ahead.one(t, "SELECT count(*)::text FROM pg_namespace WHERE nspname = 'firn'") != "0" {
			t.Errorf("%s ahead: the schema was made", by)
		}
		both := serversOf(newDatabase(t), ahead)
		mustInit(t, both[:1], setup.Wish{Count: 2})
		opened, err := setup.Open(t.Context(), both, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := opened.Add([]string{"b"}, []string{"setup_app"}); !errors.As(err, &clock) {
			t.Errorf("%s ahead: add: %v", by, err)
		}
		if _, err := opened.Adopt(t.Context(), adoptWish(), "next_id"); !errors.As(err, &clock) {
			t.Errorf("%s ahead: adopt: %v", by, err)
		}
		opened.Close()
	}
}
