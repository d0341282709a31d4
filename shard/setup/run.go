package setup

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/shard/install"
	"github.com/firn-id/firn/shard/internal/atonce"
	"github.com/firn-id/firn/shard/topology"
)

// How a server's shards are made: so many in a transaction, which locks four
// relations of each, on so many connections.
const (
	batch       = 16
	connections = 2
)

// Run does what is planned, on all servers at once, and counts the shards that are done. First every server
// becomes one of the cluster, and then each server makes its shards. Where one server fails, the others
// continue.
func (p *Plan) Run(ctx context.Context, done *atomic.Int64) error {
	if err := p.joinAll(ctx); err != nil {
		return err
	}
	return p.finishAll(ctx, done)
}

// joinAll makes every server one of the cluster, or tells it of ranges of keys that are added.
func (p *Plan) joinAll(ctx context.Context) error {
	if p.Cluster == "" {
		p.Cluster = newCluster()
	}
	return atonce.Each(p.Servers, func(_ int, s ServerPlan) error { return p.join(ctx, s) })
}

// finishAll makes and renews shards. Then all functions of a server are of this SQL.
func (p *Plan) finishAll(ctx context.Context, done *atomic.Int64) error {
	return atonce.Each(p.Servers, func(_ int, s ServerPlan) error {
		if err := p.shards(ctx, s, done); err != nil {
			return err
		}
		return exec(ctx, s.Server, "UPDATE firn.server SET code = "+literal(p.code)+" WHERE code IS DISTINCT FROM "+literal(p.code))
	})
}

// newCluster is the id of a cluster that there never was.
func newCluster() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// join makes a database one of the cluster, and writes what its shards share, in one
// transaction.
func (p *Plan) join(ctx context.Context, s ServerPlan) error {
	var b strings.Builder
	b.WriteString("BEGIN;\n" + install.Working + quiet)
	for _, role := range p.Roles {
		if !slices.Contains(s.site.roles, role) {
			// Another database of this PostgreSQL may have made it meanwhile.
			fmt.Fprintf(&b, "DO $do$ BEGIN CREATE ROLE %s NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $do$;\n", identifier(role))
		}
	}
	if err := install.WriteGenerator(&b, p.Layout); err != nil {
		return err
	}
	if err := install.WriteMoves(&b, p.Layout); err != nil {
		return err
	}
	if err := install.WriteGrants(&b, slices.Concat(p.Roles, s.drawers)...); err != nil {
		return err
	}
	fmt.Fprintf(&b, "UPDATE firn.server SET cluster = %s, name = %s, shards = %d, keys = %s, schemas = %s, servers = %s;\nCOMMIT;\n",
		literal(p.Cluster), literal(s.Server.Name), p.Keys.Shards(), literal(p.Keys.String()), literal(p.Schemas), array(p.names))
	return exec(ctx, s.Server, b.String())
}

// quiet keeps what is there already from being reported.
const quiet = "SET LOCAL client_min_messages = warning;\nSET LOCAL standard_conforming_strings = on;\n"

// exec runs statements at a server. What they begin they end.
func exec(ctx context.Context, server topology.Server, sql string) error {
	return server.Ask(ctx, func(c *pgx.Conn) error {
		if _, err := c.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return &topology.ServerError{Server: server.Name, Err: because(ctx, err)}
		}
		return nil
	})
}

// because is why something failed: what ended ctx, if that is the reason.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// shards makes and renews the shards of a server, on a few connections.
func (p *Plan) shards(ctx context.Context, s ServerPlan, done *atomic.Int64) error {
	work := s.steps()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	batches := make(chan []step)
	var all sync.WaitGroup
	var errs [connections]error
	for i := range min(connections, (len(work)+batch-1)/batch) {
		all.Go(func() {
			if errs[i] = p.worker(ctx, s, batches, done); errs[i] != nil {
				stop()
			}
		})
	}
feed:
	for some := range slices.Chunk(work, batch) {
		select {
		case batches <- some:
		case <-ctx.Done():
			break feed
		}
	}
	close(batches)
	all.Wait()
	return first(errs[:])
}

