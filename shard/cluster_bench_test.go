package shard_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn/internal/testserver"
)

// BenchmarkInTx compares a transaction through the router with a plain one of pgx, with
// one statement that reads a row in each. Delay makes the round trips show: each takes
// 2 ms longer.
func BenchmarkInTx(b *testing.B) {
	all := newServers(b, "mod", 1, "a")
	mustExec(b, all["a"].Conn, "INSERT INTO insta0.item (id) VALUES (1)")
	addr := testserver.Shared(b, testserver.Postgres).Addr()
	for _, delay := range []bool{false, true} {
		url := asApp(all["a"].url)
		if delay {
			proxy := testserver.NewProxy(b, addr)
			proxy.Delay(time.Millisecond)
			url = strings.Replace(url, addr, proxy.Addr(), 1)
		}
		p := pool(b, url)
		c := openCluster(b, map[string]*pgxpool.Pool{"a": p}, nil)
		for _, tt := range []struct {
			name string
			run  func(f func(pgx.Tx) error) error
		}{
			{"plain", func(f func(pgx.Tx) error) error { return pgx.BeginFunc(b.Context(), p, f) }},
			{"shard", func(f func(pgx.Tx) error) error { return c.Shard(0).InTx(b.Context(), f) }},
		} {
			b.Run(fmt.Sprintf("%s/delay=%t", tt.name, delay), func(b *testing.B) {
				for b.Loop() {
					err := tt.run(func(tx pgx.Tx) error {
						_, err := tx.Exec(b.Context(), "SELECT text FROM insta0.item WHERE id = $1", 1)
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
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
