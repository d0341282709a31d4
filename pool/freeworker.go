package pool

import (
	"context"
	"slices"
	"strings"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// FreeWorker returns the highest worker of a pool that [ReserveBackfill] gives to a new job.
// Leases begin with the lowest, so the highest is the one least likely to be wanted. It is false
// where ReserveBackfill refuses every worker.
func FreeWorker(ctx context.Context, s store.Store, name string) (worker int64, ok bool, err error) {
	p, err := existing(ctx, s, name)
	if err != nil {
		return 0, false, err
	}
	used, err := p.used(ctx, s)
	if err != nil || used.all != nil {
		return 0, false, err
	}
	workers := p.workers()
	for n := workers.Last; n >= workers.First; n-- {
		if used.by(n) == nil {
			return n, true, nil
		}
	}
	return 0, false, nil
}

// usedWorkers are the workers of a pool that may have made ids.
type usedWorkers struct {
	one map[int64]*BackfillError // by the worker's own record, in this pool or in another
	all *BackfillError           // why every worker may have; nil: none besides those of one
}

// by returns why a worker may have made ids, or nil.
func (u usedWorkers) by(worker int64) *BackfillError {
	if e := u.one[worker]; e != nil || u.all == nil {
		return e
	}
	e := *u.all
	e.Worker = worker
	return &e
}

// used finds the workers that may have made ids which workers of the pool could make.
func (p *stored) used(ctx context.Context, s store.Store) (u usedWorkers, err error) {
	pools, err := list(ctx, s)
	if err != nil {
		return u, err
	}
	forgets, err := mayForget(ctx, s)
	if err != nil {
		return u, err
	}
	if !p.NeverHeld(forgets) {
		u.all = &BackfillError{Pool: p.name}
	}
	recs, err := s.List(ctx, term.KeyPools)
	if err != nil {
		return u, err
	}
	u.one = map[int64]*BackfillError{}
	for _, rec := range recs {
		in, _, _ := strings.Cut(strings.TrimPrefix(rec.Key, term.KeyPools), "/")
		worker, ok := term.WorkerOf(in, rec.Key)
		i := slices.IndexFunc(pools, func(o stored) bool { return o.name == in })
		switch {
		case !ok || p.Repeats(in) || i >= 0 && pools[i].Repeats(p.name):
			continue
		case i < 0 || pools[i].Layout == "" || !term.SameWorkerBits(p.layout, pools[i].layout):
			u.all = &BackfillError{Pool: p.name, In: in}
			continue
		}
		r, err := term.ReadRecord(rec)
		if err != nil {
			return u, err
		}
		e := &BackfillError{Pool: p.name, Worker: worker, Name: r.Name}
		if in != p.name {
			e.In = in
		}
		u.one[worker] = e
	}
	return u, nil
}
