package pool

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/store"
)

// past begins the name of the job that made ids of the past in a worker's record, so that
// no lease has it by chance.
const past = "past:"

// maxHolder is the length of a holder's name in a worker's record at most.
const maxHolder = 255

// A BackfillError says why a worker of a pool cannot be reserved for ids with times in the past.
type BackfillError struct {
	Pool   string
	Worker int64
	In     string // the other pool of the store that had the worker; empty: Pool
	Name   string // of who has it or had it last; empty: nobody is known, but the store may have forgotten
}

func (e *BackfillError) Error() string {
	in := ""
	if e.In != "" {
		in = fmt.Sprintf(" in pool %q", e.In)
	}
	why := "was held" + in + ", last by " + e.Name + ": its ids may be in use"
	switch {
	case e.Name == "" && e.In != "":
		why = fmt.Sprintf("may make ids that pool %q made: the record of that pool is lost, or its layout has the worker in other bits", e.In)
	case e.Name == "":
		why = "may have been held: the store does not know, or is lossy"
	case strings.HasPrefix(e.Name, past):
		why = "has other ids of the past" + in + ", under the name " + strings.TrimPrefix(e.Name, past)
	}
	return fmt.Sprintf("pool: worker %d of pool %q %s", e.Worker, e.Pool, why)
}

// ReserveBackfill reserves a worker that was never leased, for ids with times in the past, up to
// last: ids for rows that come from another system and have dates of their own. After it has
// returned nil, the caller may make these ids with [firn.Layout.Encode], each once. Nobody else
// makes them: a process that leases the worker later starts above last.
//
// job is a name for this use of the worker. A second call with the same job and worker, and a
// last that is not later, succeeds, even if the pool gave the worker away since. Another job is a
// [*BackfillError], and so is a worker that was ever leased, in this pool or in one that could
// make equal ids, unless Options.MayRepeat of one of the two names the other. So is every worker
// of a pool that may have had a predecessor whose ids are in use: [Ensure] created the pool, it
// has workers that another pool had, or its store can lose writes or was recovered. A
// [*store.OtherStoreError] says that this store is a copy.
func ReserveBackfill(ctx context.Context, s store.Store, name string, worker int64, job string, last time.Time) error {
	if err := checkStore(ctx, s); err != nil {
		return err
	}
	p, err := existing(ctx, s, name)
	if err != nil {
		return err
	}
	tick := p.layout.Tick(last)
	switch {
	case worker < 0 || worker >= p.layout.Workers():
		return p.outside(worker)
	case job == "" || len(past+job) > maxHolder:
		return &OptionError{"name", fmt.Sprintf("name has %d bytes: there are 1 to %d", len(job), maxHolder-len(past))}
	case tick < 0 || last.After(time.Now().Add(term.Skew)):
		return &OptionError{"last", fmt.Sprintf("last %s is not between the layout's epoch and now", last.UTC().Format(time.RFC3339Nano))}
	}
	rec, err := s.Get(ctx, term.KeyWorker(name, worker))
	if err != nil {
		return err
	}
	if rec.Version == "" {
		if rec, err = p.writePast(ctx, s, worker, term.Past(past+job, tick)); err != nil {
			return err
		}
		// The range may have changed before the record was there. Whoever changes it from now on
		// finds the record.
		if p, err = existing(ctx, s, name); err != nil {
			return err
		}
	}
	r, err := term.ReadRecord(rec)
	if err != nil {
		return err
	}
	same := r.Name == past+job && r.Horizon >= tick
	switch {
	case !p.workers().Has(worker) && !(same && tick <= p.Past): // a pool that has the worker now starts above Past
		return p.outside(worker)
	case !same:
		return &BackfillError{Pool: name, Worker: worker, Name: r.Name}
	}
	return nil
}

// outside is the error for a worker that is not in the pool's range.
func (p *stored) outside(worker int64) error {
	workers := p.workers()
	return &term.WorkerError{Pool: p.name, Layout: p.layout, Worker: worker, First: workers.First, Last: workers.Last}
}

// writePast writes the record of a worker that has none, and returns the record that is there
// then: another process may have been first.
func (p *stored) writePast(ctx context.Context, s store.Store, worker int64, r term.Record) (store.Record, error) {
	if !p.workers().Has(worker) {
		return store.Record{}, p.outside(worker)
	}
	used, err := p.used(ctx, s)
	if err != nil {
		return store.Record{}, err
	}
	if by := used.by(worker); by != nil {
		return store.Record{}, by
	}
	key := term.KeyWorker(p.name, worker)
	_, failed := s.Put(ctx, key, r.Encode(), store.Condition{})
	rec, err := s.Get(ctx, key)
	switch {
	case err == nil && rec.Version != "":
		return rec, nil
	case failed == nil && err == nil:
		return rec, &BackfillError{Pool: p.name, Worker: worker} // the store has forgotten it already
	case failed == nil:
		return rec, err
	}
	return rec, failed
}

// mayForget says whether a store is lossy, or was restored, so that it has lost writes.
func mayForget(ctx context.Context, s store.Store) (bool, error) {
	durability, err := s.Durability(ctx)
	if err != nil {
		return false, err
	}
	restored, err := s.Get(ctx, term.KeyStore)
	return !durability.Durable || restored.Version != "", err
}
