package daemon

import (
	"context"
	"time"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/server/console"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/topology"
)

// WatchShards returns what shows shards to a console, see [console.Options]: those of the
// servers of that moment.
func WatchShards(servers func() []topology.Server) func() func(context.Context) (*console.Shards, error) {
	return (&shardWatch{servers: servers}).asked
}

// A shardWatch measures shards for the console: one look at a time.
type shardWatch struct {
	servers func() []topology.Server
	last    map[string]*check.Load // by server, when it answered last
}

// asked returns what looks, nil while there is nothing to look at.
func (w *shardWatch) asked() func(context.Context) (*console.Shards, error) {
	if len(w.servers()) == 0 {
		return nil
	}
	return w.look
}

// recent is how old a look may be whose figures are compared with those of now.
const recent = time.Minute

func (w *shardWatch) look(ctx context.Context) (*console.Shards, error) {
	servers := w.servers()
	moves := make(chan *console.Shards, 1)
	go func() { moves <- shardMoves(ctx, servers) }()
	loads := check.Loads(ctx, servers)
	all := <-moves
	now := make(map[string]*check.Load)
	for _, l := range loads {
		before := w.last[l.Server]
		shown := console.ShardServer{Name: l.Server, Err: l.Err}
		if l.Err != nil {
			l = before
		}
		if l != nil {
			now[l.Server] = l
			shown.Shards = shardsOf(l, before)
		}
		all.Servers = append(all.Servers, shown)
	}
	w.last = now
	return all, nil
}

// shardsOf are the shards of a server, with what was written since an earlier look.
func shardsOf(l, before *check.Load) []console.Shard {
	if before != nil && time.Since(before.At) > recent {
		before = nil
	}
	rates := l.Rates(before)
	shards := make([]console.Shard, len(l.Shards))
	for i, s := range l.Shards {
		shards[i] = console.Shard{Number: s.Shard, Closed: !s.Open, Bytes: s.Bytes, Rate: -1}
		if rate, ok := rates[s.Shard]; ok {
			shards[i].Rate = rate
		}
	}
	return shards
}

func shardMoves(ctx context.Context, servers []topology.Server) *console.Shards {
	moves, err := move.Moves(ctx, servers)
	all := &console.Shards{Err: err}
	for _, f := range moves {
		all.Moves = append(all.Moves, console.ShardMove{
			From: f.Source, To: f.Target, Shards: f.Shards, List: phrase.Numbers(f.Shards), Moved: len(f.Moved), Phase: string(f.Stage()),
			Rows: f.Rows, Total: f.RowsTotal, Lag: f.Unapplied, Since: f.Began, Problem: f.Problem,
		})
	}
	return all
}
