package move

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard"
)

// shop is what shards have: a table with a sequence of its own, and a partitioned one.
const shop = `
CREATE TABLE insta%[1]d.users (id bigint PRIMARY KEY DEFAULT insta%[1]d.next_id(), name text, n integer NOT NULL DEFAULT 0, number serial);
CREATE TABLE insta%[1]d.events (id bigint DEFAULT insta%[1]d.next_id(), day integer NOT NULL, PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
CREATE TABLE insta%[1]d.events_1 PARTITION OF insta%[1]d.events DEFAULT;
INSERT INTO insta%[1]d.users (name) SELECT 'user ' || i FROM generate_series(1, 500) AS i;
INSERT INTO insta%[1]d.events (day) SELECT i %% 20 FROM generate_series(1, 300) AS i;
`

// shops makes a pair of servers, the first of which has some shards with tables.
func shops(t *testing.T, shards int64) (a, b *site) {
	t.Helper()
	a, b = pair(t, shards)
	for n := range shards {
		a.must(t, fmt.Sprintf(shop, n))
	}
	return a, b
}

func mover(t *testing.T, a, b *site) *Mover {
	m := New(a.Server, b.Server, &Options{Lag: 2 * time.Second, Progress: func(p Progress) { t.Log(p) }})
	t.Cleanup(m.Close)
	return m
}

func mustMove(t *testing.T, move func(context.Context, []int64) ([]Moved, error), shards ...int64) []Moved {
	t.Helper()
	moved, err := move(t.Context(), shards)
	if err != nil {
		t.Fatal(err)
	}
	return moved
}

func mustEnd(t *testing.T, end func(context.Context, []int64) ([]int64, error), shards ...int64) {
	t.Helper()
	if _, err := end(t.Context(), shards); err != nil {
		t.Fatal(err)
	}
}

// everything is what databases have of schemas, relations, functions, triggers, moves and
// replication, without what differs from one run to the next
// and triggers that do nothing, which stay where somebody uses their tables.
func everything(t *testing.T, sites ...*site) string {
	t.Helper()
	var all []string
	for _, s := range sites {
		all = append(all, s.Name+" "+s.one(t, `
SELECT string_agg(x, E'\n' ORDER BY x) FROM (
SELECT format('schema %s %s', nspname, nspacl) AS x FROM pg_namespace WHERE nspname !~ '^pg_'
UNION ALL SELECT format('relation %s %s %s', oid::regclass, relkind, relacl) FROM pg_class WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_|^information')
UNION ALL SELECT format('function %s %s', oid::regprocedure, proacl) FROM pg_proc WHERE pronamespace IN (SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_|^information')
UNION ALL SELECT format('trigger %s', tgname) FROM pg_trigger WHERE NOT tgisinternal AND NOT (tgname = 'firn_fence' AND tgenabled = 'D' OR tgname IN ('firn_receiver', 'firn_receiver_all') AND tgenabled = 'R')
UNION ALL SELECT format('move %s', shard) FROM firn.move
UNION ALL SELECT format('generator %s %s', shard, name) FROM firn.generator
UNION ALL SELECT format('publication %s', pubname) FROM pg_publication
UNION ALL SELECT format('subscription %s', subname) FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
UNION ALL SELECT format('slot %s', slot_name) FROM pg_replication_slots WHERE database = current_database()) AS x (x)`))
	}
	return strings.Join(all, "\n")
}

