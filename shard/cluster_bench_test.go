package shard_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn/internal/testserver"
)

// BenchmarkInTx compares a transaction through the router with a plain one of pgx, with
// one statement that reads a row in each. Turns go to one of two shards and then to the
// other on one connection, so that the statement is planned anew each time. Delay makes
// the round trips show: each takes 2 ms longer.
func BenchmarkInTx(b *testing.B) {
	all := newServers(b, "mod", 2, "a")
	mustExec(b, all["a"].Conn, "INSERT INTO insta0.item (id) VALUES (1); INSERT INTO insta1.item (id) VALUES (1)")
	addr := testserver.Shared(b, testserver.Postgres).Addr()
	for _, delay := range []bool{false, true} {
		url := asApp(all["a"].url) + "&pool_max_conns=1"
		if delay {
			proxy := testserver.NewProxy(b, addr)
			proxy.Delay(time.Millisecond)
			url = strings.Replace(url, addr, proxy.Addr(), 1)
		}
		p := pool(b, url)
		c := openCluster(b, map[string]*pgxpool.Pool{"a": p}, nil)
		turn := int64(0)
		for _, tt := range []struct {
			name, table string
			run         func(f func(pgx.Tx) error) error
		}{
			{"plain", "insta0.item", func(f func(pgx.Tx) error) error { return pgx.BeginFunc(b.Context(), p, f) }},
			{"shard", "item", func(f func(pgx.Tx) error) error { return c.Shard(0).InTx(b.Context(), f) }},
			{"turns", "item", func(f func(pgx.Tx) error) error { turn++; return c.ForNumber(turn).InTx(b.Context(), f) }},
		} {
			b.Run(fmt.Sprintf("%s/delay=%t", tt.name, delay), func(b *testing.B) {
				before := processorTime(b, p)
				for b.Loop() {
					err := tt.run(func(tx pgx.Tx) error {
						_, err := tx.Exec(b.Context(), "SELECT text FROM "+tt.table+" WHERE id = $1", 1)
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((processorTime(b, p)-before)/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

// processorTime is that of this process and of the server's, in microseconds, on Linux.
func processorTime(b *testing.B, p *pgxpool.Pool) (sum float64) {
	b.Helper()
	var pid int
	if err := p.QueryRow(b.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"self", strconv.Itoa(pid)} {
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			return 0
		}
		fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
		for _, ticks := range fields[11:13] { // in user mode, in the kernel's
			n, err := strconv.Atoi(ticks)
			if err != nil {
				b.Fatal(err)
			}
			sum += float64(n) * 1e4
		}
	}
	return sum
}

// A counting connection counts how often something is sent after something was received:
// round trips.
type counting struct {
	net.Conn
	received *atomic.Bool
	trips    *atomic.Int64
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.received.Store(true)
	}
	return n, err
}

func (c *counting) Write(b []byte) (int, error) {
	if c.received.Swap(false) {
		c.trips.Add(1)
	}
	return c.Conn.Write(b)
}

// TestRoundTrips: a transaction on a shard makes as many as a plain one.
func TestRoundTrips(t *testing.T) {
	all := newServers(t, "mod", 1, "a")
	config, err := pgxpool.ParseConfig(asApp(all["a"].url) + "&pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	var received atomic.Bool
	var trips atomic.Int64
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &counting{c, &received, &trips}, err
	}
	p, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	c := openCluster(t, map[string]*pgxpool.Pool{"a": p}, nil)
	count := func(run func(f func(pgx.Tx) error) error) (n int64) {
		n = math.MaxInt64
		for range 5 { // the first prepares the statement, and the pool may ping
			before := trips.Load()
			if err := run(func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), "SELECT $1::integer", 1); return err }); err != nil {
				t.Fatal(err)
			}
			n = min(n, trips.Load()-before)
		}
		return n
	}
	plain := count(func(f func(pgx.Tx) error) error { return pgx.BeginFunc(t.Context(), p, f) })
	ours := count(func(f func(pgx.Tx) error) error { return c.Shard(0).InTx(t.Context(), f) })
	if plain != 3 || ours != plain {
		t.Errorf("%d round trips, and %d of a plain transaction", ours, plain)
	}
}
