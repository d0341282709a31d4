package shard

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// GatherOptions say how Gather runs transactions. Nil, or a field that is zero or less, means the default.
type GatherOptions struct {
	AtOnce    int           // transactions at once: 16
	PerServer int           // on one server: 4. Let its pool have more connections
	Tx        pgx.TxOptions // of each transaction
	GoOn      bool          // after errors; else the first ends all others
}

// A Gathered is what one shard gave.
type Gathered[T any] struct {
	Shard Shard
	Value T
	Err   error
}

// Gather runs f in a transaction on each of several shards, as [Shard.InTxOptions] does, several at once. It
// returns what the shards gave, in the order of the shards.
//
// After an error Gather begins no other transaction, cancels those that run, and returns only the
// error. With GoOn it returns what all shards gave, and all errors joined. There is no transaction over
// several shards: each sees the data as of a moment of its own.
func Gather[T any](ctx context.Context, shards iter.Seq[Shard], o *GatherOptions, f func(ctx context.Context, s Shard, tx pgx.Tx) (T, error)) ([]Gathered[T], error) {
	var options GatherOptions
	if o != nil {
		options = *o
	}
	var all []Gathered[T]
	for s := range shards {
		all = append(all, Gathered[T]{Shard: s})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	one := func(i int) {
		g := &all[i]
		if g.Err = context.Cause(ctx); g.Err == nil {
			g.Err = g.Shard.InTxOptions(ctx, options.Tx, func(tx pgx.Tx) (err error) {
				g.Value, err = f(ctx, g.Shard, tx)
				return err
			})
		}
		if g.Err != nil && !options.GoOn {
			cancel(g.Err) // the first counts
		}
	}
	options.each(len(all), func(i int) Shard { return all[i].Shard }, one)
	if !options.GoOn {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		return all, nil
	}
	var errs []error
	for _, g := range all {
		errs = append(errs, g.Err)
	}
	return all, errors.Join(errs...)
}

// each calls do with 0 to n-1, each of which is about a shard, and not too many at once.
func (o *GatherOptions) each(n int, shard func(i int) Shard, do func(i int)) {
	atOnce, perServer := 16, 4
	if o.AtOnce > 0 {
		atOnce = o.AtOnce
	}
	if o.PerServer > 0 {
		perServer = o.PerServer
	}
	queues := make(map[string][]int) // by server
	for i := range n {
		server := shard(i).server()
		queues[server] = append(queues[server], i)
	}
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, queue := range queues {
		var next atomic.Int64
		for range min(perServer, len(queue)) {
			all.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(queue)); i = next.Add(1) - 1 {
					slots <- struct{}{}
					do(queue[i])
					<-slots
				}
			})
		}
	}
	all.Wait()
}

// server is where the shard is now, or empty.
func (s Shard) server() string {
	if s.err != nil || s.cluster == nil {
		return ""
	}
	server, _ := s.cluster.route(s.number)
	return server
}
