package lease

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/lease/term"
	"github.com/firn-id/firn/store"
)

// past begins the name of who made ids of the past in a worker's record, so that no
// lease has it by chance.
const past = "past:"

// A PastError says why a worker of a pool cannot give ids of instants that are over.
type PastError struct {
	Pool   string
	Worker int64
	Name   string // of who has it or had it last; empty: nobody is known, but the store may have forgotten
}

func (e *PastError) Error() string {
	why := "was held, last by " + e.Name + ": its ids may be in use"
	switch {
	case e.Name == "":
		why = "may have been held: the store does not know, or can forget"
	case strings.HasPrefix(e.Name, past):
		why = "has other ids of the past, under the name " + strings.TrimPrefix(e.Name, past)
	}
	return fmt.Sprintf("lease: worker %d of pool %q %s", e.Worker, e.Pool, why)
}

// Past takes a worker that nobody ever had for ids of instants that are over, up to
// last: those of rows that come from elsewhere, with dates of their own. When it has
// returned nil the caller may make them, by [firn.Layout.Encode], each once. They are
// nobody else's: whoever leases the worker later starts above last.
//
// A name tells one use from another. The same one may come again, to make the same
// ids again, and none later; any other gets a [*PastError]. So does whoever wants a
// worker that was leased. Where the pool was founded by a lease, and not by [Found], it
// has to be one that the pool was founded without. On a store that can forget, or was
// restored, none is given: it may have forgotten ids of the past as well.
func Past(ctx context.Context, s store.Store, pool string, worker int64, name string, last time.Time) error {
	p, layout, err := poolRecord(ctx, s, pool)
	if err != nil {
		return err
	}
	tick := layout.Tick(last)
	switch {
	case worker < 0 || worker >= layout.Workers():
		return &OptionError{"worker", fmt.Sprintf("worker %d: layout %s has 0 to %d", worker, PoolName(layout), layout.Workers()-1)}
	case name == "" || len(past+name) > maxName:
		return &OptionError{"name", fmt.Sprintf("name has %d bytes: there are 1 to %d", len(name), maxName-len(past))}
	case tick < 0 || last.After(time.Now().Add(term.Skew)):
		return &OptionError{"last", fmt.Sprintf("last %s is not between the layout's epoch and now", last.UTC().Format(time.RFC3339Nano))}
	}
	key := term.KeyWorker(pool, worker)
	rec, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	if rec.Version == "" {
		forgets, err := mayForget(ctx, s)
		if err != nil {
			return err
		}
		if !p.NeverHeld(layout, worker, forgets) {
			return &PastError{Pool: pool, Worker: worker}
		}
		if _, err = s.Put(ctx, key, term.Past(past+name, tick).Encode(), store.Condition{}); err == nil {
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
	if err == nil && (r.Name != past+name || r.Horizon < tick) {
		err = &PastError{Pool: pool, Worker: worker, Name: r.Name}
	}
	return err
}

// mayForget says whether a store can forget, or was restored, so that it has.
func mayForget(ctx context.Context, s store.Store) (bool, error) {
	promise, err := s.Promise(ctx)
	if err != nil {
		return false, err
	}
	restored, err := s.Get(ctx, term.KeyStore)
	return promise.Class != store.Strict || restored.Version != "", err
}
