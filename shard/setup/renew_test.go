package setup_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/setup"
)

var renewShards = flag.Int64("shards", 1024, "how many shards the long form of TestRenewUnderLoad has")

// TestRenewUnderLoad: firn shard init writes all functions anew while programs draw ids and insert rows, on connections and with
// prepared statements from before. No program gets an error, no id comes twice, and no program waits for a lock of init. Its long
// form has servers of its own, more shards and programs that do not pause, and says how long programs wait.
//
//	FIRN_LONG=1 go test ./shard/setup -run TestRenewUnderLoad -v -timeout 30m -args -shards 8192
func TestRenewUnderLoad(t *testing.T) {
	count, writers, before, after := int64(48), 4, time.Second, time.Second
	a, b := newDatabase(t), newDatabase(t)
	if testserver.Long() {
		count, writers, before, after = *renewShards, 8, 5*time.Second, 2*time.Second
		a, b = connect(t, testserver.Postgres(t, "shared_buffers=128MB").URL()), connect(t, testserver.Postgres(t, "shared_buffers=128MB").URL())
	}
	servers := serversOf(a, b)
	begun := time.Now()
	p := mustInit(t, servers, setup.Wish{Count: count})
	t.Logf("init of %d shards: %s", count, time.Since(begun).Round(time.Millisecond))
	begun = time.Now()
	for i, d := range []*database{a, b} {
		for n := count * int64(i) / 2; n < count*int64(i+1)/2; n += 16 { // more would take more locks than there are
			d.must(t, fmt.Sprintf(`DO $$ BEGIN FOR n IN %d..%d LOOP
				EXECUTE format('CREATE TABLE insta%%1$s.photo (id bigint PRIMARY KEY DEFAULT insta%%1$s.next_id(), n bigint)', n);
			END LOOP; END $$`, n, min(n+16, count*int64(i+1)/2)-1))
		}
		makeOlder(t, d)
	}
	t.Logf("tables: %s", time.Since(begun).Round(time.Millisecond))

	w := &renewWriters{ids: map[int64]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer func() { stop(); all.Wait() }()
	for i := range writers {
		d, half := []*database{a, b}[i%2], count/2
		c := connect(t, d.url)
		all.Go(func() { w.run(ctx, c.Conn, p.Cluster, half*int64(i%2), half) })
	}
	for _, d := range []*database{a, b} {
		c := connect(t, d.url)
		all.Go(func() { w.watch(ctx, c.Conn) })
	}
	w.next(t, "before", before)
	begun = time.Now()
	again := mustInit(t, servers, setup.Wish{})
	took := time.Since(begun)
	w.next(t, "init", 0)
	w.next(t, "after", after)
	stop()
	all.Wait()
	t.Logf("init again: %s, %d shards", took.Round(time.Millisecond), again.Steps())
	if again.Steps() != count {
		t.Errorf("%d shards are renewed, of %d", again.Steps(), count)
	}
	for _, d := range []*database{a, b} {
		if got := d.one(t, "SELECT count(*)::text FROM pg_proc WHERE prosrc ~ 'of an older firn'"); got != "0" {
			t.Errorf("%s functions are older", got)
		}
	}
	w.result(t)
}

// makeOlder gives a database the functions of another version of firn, which do the same.
func makeOlder(t *testing.T, d *database) {
	t.Helper()
	var b bytes.Buffer
	for _, write := range []func() error{
		func() error { return install.WriteGenerator(&b, firn.Sharded()) },
		func() error { return install.WriteMoves(&b, firn.Sharded()) },
		func() error { return install.WriteGrants(&b, setup.DefaultRole) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	sql := b.String()
	for _, body := range []string{"AS $$\nBEGIN", "AS $$\nDECLARE", "AS $$\n\tSELECT", "AS\n$$ SELECT", "AS $body$\n\t\tSELECT"} {
		marked := strings.Replace(body, "\n", "\n/* of an older firn */ ", 1)
		if strings.HasPrefix(body, "AS\n$$") {
			marked = "AS\n$$ /* of an older firn */ SELECT"
		}
		if !strings.Contains(sql, body) {
			t.Fatalf("no function begins with %q", body)
		}
		sql = strings.ReplaceAll(sql, body, marked)
	}
	d.must(t, "BEGIN; "+sql+"; COMMIT")
	d.must(t, "UPDATE firn.server SET code = 'older'")
	d.must(t, "SELECT firn.renew_shard(shard) FROM firn.shard WHERE shard % 16 = 0")
	if got := d.one(t, "SELECT count(*)::text FROM pg_proc WHERE prosrc ~ 'of an older firn'"); got == "0" {
		t.Fatal("no function is older")
	}
}

// loadPause is how long a program that is in the way of a command does nothing between two transactions: make full has it
// do without.
func loadPause() time.Duration {
	if testserver.Long() {
		return 0
	}
	return 5 * time.Millisecond
}

// renewWriters are programs that draw ids, and what they saw.
type renewWriters struct {
	drawn atomic.Int64

	mu    sync.Mutex
	ids   map[int64]bool
	waits []time.Duration // of each transaction since the last call of next
	wrong []string
	locks map[string]int // for which a program was seen waiting, by who held it
}

// run draws ids on one connection: by statements that were prepared before, until ctx ends.
func (w *renewWriters) run(ctx context.Context, c *pgx.Conn, cluster string, first, shards int64) {
	shards = min(shards, 2048) // a connection keeps what it knows of each
	rng := rand.New(rand.NewPCG(uint64(first), rand.Uint64()))
	for pause := loadPause(); ctx.Err() == nil; time.Sleep(pause) {
		n := first + rng.Int64N(shards)
		begun := time.Now()
		ids, err := drawSome(c, cluster, n)
		took := time.Since(begun)
		w.mu.Lock()
		w.waits = append(w.waits, took)
		if err != nil {
			w.wrong = append(w.wrong, fmt.Sprintf("shard %d: %v", n, err))
		}
		for _, id := range ids {
			if w.ids[id] {
				w.wrong = append(w.wrong, fmt.Sprintf("id %d comes twice", id))
			}
			w.ids[id] = true
		}
		w.mu.Unlock()
		if err != nil {
			return
		}
		w.drawn.Add(int64(len(ids)))
	}
}

// drawSome is a transaction on a shard: two rows, an id by itself, and a few at once.
func drawSome(c *pgx.Conn, cluster string, n int64) (ids []int64, err error) {
	err = pgx.BeginFunc(context.Background(), c, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), "SELECT firn.enter($1, $2)", n, cluster); err != nil {
			return err
		}
		for _, sql := range []string{
			fmt.Sprintf("INSERT INTO insta%d.photo (n) VALUES (1), (2) RETURNING id", n),
			fmt.Sprintf("SELECT insta%d.next_id()", n), fmt.Sprintf("SELECT insta%d.next_ids(3)", n),
		} {
			rows, err := tx.Query(context.Background(), sql)
			if err != nil {
				return err
			}
			some, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			if err != nil {
				return err
			}
			ids = append(ids, some...)
		}
		return nil
	})
	return ids, err
}

