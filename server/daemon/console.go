package daemon

import (
	"context"
	"errors"
	"net/http"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/server/console"
	"github.com/firn-id/firn/shard/topology"
	"github.com/firn-id/firn/store"
)

// withConsole answers the console's paths, and leaves the others to a listener's own
// handler.
func (f *front) withConsole(rest http.Handler) http.Handler {
	page := console.Handler(f.server, &console.Options{
		Version: f.version, Names: f.options.Hosts, Traffic: f.traffic, Reloaded: f.lastReload,
		Workers: func(ctx context.Context) ([]console.Worker, error) { return f.supplies.Load().workers(ctx) },
		Shards:  WatchShards(func() []topology.Server { return *f.sharded.Load() }),
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if console.Serves(r.URL.Path) {
			page.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

// workers lists the workers of the pools that are drawn from, each pool once. One that is
// too large to be listed is an error where there is no other.
func (all supplies) workers(ctx context.Context) ([]console.Worker, error) {
	type place struct{ store, name string }
	seen := map[place]bool{}
	var list []console.Worker
	var errs []error
	var many error
	for _, s := range all {
		now := s.now.Load()
		if now == nil || now.workers == nil {
			continue
		}
		at := place{s.drawing.storeText(), s.drawing.Leasing.Pool}
		if seen[at] {
			continue
		}
		seen[at] = true
		workers, err := now.workers(ctx)
		if errors.Is(err, errManyWorkers) {
			many = err
			continue
		}
		errs = append(errs, err)
		for _, w := range workers {
			list = append(list, console.Worker{
				Store: at.store, Pool: at.name, Worker: w.Worker, Text: w.Layout.WorkerText(w.Worker), State: string(w.State), Name: w.Name,
				Term: w.Term, Free: w.Free, Horizon: w.Horizon,
			})
		}
	}
	if len(list) == 0 {
		errs = append(errs, many)
	}
	return list, errors.Join(errs...)
}

// mostListed is how large a pool may be whose records are read again and again to be
// shown.
const mostListed = 4096

var errManyWorkers = errors.New("the pool has more workers than are listed here; firn worker ls lists them")

func poolWorkers(ctx context.Context, st store.Store, l *lease.Lease) ([]pool.Worker, error) {
	if l.State().Layout.Workers() > mostListed {
		return nil, errManyWorkers
	}
	return pool.Workers(ctx, st, l.State().Pool)
}