// difference are the lines that only one of two texts has.
func difference(a, b string) string {
	var lines []string
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for _, line := range x {
		if !slices.Contains(y, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range y {
		if !slices.Contains(x, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return strings.Join(lines, "\n")
}

// rows are those of a shard, as a text.
func (s *site) rows(t *testing.T, n int64) string {
	t.Helper()
	return s.one(t, fmt.Sprintf(`SELECT coalesce((SELECT string_agg(u::text, ';' ORDER BY id) FROM insta%[1]d.users AS u), '') || ' ' || coalesce((SELECT string_agg(e::text, ';' ORDER BY day, id) FROM insta%[1]d.events AS e), '')`, n))
}

// TestThereAndBack moves a shard, back, and there again, and ends with the move finished:
// rows, ids and sequences go on, and nothing is left behind.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	before := everything(t, b)
	want := a.rows(t, 1)
	const insert = "INSERT INTO insta1.users (name) VALUES ('x') RETURNING id::text || ' ' || number"
	number := func(s *site, want int) (id string) {
		t.Helper()
		var n int
		if _, err := fmt.Sscan(s.one(t, insert), &id, &n); err != nil || n != want {
			t.Errorf("the next number on %s is %d, not %d", s.Name, n, want)
		}
		return id
	}
	m := mover(t, a, b)
	moved := mustMove(t, m.Move, 1)
	for _, s := range []*site{a, b} { // f or false, by version: no parallel worker applies what comes
		if got := s.one(t, "SELECT count(*)::text FROM pg_subscription WHERE substream::text NOT IN ('f', 'false')"); got != "0" {
			t.Errorf("%s: %s subscriptions stream transactions that are under way", s.Name, got)
		}
	}
	if len(moved) != 1 || moved[0].Pause == 0 || moved[0].Rows["users"] != 500 || moved[0].Rows["events_1"] != 300 {
		t.Errorf("moved: %v", moved)
	}
	if got := b.rows(t, 1); got != want {
		t.Error("the rows are not what they were")
	}
	if got := b.one(t, "SELECT string_agg(relname || ' ' || reltuples, ', ' ORDER BY relname) FROM pg_class WHERE relnamespace = 'insta1'::regnamespace AND relkind = 'r' AND relname <> 'firn_mark'"); got != "events_1 300, users 500" {
		t.Errorf("the statistics say %s", got)
	}
	last := number(b, 501)
	refusedOn(t, a, "ID002", insert)
	refusedOn(t, a, "ID002", "INSERT INTO insta1.events_1 VALUES (1, 100)")
	refusedOn(t, a, "ID002", "SELECT insta1.next_id()")
	mustMove(t, m.Revert, 1)
	id := number(a, 502)
	refusedOn(t, b, "ID002", insert)
	mustMove(t, m.Move, 1)
	if next := number(b, 503); !(last < id && id < next) {
		t.Errorf("ids %s, %s, %s do not rise", last, id, next)
	}
	a.eventually(t, "SELECT count(*)::text FROM insta1.users WHERE name = 'x'", "3")
	mustEnd(t, m.Finish, 1)
	if got := everything(t, a); strings.Contains(got, "insta1.") || strings.Contains(got, "firn_move_") || strings.Contains(got, "firn_back_") {
		t.Errorf("on a is left:\n%s", got)
	}
	number(b, 504)
	mustEnd(t, m.Finish, 1) // again: there is nothing to do
	if left := difference(before, everything(t, b)); regexp.MustCompile("firn_(move|back|mark|fence)|move 1").MatchString(left) {
		t.Errorf("on b is left:\n%s", left)
	}
	refusedOn(t, a, "ID002", "SELECT firn.enter(1, (SELECT cluster FROM firn.server))")
}

func refusedOn(t *testing.T, s *site, code, sql string) {
	t.Helper()
	_, err := s.Exec(t.Context(), sql)
	if sqlstate(err) != code {
		t.Errorf("%s on %s: %v, want %s", sql, s.Name, err, code)
	}
}

// writing is how many writers there are, and how long each does nothing between two transactions. A few that write fifty
// times a second are in a mover's way; make full has more of them, which write nearly as often as they can.
func writing() (crowd int, pause time.Duration) {
	if testserver.Long() {
		return 4, 5 * time.Millisecond
	}
	return 2, 20 * time.Millisecond
}

// Writers write to a shard through a cluster, and know what has to be there.
type writers struct {
	mu       sync.Mutex
	rows     map[int64]int // acknowledged, and how often each was changed
	ids      []int64       // in the order in which each writer got them
	unknown  map[int64]bool
	crashes  bool // servers are killed
	errs     []error
	cancel   context.CancelFunc
	group    sync.WaitGroup
	repeated int
}

func write(t *testing.T, n int64, sites ...*site) *writers {
	t.Helper()
	pools := make(map[string]*pgxpool.Pool)
	for _, s := range sites {
		config, err := pgxpool.ParseConfig(s.Server.Config.ConnString())
		if err != nil {
			t.Fatal(err)
		}
		config.MaxConns = 4
		if pools[s.Name], err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pools[s.Name].Close)
	}
	cluster, err := shard.Open(t.Context(), pools, &shard.Options{Wait: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &writers{rows: make(map[int64]int), unknown: make(map[int64]bool), cancel: cancel}
	crowd, pause := writing()
	for range crowd {
		w.group.Go(func() { w.run(ctx, cluster.Shard(n), pause) })
	}
	t.Cleanup(func() { cancel(); w.group.Wait() })
	return w
}

func (w *writers) run(ctx context.Context, s shard.Shard, pause time.Duration) {
	mine := make(map[int64]int)
	var last int64
	for ctx.Err() == nil {
		time.Sleep(pause)
		var id int64
		change := int64(0)
		for id := range mine {
			change = id
			break
		}
		err := s.InTx(context.WithoutCancel(ctx), func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, "INSERT INTO users (name) VALUES ('w') RETURNING id").Scan(&id); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "UPDATE users SET n = n + 1 WHERE id = $1", change)
			if rand.IntN(20) == 0 {
				_, err = tx.Exec(ctx, "INSERT INTO events (day) SELECT generate_series(1, 20)")
			}
			return err
		})
		w.mu.Lock()
		switch {
		case errors.Is(err, shard.ErrAmbiguous):
			w.unknown[id], w.unknown[change] = true, true
		case err != nil && (ctx.Err() != nil || w.crashes && (sqlstate(err) == "" || strings.HasPrefix(sqlstate(err), "57P"))): // it was broken off
		case err != nil:
			w.errs = append(w.errs, err)
		default:
			if id <= last {
				w.repeated++
			}
			last = id
			mine[id] = 0
			if change != 0 {
				mine[change]++
			}
			w.ids = append(w.ids, id)
		}
		w.mu.Unlock()
	}
	w.mu.Lock()
	for id, n := range mine {
		w.rows[id] = n
	}
	w.mu.Unlock()
}

// count is how many writes were acknowledged.
func (w *writers) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ids)
}

