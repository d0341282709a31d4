package shard_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
)

// A draw is ids that one statement drew, in order, and when it began and ended.
type draw struct {
	began, ended time.Time
	ids          []int64
}

// drawers has clients draw from a shard for d, each statement k times.
func drawers(t *testing.T, db *database, clients int, d time.Duration, sql string) []draw {
	t.Helper()
	var mu sync.Mutex
	var all []draw
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for range clients {
		c := connect(t, db.url)
		defer c.Close(context.Background())
		wg.Go(func() {
			var mine []draw
			for time.Now().Before(end) {
				one := draw{began: time.Now()}
				if err := c.QueryRow(context.Background(), sql).Scan(&one.ids); err != nil {
					t.Error(err)
					break
				}
				one.ended = time.Now()
				mine = append(mine, one)
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	return all
}

// judge counts the ids, those that are there twice, and those that are not above
// one whose statement had ended before theirs began, or above the one before in
// their own.
func judge(draws []draw) (ids, repeats, inversions int) {
	seen := map[int64]bool{}
	for _, d := range draws {
		for i, id := range d.ids {
			ids++
			if seen[id] {
				repeats++
			}
			seen[id] = true
			if i > 0 && id <= d.ids[i-1] {
				inversions++
			}
		}
	}
	ended := slices.Clone(draws)
	slices.SortFunc(ended, func(a, b draw) int { return a.ended.Compare(b.ended) })
	slices.SortFunc(draws, func(a, b draw) int { return a.began.Compare(b.began) })
	var highest int64
	for _, d := range draws {
		for len(ended) > 0 && ended[0].ended.Before(d.began) {
			highest = max(highest, slices.Max(ended[0].ids))
			ended = ended[1:]
		}
		if slices.Min(d.ids) <= highest {
			inversions++
		}
	}
	return ids, repeats, inversions
}

// The layouts of harsh scripts: ticks with room for 4 ids. In slow ones there is
// room for about as many as are drawn, so that fast draws and advances alternate; in
// quick ones nearly each draw advances.
const (
	slowTicks  = "time:45@500us,shard:3,seq:2;epoch=2026-01-01T00:00:00Z"
	quickTicks = "time:50@10us,shard:3,seq:2;epoch=2026-01-01T00:00:00Z"
)

// harshScript is the script of shard 5.
func harshScript(t *testing.T, layout string) string {
	t.Helper()
	return script(t, firn.MustLayout(layout), insta(5))
}

// harsh is a script made worse: a clock that jitters by 1 ms, or 20 ticks where they
// are quick, and pauses between the steps of a draw.
func harsh(layout, sql string) string {
	jitter := "2 ms"
	if layout == quickTicks {
		jitter = "400 us"
	}
	r := strings.NewReplacer(
		"pg_catalog.clock_timestamp()", "test.clock()",
		"clock_timestamp()", "test.clock()",
		"pg_catalog.nextval(%5$L::regclass)", "test.pause(pg_catalog.nextval(%5$L::regclass))",
		"firn.id(%4$L::regclass, %3$s, pg_catalog.pg_sequence_last_value(%4$L::regclass)", "firn.id(%4$L::regclass, %3$s, test.pause(pg_catalog.pg_sequence_last_value(%4$L::regclass))",
		"nextval(counter)", "test.pause(nextval(counter))",
		"f := pg_sequence_last_value(\"offset\")", "f := test.pause(pg_sequence_last_value(\"offset\"))",
	)
	return `
CREATE SCHEMA test;
CREATE SEQUENCE test.back;
CREATE FUNCTION test.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$ SELECT clock_timestamp() + (random() - 0.5) * interval '` + jitter + `' $$;
CREATE FUNCTION test.pause(x bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS
$$ BEGIN IF random() < 0.02 THEN PERFORM pg_sleep(random() * 0.002); END IF; RETURN x; END $$;
` + r.Replace(sql)
}

const draw100 = "SELECT array_agg(insta5.next_id()) FROM generate_series(1, 100)"

// TestRace: sixteen clients draw from one shard while everything between the steps
// of a draw goes wrong.
func TestRace(t *testing.T) {
	for _, layout := range []string{slowTicks, quickTicks} {
		db := newDatabase(t)
		mustExec(t, db.Conn, harsh(layout, harshScript(t, layout)))
		long := 2 * time.Second
		if layout == slowTicks && !testserver.Long() {
			long = time.Second // it gives twenty times as many ids as the other one
		}
		ids, repeats, inversions := judge(drawers(t, db, 16, long, draw100))
		t.Logf("%d ids, %d repeats, %d inversions", ids, repeats, inversions)
		if ids < 1000 || repeats > 0 || inversions > 0 {
			t.Errorf("%s: %d ids: %d repeats, %d inversions", layout, ids, repeats, inversions)
		}
	}
}

// TestRaceIsFound: the same without one of the rules repeats ids, or lets them go
// back, so TestRace would see it.
func TestRaceIsFound(t *testing.T) {
	for _, tt := range []struct{ name, rule, without string }{
		{"the offset moves under the lock", "\t\tPERFORM pg_advisory_xact_lock(1718186606, \"offset\"::oid::integer);\n\t\tf := ", "\t\tf := "},
		{"the offset only rises", "IF v < t THEN", "IF v <> t THEN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sql := harshScript(t, quickTicks)
			if strings.Count(sql, tt.rule) != 1 {
				t.Fatalf("%q is not there once", tt.rule)
			}
			db := newDatabase(t)
			mustExec(t, db.Conn, harsh(quickTicks, strings.Replace(sql, tt.rule, tt.without, 1)))
			for range 40 {
				ids, repeats, inversions := judge(drawers(t, db, 16, time.Second/2, draw100))
				t.Logf("%d ids, %d repeats, %d inversions", ids, repeats, inversions)
				if repeats+inversions > 0 {
					return
				}
			}
			t.Error("nothing repeats without this rule")
		})
	}
}

// TestStraddle: a draw that read the offset before a close and draws after the open
// does not count. Without the second reading it repeats an id.
func TestStraddle(t *testing.T) {
	const first = "firn.id(%4$L::regclass, %3$s, pg_catalog.pg_sequence_last_value(%4$L::regclass)"
	const held = "firn.id(%4$L::regclass, %3$s, test.hold(pg_catalog.pg_sequence_last_value(%4$L::regclass))"
	const hold = `
CREATE SCHEMA test;
CREATE FUNCTION test.hold(x bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS
$$ BEGIN PERFORM pg_advisory_lock(42), pg_advisory_unlock(42); RETURN x; END $$;
`
	for _, rule := range []bool{true, false} {
		db := newDatabase(t)
		sql := strings.Replace(script(t, firn.MustLayout("instagram"), insta(5)), first, held, 1)
		if !rule {
			sql = strings.Replace(sql, "WHEN a = b AND here", "WHEN here", 1)
		}
		mustExec(t, db.Conn, hold+sql)
		mustExec(t, db.Conn, "SELECT firn.open_at(5, firn.now_state() + 900 * 1024); SELECT pg_advisory_lock(42)")
		slow := connect(t, db.url)
		drawn := make(chan int64)
		go func() {
			var id int64
			if err := slow.QueryRow(context.Background(), "SELECT insta5.next_id()").Scan(&id); err != nil {
				t.Error(err)
			}
			drawn <- id
		}()
		for query[int64](t, db.Conn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == 0 {
			time.Sleep(time.Millisecond)
		}
		mustExec(t, db.Conn, "SELECT firn.close(5); SELECT firn.open_at(5, 0)")
		other := query[int64](t, db.Conn, "SELECT insta5.next_id()")
		mustExec(t, db.Conn, "SELECT pg_advisory_unlock(42)")
		switch id := <-drawn; {
		case rule && id <= other:
			t.Errorf("%d after %d", id, other)
		case !rule && id > other:
			t.Error("without the second reading the draw is still above the other")
		}
	}
}

// TestPublishedRepeats: the function that this one replaces repeats ids in the same
// hands, at its own layout and with no pauses added.
func TestPublishedRepeats(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, published)
	for range 40 {
		ids, repeats, inversions := judge(drawers(t, db, 16, time.Second/2, strings.Replace(draw100, "100)", "2000)", 1)))
		t.Logf("published: %d ids, %d repeats, %d inversions", ids, repeats, inversions)
		if repeats > 0 {
			break
		}
	}
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	ids, repeats, inversions := judge(drawers(t, db, 16, time.Second/2, strings.Replace(draw100, "100)", "2000)", 1)))
	t.Logf("firn: %d ids, %d repeats, %d inversions", ids, repeats, inversions)
	if repeats > 0 || inversions > 0 {
		t.Errorf("%d ids: %d repeats, %d inversions", ids, repeats, inversions)
	}
}

// TestClockSteps: the clock goes back and forth by up to an hour under one
// statement and under several clients.
func TestClockSteps(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, `
CREATE SCHEMA test;
CREATE SEQUENCE test.calls;
CREATE FUNCTION test.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$ SELECT clock_timestamp() + (ARRAY['0', '-1 hour', '-10 ms', '1 ms', '-1 s', '10 s', '-1 day'])[(nextval('test.calls') / 500 % 7) + 1]::interval $$;`+
		strings.NewReplacer("pg_catalog.clock_timestamp()", "test.clock()", "clock_timestamp()", "test.clock()").Replace(script(t, firn.MustLayout("instagram"), insta(5))))
	ids, repeats, inversions := judge(drawers(t, db, 8, time.Second, draw100))
	t.Logf("%d ids, %d repeats, %d inversions", ids, repeats, inversions)
	if ids < 1000 || repeats > 0 || inversions > 0 {
		t.Errorf("%d ids: %d repeats, %d inversions", ids, repeats, inversions)
	}
}

// TestLongStatement: a fifth of a million rows in one statement, and other clients meanwhile; make full has a million.
func TestLongStatement(t *testing.T) {
	rows, length := 200_000, time.Second/2
	if testserver.Long() {
		rows, length = 1_000_000, 2*time.Second
	}
	db := newDatabase(t)
	mustExec(t, db.Conn, script(t, firn.MustLayout("instagram"), insta(5)))
	mustExec(t, db.Conn, "CREATE TABLE insta5.t (id bigint DEFAULT insta5.next_id(), n int)")
	var others []draw
	done := make(chan struct{})
	go func() {
		defer close(done)
		others = drawers(t, db, 3, length, draw100)
	}()
	mustExec(t, db.Conn, fmt.Sprintf("INSERT INTO insta5.t(n) SELECT generate_series(1, %d)", rows))
	<-done
	if n := query[int64](t, db.Conn, "SELECT count(DISTINCT id) FROM insta5.t"); n != int64(rows) {
		t.Errorf("%d different ids in %d rows", n, rows)
	}
	if n := query[int64](t, db.Conn, "SELECT count(*) FROM (SELECT id - lag(id) OVER (ORDER BY n) AS d FROM insta5.t) AS x WHERE d <= 0"); n != 0 {
		t.Errorf("%d ids are not above the one before", n)
	}
	var drawn []int64
	for _, d := range others {
		drawn = append(drawn, d.ids...)
	}
	var twice int64
	if err := db.QueryRow(t.Context(), "SELECT count(*) FROM insta5.t WHERE id = ANY ($1)", drawn).Scan(&twice); err != nil || twice > 0 {
		t.Errorf("%d of %d ids were given to others too: %v", twice, len(drawn), err)
	}
}

// TestCloseIsExact: draws that run while a shard is closed and opened stay below
// what the close returned, or above what it was opened at.
func TestCloseIsExact(t *testing.T) {
	db := newDatabase(t)
	mustExec(t, db.Conn, harsh(quickTicks, harshScript(t, quickTicks)))
	const tolerant = `DO $$ DECLARE i int; BEGIN FOR i IN 1..50 LOOP
	BEGIN INSERT INTO insta5.t(id) VALUES (insta5.next_id()); EXCEPTION WHEN SQLSTATE 'ID001' THEN NULL; END; END LOOP; END $$`
	mustExec(t, db.Conn, "CREATE TABLE insta5.t (id bigint PRIMARY KEY, drawn timestamptz DEFAULT clock_timestamp())")
	mustExec(t, db.Conn, "CREATE TABLE insta5.closed (bound bigint, floor bigint)")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	begun := time.Now()
	var wg sync.WaitGroup
	for range 6 {
		c := connect(t, db.url)
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := c.Exec(context.Background(), tolerant, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for ctx.Err() == nil {
		var bound, floor int64
		if err := db.QueryRow(t.Context(), "SELECT firn.close(5)").Scan(&bound); err != nil {
			t.Fatal(err)
		}
		// Far above, so that an id of before the close cannot be taken for one after.
		if err := db.QueryRow(t.Context(), "SELECT firn.open_at(5, $1)", bound+1_000_000).Scan(&floor); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(t.Context(), "INSERT INTO insta5.closed VALUES ($1, $2)", bound, floor); err != nil {
			t.Fatal(err)
		}
		// A second, or as long as a busy machine needs for enough of both.
		if time.Since(begun) > time.Second && query[bool](t, db.Conn, "SELECT (SELECT count(*) >= 10 FROM insta5.closed) AND (SELECT count(*) >= 100 FROM insta5.t)") {
			stop()
		}
		time.Sleep(20 * time.Millisecond)
	}
	wg.Wait()
	closes := query[int64](t, db.Conn, "SELECT count(*) FROM insta5.closed")
	ids := query[int64](t, db.Conn, "SELECT count(*) FROM insta5.t")
	// The state of an id: its tick and sequence.
	wrong := query[int64](t, db.Conn, "SELECT count(*) FROM insta5.t, insta5.closed, LATERAL (SELECT (id >> 5 << 2) | (id & 3) AS state) AS s WHERE state > bound AND state < floor")
	t.Logf("%d ids over %d closes, %d between close and open", ids, closes, wrong)
	if ids < 100 || closes < 10 || wrong > 0 {
		t.Errorf("%d ids over %d closes: %d lie between a close and the open after it", ids, closes, wrong)
	}
}
