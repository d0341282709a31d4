//go:build !windows

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard"
)

// dryRebalance is what rebalance --dry-run says.
func dryRebalance(t *testing.T, flags []string, args ...string) (plan rebalanceLine) {
	t.Helper()
	out := succeed(t, append(append([]string{"shard", "rebalance", "--dry-run", "--json"}, args...), flags...)...)
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return plan
}

// refuse runs the command, which ends with an exit code, and returns what it says.
func refuse(t *testing.T, code int, args ...string) string {
	t.Helper()
	p := command(t, "none", args...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if got := p.code(t); got != code {
		t.Errorf("firn %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, &p.errs)
	}
	return p.errs.String()
}

// TestShardsRebalance: shards spread from two servers over four while programs write
// through the router, though rebalance is killed in the middle; one server is emptied,
// taken out, and taken in again. Each row that was acknowledged is there once.
func TestShardsRebalance(t *testing.T) {
	t.Parallel()
	postgres := testserver.Shared(t, movesServer)
	names := []string{"a", "b", "c", "d"}
	urls := make(map[string]string)
	var flags []string
	for _, name := range names {
		urls[name] = database(t, postgres, name)
		flags = append(flags, "--server", name+"="+urls[name])
	}
	shards := 4
	if testserver.Long() {
		shards = 8
	}
	all := fmt.Sprintf("0-%d", shards-1)
	succeed(t, append([]string{"shard", "init", "--count", strconv.Itoa(shards), "--yes"}, flags[:4]...)...)
	dir := writeFiles(t, map[string]string{"1.sql": "CREATE TABLE photo (id bigint PRIMARY KEY DEFAULT next_id(), n bigint, x text); INSERT INTO photo (n, x) SELECT -1, repeat('x', 200) FROM generate_series(1, 1000)"})
	succeed(t, append([]string{"shard", "apply", dir}, flags[:4]...)...)
	if said := refuse(t, 2, append([]string{"shard", "rebalance", "--by", "charm"}, flags...)...); !strings.Contains(said, "size or rate") {
		t.Error(said)
	}
	if said := refuse(t, 1, append([]string{"shard", "remove-server", "b"}, flags[:4]...)...); !strings.Contains(said, "it has shard") || !strings.Contains(said, "--drain b") {
		t.Error(said)
	}
	succeed(t, append([]string{"shard", "add-server", "c=" + urls["c"], "d=" + urls["d"]}, flags[:4]...)...)
	if said := refuse(t, 1, append([]string{"shard", "rebalance"}, flags[:6]...)...); !strings.Contains(said, "server d is in the cluster, and is not named") {
		t.Error(said)
	}
	w := photographers(t, urls, int64(shards))

	plan := dryRebalance(t, flags)
	for _, s := range plan.Servers {
		if s.ShardsAfter != shards/4 {
			t.Errorf("%+v", plan.Servers)
		}
	}
	if len(plan.Moves) != shards/2 {
		t.Errorf("%d moves: %+v", len(plan.Moves), plan.Moves)
	}
	rebalanceKilled(t, append([]string{"shard", "rebalance", "--parallel", "2"}, flags...), urls["a"], urls["b"])
	succeed(t, append([]string{"shard", "finish", all, "--yes"}, flags...)...) // where it was killed before that
	if plan := dryRebalance(t, flags); len(plan.Moves) != 0 {
		t.Errorf("it is not even: %+v", plan)
	}
	w.some(t)

	if said := refuse(t, 2, append([]string{"shard", "rebalance", "--drain", "x"}, flags...)...); !strings.Contains(said, "x") {
		t.Error(said)
	}
	succeed(t, append([]string{"shard", "rebalance", "--drain", "a", "--keep"}, flags...)...)
	if said := refuse(t, 1, append([]string{"shard", "remove-server", "a"}, flags...)...); !strings.Contains(said, "is not finished") || !strings.Contains(said, "firn shard finish") {
		t.Error(said)
	}
	succeed(t, append([]string{"shard", "finish", all, "--yes"}, flags...)...)
	w.some(t)
	if out := succeed(t, append([]string{"shard", "remove-server", "a"}, flags...)...); !strings.Contains(out, "no longer in the cluster") {
		t.Error(out)
	}
	if out := succeed(t, append([]string{"shard", "remove-server", "a"}, flags...)...); !strings.Contains(out, "is not in the cluster") {
		t.Error(out)
	}
	takenOut(t, urls["a"], flags)
	w.some(t)

	succeed(t, append([]string{"shard", "add-server", "a=" + urls["a"]}, flags[2:]...)...)
	succeed(t, append([]string{"shard", "move", "0", "--to", "a"}, flags...)...)
	w.some(t)
	w.stop(t, flags)
}

// takenOut looks at a server that was taken out: no shard comes there, whoever asks.
func takenOut(t *testing.T, a string, flags []string) {
	t.Helper()
	if said := refuse(t, 1, append([]string{"shard", "move", "0", "--to", "a"}, flags...)...); !strings.Contains(said, "there is no such server in the cluster: a") || !strings.Contains(said, "add-server") {
		t.Error(said)
	}
	for _, s := range dryRebalance(t, flags).Servers {
		if s.Server == "a" {
			t.Error("rebalance gives shards to a server that was taken out")
		}
	}
	c, err := pgx.Connect(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), "SELECT firn.claim(0, 'insta0', 1000, 'somebody', 'abcdefghijkl', 'b', 'a', false)")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "ID006" {
		t.Errorf("a mover that was late has claimed a shard: %v", err)
	}
}

// rebalanceKilled kills a rebalance once it has begun something, and runs it again until
// it comes to its end.
func rebalanceKilled(t *testing.T, args []string, urls ...string) {
	t.Helper()
	moving := func() bool {
		n := 0
		for _, url := range urls {
			n += one[int](t, url, "SELECT count(*) FROM firn.move")
		}
		return n > 0
	}
	p := command(t, "none", args...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() }) // if it has not ended
	await(t, "a move begins", moving)
	time.Sleep(rand.N(time.Second))
	p.Process.Kill()
	p.Wait()
	t.Logf("killed, when it had said %q", p.errs.String())
	succeed(t, args...)
}