// some waits until some more writes were acknowledged.
func (w *writers) some(t *testing.T, more int) {
	t.Helper()
	want := w.count() + more
	for deadline := time.Now().Add(time.Minute); w.count() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nobody can write: %v", w.errs)
		}
	}
}

// stop ends the writers, and compares what was acknowledged with what is there.
func (w *writers) stop(t *testing.T, s *site, n int64) {
	t.Helper()
	w.cancel()
	w.group.Wait()
	for _, err := range w.errs {
		t.Error(err)
	}
	if w.repeated > 0 {
		t.Errorf("%d ids were not above the one before", w.repeated)
	}
	seen := make(map[int64]bool)
	for _, id := range w.ids {
		if seen[id] {
			t.Errorf("id %d was given twice", id)
		}
		seen[id] = true
	}
	rows, err := s.Query(t.Context(), fmt.Sprintf("SELECT id, n FROM insta%d.users WHERE name = 'w'", n))
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[int64]int)
	var id int64
	var changes int
	if _, err := pgx.ForEachRow(rows, []any{&id, &changes}, func() error { there[id] = changes; return nil }); err != nil {
		t.Fatal(err)
	}
	for id, n := range w.rows {
		if got, ok := there[id]; (!ok || got != n) && !w.unknown[id] {
			t.Errorf("row %d was changed %d times, and %d (there: %v)", id, n, got, ok)
		}
	}
	t.Logf("%d writes", len(w.ids))
}

