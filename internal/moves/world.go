package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/testserver/testdb"
	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// linkTimeout is how long servers wait for each other where faults are done.
const linkTimeout = 10 * time.Second

// A world is a cluster of two servers, a with all shards and b with none.
type world struct {
	settings
	tb        testing.TB
	servers   map[string]*testserver.Server // empty: somebody else started them
	options   []string                      // of those
	reached   map[string]topology.Server
	urls      map[string]string // of the same, for programs
	addresses map[string]string // how the other server reaches each; empty: by those
	pools     map[string]*pgxpool.Pool
	cluster   *shard.Cluster

	harms   []*harm // that can be done
	skipped []string
	doors   map[string]*testserver.Proxy // between programs and servers; empty without faults
	links   map[string]*testserver.Proxy // between a server and the other one
	standby *testserver.Standby          // of one of them; nil: none
	disks   map[string]*testserver.Disk
	program string // the command firn, if it was built
}

// newWorld starts the servers and makes the cluster.
func newWorld(ctx context.Context, tb testing.TB, set settings, out io.Writer) (*world, error) {
	w := &world{
		settings: set, tb: tb, servers: map[string]*testserver.Server{}, reached: map[string]topology.Server{}, urls: map[string]string{}, addresses: map[string]string{},
		pools: map[string]*pgxpool.Pool{}, doors: map[string]*testserver.Proxy{}, links: map[string]*testserver.Proxy{}, disks: map[string]*testserver.Disk{},
	}
	if len(set.given) == 0 {
		w.start()
	} else if err := w.use(ctx, out); err != nil {
		return nil, err
	}
	for name, address := range w.urls {
		config, err := pgx.ParseConfig(address)
		if err != nil {
			return nil, err
		}
		w.reached[name] = topology.Server{Name: name, Config: config}
	}
	if set.faults {
		var err error
		if w.harms, w.skipped, err = w.possible(); err != nil {
			return nil, err
		}
	}
	err := w.makeCluster(ctx)
	if err == nil {
		err = w.connect(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, w.close(ctx))
	}
	return w, nil
}

// start starts the servers. Where harms are done, programs reach each through a proxy, so that its
// standby can take its address, and the other server through another one.
func (w *world) start() {
	w.options = []string{"wal_level=logical", "max_connections=100", "max_wal_senders=20", "max_replication_slots=20", "shared_buffers=128MB"}
	if !w.durable {
		w.options = append(w.options, "fsync=off")
	}
	if w.faults {
		for _, name := range []string{"wal_sender_timeout", "wal_receiver_timeout"} {
			w.options = append(w.options, fmt.Sprintf("%s=%d", name, linkTimeout.Milliseconds()))
		}
	}
	for _, name := range []string{"a", "b"} {
		if name == "b" && w.behind != 0 {
			w.servers[name] = testserver.PostgresBehind(w.tb, w.behind, w.options...)
		} else if name == "b" {
			w.servers[name] = testserver.PostgresTarget(w.tb, w.options...)
		} else {
			w.servers[name] = testserver.Postgres(w.tb, w.options...)
		}
		w.urls[name] = w.servers[name].URL()
		if w.hosted {
			w.urls[name] = testdb.Hosted(w.tb, w.servers[name])
		}
		if w.faults {
			w.doors[name], w.links[name] = testserver.NewProxy(w.tb, w.servers[name].Addr()), testserver.NewProxy(w.tb, w.servers[name].Addr())
			w.urls[name] = through(w.servers[name].URL(), w.doors[name])
			w.addresses[name] = through(w.servers[name].URL(), w.links[name])
		}
	}
}

// through is the address of a server through a proxy.
func through(address string, p *testserver.Proxy) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err) // it was parsed before
	}
	u.Host = p.Addr()
	return u.String()
}

// makeCluster makes a's shards, and then adds b: so all are on a.
func (w *world) makeCluster(ctx context.Context) error {
	one, err := setup.Open(ctx, []topology.Server{w.reached["a"]}, true)
	if err != nil {
		return err
	}
	plan, err := one.Init(setup.Wish{Count: 2 * int64(w.runs), Schemas: schemas, Roles: []string{role}})
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
	added, err := two.Add([]string{"b"}, []string{role})
	if err != nil {
		return err
	}
	return added.Run(ctx)
}

// checkClock says whether the clock of b is as far behind as it is to be.
func (w *world) checkClock(ctx context.Context) error {
	if len(w.given) > 0 {
		return nil
	}
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
	for name, address := range w.urls {
		config, err := pgxpool.ParseConfig(address)
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

func (w *world) close(ctx context.Context) error {
	for _, p := range w.pools {
		p.Close()
	}
	if len(w.given) == 0 {
		return nil // the servers go
	}
	return w.leave(context.WithoutCancel(ctx))
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
