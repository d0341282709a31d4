package migrate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/shard/topology"
)

// Options say how files are applied. The zero value is the default.
type Options struct {
	// PerServer is how many shards of a server are worked on at once (4),
	// each over a connection of its own.
	PerServer int

	// MaxFailures is how many shards may fail before no other is begun (10).
	MaxFailures int

	// LockTimeout is how long a statement waits for a lock (2 s), while whoever uses
	// the table waits behind it. A transaction that did not get it is begun again a
	// few times. It is not for files outside of a transaction.
	LockTimeout time.Duration

	// StatementTimeout is how long a statement may take (no limit).
	StatementTimeout time.Duration

	// Moving applies files to shards whose move is not finished too. After a file that changes tables
	// the other copy cannot take over any more.
	Moving bool

	// Done is called after each shard, one at a time.
	Done func(Result)
}

func (o *Options) orDefault() Options {
	var v Options
	if o != nil {
		v = *o
	}
	v.PerServer = cmp.Or(v.PerServer, 4)
	v.MaxFailures = cmp.Or(v.MaxFailures, 10)
	v.LockTimeout = cmp.Or(v.LockTimeout, 2*time.Second)
	if v.Done == nil {
		v.Done = func(Result) {}
	}
	return v
}

// A Result is what became of the work on one shard.
type Result struct {
	Shard   int64
	Server  string
	Applied []File // in this run
	Err     error  // a [*FileError], if one file is to blame; nil: the shard has all
}

// Run applies the files of a plan, on all servers at once, and returns what became of each shard that it
// began. It begins no more shards after too many failures, on a server that is lost, and after ctx
// ends.
func (p *Plan) Run(ctx context.Context, servers []topology.Server, o *Options) []Result {
	r := &run{plan: p, options: o.orDefault()}
	var wg sync.WaitGroup
	for _, server := range servers {
		queue := make(chan Work, len(p.Work))
		for _, w := range p.Work {
			if w.Server == server.Name {
				queue <- w
			}
		}
		close(queue)
		for range min(r.options.PerServer, len(queue)) {
			wg.Go(func() { r.work(ctx, server, queue) })
		}
	}
	wg.Wait()
	slices.SortFunc(r.results, func(a, b Result) int { return cmp.Compare(a.Shard, b.Shard) })
	return r.results
}

// A run is what the workers share.
type run struct {
	plan    *Plan
	options Options

	sync.Mutex
	results  []Result
	failures int
}

// goesOn says whether another shard may be begun.
func (r *run) goesOn() bool {
	r.Lock()
	defer r.Unlock()
	return r.failures < r.options.MaxFailures
}

// end takes note of what became of a shard.
func (r *run) end(result Result) {
	r.Lock()
	defer r.Unlock()
	r.results = append(r.results, result)
	if result.Err != nil && !errors.Is(result.Err, ErrMoving) {
		r.failures++
	}
	r.options.Done(result)
}

// work works on the shards of a queue, over one connection, and ends where that is lost.
func (r *run) work(ctx context.Context, server topology.Server, queue <-chan Work) {
	var c *pgx.Conn
	for w := range queue {
		if ctx.Err() != nil || !r.goesOn() {
			break
		}
		if c == nil {
			var err error
			if c, err = server.Connect(ctx); err != nil {
				r.end(Result{Shard: w.Shard, Server: w.Server, Err: err})
				return
			}
			defer closeConn(c)
		}
		r.end(r.shard(ctx, c, w))
		if c.IsClosed() { // the next one would fare no better
			return
		}
	}
}

// closeTime is how long the end of a connection is waited for.
const closeTime = 15 * time.Second

// closeConn closes a connection, and waits until the server has been told to end what
// was broken off.
func closeConn(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	c.Close(ctx)
	select {
	case <-c.PgConn().CleanupDone():
	case <-ctx.Done():
	}
}

// shard applies the files of one shard, up to the first that fails.
func (r *run) shard(ctx context.Context, c *pgx.Conn, w Work) Result {
	result := Result{Shard: w.Shard, Server: w.Server}
	s := &session{conn: c.PgConn(), work: w, cluster: r.plan.cluster, options: r.options}
	for _, f := range w.Files {
		result.Err = s.apply(ctx, f)
		if result.Err == nil {
			result.Applied = append(result.Applied, f)
		}
		// What a file leaves behind in the connection: settings, locks of the session.
		if !c.IsClosed() {
			result.Err = errors.Join(result.Err, s.exec(ctx, "DISCARD ALL"))
		}
		if result.Err != nil {
			break
		}
	}
	return result
}