// Photos are written to all shards, and remembered.
type photos struct {
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu    sync.Mutex
	added map[int64]int64 // what was written, by id
	worst time.Duration
}

// photographers write through the router, one to each shard, until they are stopped.
func photographers(t *testing.T, urls map[string]string, shards int64) *photos {
	t.Helper()
	pools := make(map[string]*pgxpool.Pool)
	for name, url := range urls {
		config, err := pgxpool.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		config.MaxConns = 8
		if pools[name], err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pools[name].Close)
	}
	cluster, err := shard.Open(t.Context(), pools, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &photos{cancel: cancel, added: make(map[int64]int64)}
	t.Cleanup(func() { cancel(); p.all.Wait() })
	for s := range shards {
		p.all.Go(func() {
			for n := int64(0); ctx.Err() == nil; n++ {
				p.add(t, cluster.Shard(s), s<<32|n)
				time.Sleep(40 * time.Millisecond)
			}
		})
	}
	return p
}

// add writes one photo. It is not broken off: what comes of it is to be known.
func (p *photos) add(t *testing.T, s shard.Shard, n int64) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	begun := time.Now()
	var id int64
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "INSERT INTO photo (n) VALUES ($1) RETURNING id", n).Scan(&id)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	switch _, twice := p.added[id]; {
	case err != nil:
		t.Errorf("shard %d: %v", s.Number(), err)
		p.cancel()
	case twice:
		t.Errorf("id %d was given twice", id)
	default:
		p.added[id] = n
		p.worst = max(p.worst, time.Since(begun))
	}
}

// some waits until more was written.
func (p *photos) some(t *testing.T) {
	t.Helper()
	count := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.added)
	}
	before := count()
	await(t, "photos are written", func() bool { return count() > before+40 })
}

// stop ends the writers, and compares what they were told with what is there.
func (p *photos) stop(t *testing.T, flags []string) {
	t.Helper()
	p.cancel()
	p.all.Wait()
	out := succeed(t, append([]string{"shard", "exec", "--csv", "SELECT coalesce(string_agg(id || ':' || n, ' '), '') FROM photo WHERE n >= 0"}, flags...)...)
	found := 0
	for line := range strings.Lines(out) {
		_, rows, _ := strings.Cut(strings.TrimSpace(line), ",")
		for _, row := range strings.Fields(rows) {
			var id, n int64
			if _, err := fmt.Sscanf(row, "%d:%d", &id, &n); err != nil {
				continue // the head
			}
			found++
			if was, ok := p.added[id]; !ok || was != n {
				t.Errorf("photo %d of %d is there, and was not acknowledged", id, n)
			}
		}
	}
	if found != len(p.added) {
		t.Errorf("%d photos are there, and %d were acknowledged", found, len(p.added))
	}
	t.Logf("%d photos, the slowest took %s", found, p.worst.Round(time.Millisecond))
}