// watch looks which locks programs wait for, besides those of drawing.
func (w *renewWriters) watch(ctx context.Context, c *pgx.Conn) {
	const sql = `SELECT format('%s %s %s, held by: %s', l.locktype, coalesce(l.relation::regclass::text, ''), l.mode, left(coalesce(h.query, ''), 60))
FROM pg_locks AS l JOIN pg_stat_activity AS s ON s.pid = l.pid LEFT JOIN LATERAL unnest(pg_blocking_pids(l.pid)) AS b ON true LEFT JOIN pg_stat_activity AS h ON h.pid = b
WHERE NOT l.granted AND s.query ~ '^(INSERT|SELECT insta|SELECT firn.enter|begin|commit)' AND h.query !~ '^(INSERT|SELECT insta|commit)'`
	for ctx.Err() == nil {
		rows, err := c.Query(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
		var some []string
		if err == nil {
			some, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		w.mu.Lock()
		for _, lock := range some {
			if w.locks == nil {
				w.locks = map[string]int{}
			}
			w.locks[lock]++
		}
		if err != nil {
			w.wrong = append(w.wrong, err.Error())
		}
		w.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
	}
}

// next lets programs draw for a time, and says how long they waited since the last call.
func (w *renewWriters) next(t *testing.T, what string, least time.Duration) {
	t.Helper()
	begun := time.Now()
	for drawn := w.drawn.Load(); least > 0 && (time.Since(begun) < least || w.drawn.Load() < drawn+100); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			w.result(t)
			t.Fatalf("%s: programs draw no ids", what)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.waits)
	n := len(w.waits)
	t.Logf("%s: %d transactions, median %s, 99%% within %s, the longest %s", what, n,
		w.waits[n/2].Round(10*time.Microsecond), w.waits[n*99/100].Round(10*time.Microsecond), w.waits[n-1].Round(10*time.Microsecond))
	w.waits = nil
}

// result says what programs saw.
func (w *renewWriters) result(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("%d ids", len(w.ids))
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	for _, lock := range slices.Sorted(maps.Keys(w.locks)) {
		t.Errorf("a program waited %d times for a lock: %s", w.locks[lock], lock)
	}
}
