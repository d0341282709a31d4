package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

// A Worker is one worker of a pool, as the store has it.
type Worker struct {
	Worker  int64
	Term    uint64
	State   WorkerState
	Name    string        // of its holder, or of its last
	Free    time.Duration // until it falls free, if its holder does not write again; 0 where State is not WorkerHeld
	Horizon time.Time     // last instant that may have been issued
	Written time.Time     // by the store's clock; zero where it has none
}

// A WorkerState says whether a process has a worker.
type WorkerState string

// States of a worker.
const (
	// WorkerFree: nobody has it, or its holder has not written for its time to live.
	WorkerFree WorkerState = "free"
	// WorkerHeld: a process has it, and has written within its time to live.
	WorkerHeld WorkerState = "held"
	// WorkerUnknown: a process took it and did not give it back, and the store has no
	// clock (etcd, ZooKeeper), so the records do not say whether that process is alive.
	WorkerUnknown WorkerState = "unknown"
)

// ErrNoPool: the store has no pool of that name.
var ErrNoPool = errors.New("lease: no such pool")

// Pools returns the names of the store's pools. It reads every record.
func Pools(ctx context.Context, s store.Store) ([]string, error) {
	list, err := s.List(ctx, term.KeyPools)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, rec := range list {
		if name := strings.TrimPrefix(rec.Key, term.KeyPools); !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return names, nil
}

// Workers returns the workers of a pool that were ever held, by number.
func Workers(ctx context.Context, s store.Store, pool string) ([]Worker, error) {
	p, layout, err := poolRecord(ctx, s, pool)
	if err != nil {
		return nil, err
	}
	list, err := s.List(ctx, term.KeyWorkers(pool))
	if err != nil {
		return nil, err
	}
	workers := make([]Worker, 0, len(list))
	for _, rec := range list {
		n, ok := term.WorkerOf(pool, rec.Key)
		if !ok {
			continue
		}
		r, err := term.ReadRecord(rec)
		if err != nil {
			return nil, err
		}
		w := Worker{
			Worker: n, Term: r.Term, Name: r.Name, Written: rec.Written,
			Horizon: layout.Time(r.Horizon + 1).Add(-1),
		}
		w.State, w.Free = workerState(p, rec, r)
		workers = append(workers, w)
	}
	return workers, nil
}

// workerState says whether a worker is held, and when it falls free.
func workerState(p term.Pool, rec store.Record, r term.Record) (WorkerState, time.Duration) {
	if r.Owner == "" {
		return WorkerFree, 0
	}
	if rec.Read.IsZero() {
		return WorkerUnknown, 0
	}
	ttl := time.Duration(r.TTL) * time.Millisecond
	if p.Lossy != "" { // others take it so much later there
		ttl += 2 * term.Skew
	}
	// A store's clock that was set back says nothing of how long ago the write was.
	if left := ttl - max(rec.Read.Sub(rec.Written), 0); left > 0 {
		return WorkerHeld, left
	}
	return WorkerFree, 0
}

// Release takes a worker away from its holder, who is known to be gone. Its
// horizon stays, so nothing repeats even where the holder is alive: that one
// takes another worker when it finds out. ErrConflict says that somebody wrote
// the record meanwhile, so the holder may be alive: look again.
func Release(ctx context.Context, s store.Store, pool string, worker int64) error {
	if _, err := Layout(ctx, s, pool); err != nil {
		return err
	}
	rec, err := s.Get(ctx, term.KeyWorker(pool, worker))
	if err != nil {
		return err
	}
	r, err := term.ReadRecord(rec)
	if err != nil || r.Owner == "" {
		return err // nobody has it
	}
	_, err = s.Put(ctx, rec.Key, r.Freed(0).Encode(), store.Condition{Version: rec.Version})
	return err
}

// Layout returns the layout of a pool.
func Layout(ctx context.Context, s store.Store, pool string) (firn.Layout, error) {
	_, l, err := poolRecord(ctx, s, pool)
	return l, err
}

// poolRecord reads the record of a pool that is there.
func poolRecord(ctx context.Context, s store.Store, pool string) (p term.Pool, l firn.Layout, err error) {
	if err := checkPool(pool); err != nil {
		return p, l, err
	}
	rec, err := s.Get(ctx, term.KeyPool(pool))
	if err != nil {
		return p, l, err
	}
	if rec.Version == "" {
		return p, l, fmt.Errorf("%w: %q", ErrNoPool, pool)
	}
	if p, err = term.ReadPool(rec); err != nil {
		return p, l, err
	}
	if l, err = firn.ParseLayout(p.Layout); err != nil {
		err = fmt.Errorf("lease: pool %q: %w", pool, err)
	}
	return p, l, err
}
