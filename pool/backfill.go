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
	Name   string // of who has it or had it last; empty: nobody is known, but the store may have forgotten
}

func (e *BackfillError) Error() string {
	why := "was held, last by " + e.Name + ": its ids may be in use"
	switch {
	case e.Name == "":
		why = "may have been held: the store does not know, or can forget"
	case strings.HasPrefix(e.Name, past):
		why = "has other ids of the past, under the name " + strings.TrimPrefix(e.Name, past)
	}
	return fmt.Sprintf("pool: worker %d of pool %q %s", e.Worker, e.Pool, why)
}

// ReserveBackfill reserves a worker that was never leased, for ids with times in the past, up to
// last: ids for rows that come from another system and have dates of their own. After it has
// returned nil, the caller may make these ids with [firn.Layout.Encode], each once. Nobody else
// makes them: a process that leases the worker later starts above last.
//
// job is a name for this use of the worker. A second call with the same job and worker, and a
// last that is not later, succeeds. Another job, or a worker that was ever leased, is a
// [*BackfillError]. So is every worker of a pool that may have had a predecessor whose ids are
// in use: [Ensure] created the pool, it has workers that another pool had, or its store can lose
// writes or was recovered. A [*store.OtherStoreError] says that this store is a copy.
func ReserveBackfill(ctx context.Context, s store.Store, name string, worker int64, job string, last time.Time) error {
	if err := checkStore(ctx, s); err != nil {
		return err
	}
	p, err := existing(ctx, s, name)
	if err != nil {
		return err
	}
	tick := p.layout.Tick(last)
	switch workers := p.workers(); {
	case !workers.Has(worker):
		return &term.WorkerError{Pool: name, Worker: worker, First: workers.First, Last: workers.Last}
	case job == "" || len(past+job) > maxHolder:
		return &OptionError{"name", fmt.Sprintf("name has %d bytes: there are 1 to %d", len(job), maxHolder-len(past))}
	case tick < 0 || last.After(time.Now().Add(term.Skew)):
		return &OptionError{"last", fmt.Sprintf("last %s is not between the layout's epoch and now", last.UTC().Format(time.RFC3339Nano))}
	}
	key := term.KeyWorker(name, worker)
	rec, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	if rec.Version == "" {
		forgets, err := mayForget(ctx, s)
		if err != nil {
			return err
		}
		if !p.NeverHeld(forgets) {
			return &BackfillError{Pool: name, Worker: worker}
		}
		if _, err = s.Put(ctx, key, term.Past(past+job, tick).Encode(), store.Condition{}); err == nil {
			return nil
		}
		// Somebody was first, or what became of the write is not known.
		again, lost := s.Get(ctx, key)
		if lost != nil || again.Version == "" {
			return err
		}
		rec = again
	}
	r, err := term.ReadRecord(rec)
	if err == nil && (r.Name != past+job || r.Horizon < tick) {
		err = &BackfillError{Pool: name, Worker: worker, Name: r.Name}
	}
	return err
}

// mayForget says whether a store can forget, or was restored, so that it has.
func mayForget(ctx context.Context, s store.Store) (bool, error) {
	durability, err := s.Durability(ctx)
	if err != nil {
		return false, err
	}
	restored, err := s.Get(ctx, term.KeyStore)
	return !durability.Durable || restored.Version != "", err
}
