package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// A world is a cluster of two servers, a with all shards and b with none.
type world struct {
	settings
	tb      testing.TB
	servers map[string]*testserver.Server
	reached map[string]topology.Server
	pools   map[string]*pgxpool.Pool
	cluster *shard.Cluster
}

// newWorld starts the servers and makes the cluster.
func newWorld(ctx context.Context, tb testing.TB, set settings) (*world, error) {
	w := &world{settings: set, tb: tb, servers: map[string]*testserver.Server{}, reached: map[string]topology.Server{}, pools: map[string]*pgxpool.Pool{}}
	options := []string{"wal_level=logical", "max_connections=100", "max_wal_senders=20", "max_replication_slots=20", "shared_buffers=128MB"}
	if !set.durable {
		options = append(options, "fsync=off")
	}
	for _, name := range []string{"a", "b"} {
		if name == "b" && set.behind != 0 {
			w.servers[name] = testserver.PostgresBehind(tb, set.behind, options...)
		} else {
			w.servers[name] = testserver.Postgres(tb, options...)
		}
		config, err := pgx.ParseConfig(w.servers[name].URL())
		if err != nil {
			return nil, err
		}
		w.reached[name] = topology.Server{Name: name, Config: config}
	}
	if err := w.makeCluster(ctx); err != nil {
		return nil, err
	}
	return w, w.connect(ctx)
}

// makeCluster makes a's shards, and then adds b: so all are on a.
func (w *world) makeCluster(ctx context.Context) error {
	one, err := setup.Open(ctx, []topology.Server{w.reached["a"]}, true)
	if err != nil {
		return err
	}
	plan, err := one.Init(setup.Wish{Count: int64(w.runs)})
	if err == nil {
		err = plan.Run(ctx, new(atomic.Int64))
	}
	one.Close()
	if err != nil {
		return err
	}
	two, err := setup.Open(ctx, []topology.Server{w.reached["a"], w.reached["b"]}, true)
	if err != nil {
		return err
	}
	defer two.Close()
	added, err := two.Add([]string{"b"}, nil)
	if err != nil {
		return err
	}
	return added.Run(ctx)
}

// checkClock says whether the clock of b is as far behind as it is to be.
func (w *world) checkClock(ctx context.Context) error {
	c, err := w.reached["b"].Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	var at time.Time
	if err := c.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at); err != nil {
		return err
	}
	if off := time.Since(at) - w.behind; off.Abs() > time.Minute {
		return fmt.Errorf("the clock of b is %s behind, not %s", time.Since(at), w.behind)
	}
	return nil
}

// connect opens the pools that writers use, with a connection for each: as a program has
// that uses both servers. The driver prepares each statement once for a connection.
func (w *world) connect(ctx context.Context) error {
	for name, s := range w.servers {
		config, err := pgxpool.ParseConfig(s.URL())
		if err != nil {
			return err
		}
		config.MaxConns = int32(w.writers + 2)
		if w.pools[name], err = pgxpool.NewWithConfig(ctx, config); err != nil {
			return err
		}
		if err := fill(ctx, w.pools[name], w.writers); err != nil {
			return err
		}
	}
	var err error
	w.cluster, err = shard.Open(ctx, w.pools, &shard.Options{Wait: time.Minute})
	return err
}

// fill has a pool make some connections.
func fill(ctx context.Context, pool *pgxpool.Pool, n int) error {
	for range n {
		c, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer c.Release()
	}
	return nil
}

func (w *world) close() {
	for _, p := range w.pools {
		p.Close()
	}
}

// exec runs statements on a server.
func (w *world) exec(ctx context.Context, server, sql string) error {
	c, err := w.reached[server].Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return err
}

var errNoMover = errors.New("this process is no mover")