// steps are what the shards of a server still need.
func (s ServerPlan) steps() []step {
	var all []step
	for _, n := range s.Renew {
		all = append(all, step{n, false})
	}
	for _, n := range s.Make {
		all = append(all, step{n, true})
	}
	return all
}

// first is the first of errors that says something of its own.
func first(errs []error) error {
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil && !errors.Is(err, context.Canceled) })
	if i < 0 {
		return errors.Join(errs...)
	}
	return errs[i]
}

// worker makes batches of shards in one session.
func (p *Plan) worker(ctx context.Context, s ServerPlan, batches <-chan []step, done *atomic.Int64) error {
	var failed error // which names the server itself
	err := s.Server.Ask(ctx, func(c *pgx.Conn) error {
		failed = p.makeBatches(ctx, c, s, batches, done)
		return failed
	})
	if failed != nil {
		return failed
	}
	return err
}

func (p *Plan) makeBatches(ctx context.Context, c *pgx.Conn, s ServerPlan, batches <-chan []step, done *atomic.Int64) error {
	for some := range batches {
		err := p.take(ctx, c, some)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && len(some) > 1 {
			// One by one it shows which it is, and there are fewer locks at a time.
			for i := range some {
				if err = p.take(ctx, c, some[i:i+1]); err != nil {
					return &ShardError{s.Server.Name, some[i].shard, because(ctx, err)}
				}
				done.Add(1)
			}
			continue
		}
		if err != nil {
			return &ShardError{s.Server.Name, some[0].shard, because(ctx, err)}
		}
		done.Add(int64(len(some)))
	}
	return nil
}

// A ShardError says at which shard of a server something failed, or that it was lost
// at that or one of the next.
type ShardError struct {
	Server string
	Shard  int64
	Err    error
}

func (e *ShardError) Error() string {
	return fmt.Sprintf("shard: server %s: shard %d: %s", e.Server, e.Shard, e.Err)
}
func (e *ShardError) Unwrap() error { return e.Err }

// A step is a shard that something is to be done for.
type step struct {
	shard int64
	make  bool // else it is renewed
}

// take does some steps in one transaction.
func (p *Plan) take(ctx context.Context, c *pgx.Conn, some []step) error {
	var b strings.Builder
	b.WriteString("BEGIN;\n" + install.Working + quiet)
	// A change of a schema has all functions of the session planned anew. So these
	// come first, for half of the cost. The last work of somebody who was killed may
	// have ended after the look: what it made is there.
	for _, s := range some {
		if !s.make {
			continue
		}
		schema := identifier(p.schema(s.shard))
		fmt.Fprintf(&b, "CREATE SCHEMA IF NOT EXISTS %s;\n", schema)
		for _, role := range p.Roles {
			fmt.Fprintf(&b, "GRANT USAGE ON SCHEMA %s TO %s;\n", schema, identifier(role))
		}
	}
	for _, s := range some {
		if s.make {
			fmt.Fprintf(&b, "SELECT firn.create_shard(%d, %s);\n", s.shard, literal(p.schema(s.shard)))
		} else {
			fmt.Fprintf(&b, "SELECT firn.renew_shard(%d);\n", s.shard)
		}
		for _, role := range p.Roles {
			fmt.Fprintf(&b, "SELECT firn.grant_shard(%d, %s);\n", s.shard, literal(role))
		}
	}
	b.WriteString("COMMIT;\n")
	_, err := c.Exec(ctx, b.String(), pgx.QueryExecModeSimpleProtocol)
	if err != nil && !c.IsClosed() {
		_, rollback := c.Exec(ctx, "ROLLBACK")
		err = errors.Join(err, rollback)
	}
	return err
}

// identifier quotes a name.
func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a text, for standard_conforming_strings.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// array is names as an array of SQL.
func array(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = literal(name)
	}
	return "ARRAY[" + strings.Join(quoted, ", ") + "]"
}