// underWriters moves shard 1 there, back and there again while programs write to it.
func underWriters(t *testing.T, a, b *site) *Mover {
	t.Helper()
	w := write(t, 1, a, b)
	w.some(t, 50)
	m := mover(t, a, b)
	t.Log(mustMove(t, m.Move, 1))
	w.some(t, 50)
	t.Log(mustMove(t, m.Revert, 1))
	w.some(t, 50)
	t.Log(mustMove(t, m.Move, 1))
	w.some(t, 50)
	w.stop(t, b, 1)
	return m
}

func TestMoveUnderWriters(t *testing.T) {
	t.Parallel()
	a, b := shops(t, 2)
	m := underWriters(t, a, b)
	a.eventually(t, "SELECT count(*)::text FROM insta1.users", b.one(t, "SELECT count(*)::text FROM insta1.users"))
	if a.rows(t, 1) != b.rows(t, 1) {
		t.Error("the copy that was left behind is not kept up to date")
	}
	mustEnd(t, m.Finish, 1)
}

// TestQuotedNames moves a shard whose schema, table, column and sequence have names that
// have to be quoted, there, back, there again and for good. Who may draw goes along.
func TestQuotedNames(t *testing.T) {
	t.Parallel()
	a, b := pair(t, 1)
	const schema, users = `"Sh""a'r %d 1"`, `"Sh""a'r %d 1"."Us""e'rs"`
	a.must(t, `SELECT firn.create_shard(1, 'Sh"a''r %d 1'); CREATE TABLE `+users+` ("I""d" bigint PRIMARY KEY DEFAULT `+schema+`.next_id(), "N'o" serial);
		CREATE TABLE `+schema+`."No key" (x integer); ALTER TABLE `+schema+`."No key" REPLICA IDENTITY FULL;
		REVOKE EXECUTE ON FUNCTION `+schema+`.next_id() FROM PUBLIC; GRANT EXECUTE ON FUNCTION `+schema+`.next_id() TO pg_monitor;
		INSERT INTO `+users+` SELECT FROM generate_series(1, 100); INSERT INTO `+schema+`."No key" VALUES (1), (1)`)
	if p, err := NewPlan(t.Context(), a.Server, b.Server, []int64{1}, false, nil); err != nil || p.Err() != nil || p.Shards[0].Tables != 2 {
		t.Fatalf("%v, %+v", err, p)
	}
	const insert = "INSERT INTO " + users + ` DEFAULT VALUES RETURNING "N'o"::text`
	draw := "'" + strings.ReplaceAll(schema, "'", "''") + ".next_id()', 'EXECUTE'"
	mayDraw := "SELECT has_function_privilege('pg_monitor', " + draw + ") || ' ' || has_function_privilege('pg_read_all_settings', " + draw + ")"
	m := mover(t, a, b)
	for _, step := range []struct {
		move  func(context.Context, []int64) ([]Moved, error)
		to    *site
		draws string
	}{{m.Move, b, "101"}, {m.Revert, a, "102"}, {m.Move, b, "103"}} {
		if moved := mustMove(t, step.move, 1); len(moved) != 1 || moved[0].Rows[`Us"e'rs`] < 100 || moved[0].Rows["No key"] != 2 {
			t.Errorf("to %s: %v", step.to.Name, moved)
		}
		if got := step.to.one(t, insert); got != step.draws {
			t.Errorf("the next number on %s is %s, not %s", step.to.Name, got, step.draws)
		}
		if got := step.to.one(t, mayDraw); got != "true false" {
			t.Errorf("on %s its role and another one may draw: %s", step.to.Name, got)
		}
	}
	mustEnd(t, m.Finish, 1)
	if got := a.one(t, "SELECT count(*)::text FROM pg_namespace WHERE nspname LIKE 'Sh%'"); got != "0" {
		t.Error("the old copy is left")
	}
}
