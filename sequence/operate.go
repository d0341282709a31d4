package sequence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/block"
	"github.com/firn-id/firn/internal/record"
	"github.com/firn-id/firn/store"
)

// Info is what a store has of a series.
type Info struct {
	Name      string
	First     firn.ID
	Max       firn.ID
	Increment int64
	Granted   firn.ID // nobody is granted a number up to it any more; below First none was
	Left      int64   // how many numbers can still be granted
	Cache     int64   // how many a process reserves by one write, at least
	Strict    bool
	MayRepeat bool      // its creator accepted a lossy store
	Instance  string    // of the lossy store it goes on under
	Store     string    // the store that it was made in; empty where nobody has noted it
	Stores    int       // it is spread over so many
	Offset    int       // of this store, 0 to Stores-1
	Rate      float64   // numbers granted in a second, over the last minute
	At        time.Time // of the last grant, by the clock of who was granted it; zero: none yet
	By        string    // name of that process
	Err       error     // the record cannot be read: a *store.FormatError; the rest is unset then
}

// List returns the series of a store, by name.
func List(ctx context.Context, st store.Store) ([]Info, error) {
	list, err := st.List(ctx, block.Keys)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(list))
	for i, rec := range list {
		infos[i] = info(rec)
	}
	return infos, nil
}

func info(rec store.Record) Info {
	name := strings.TrimPrefix(rec.Key, block.Keys)
	r, err := block.Read(rec)
	if err != nil {
		return Info{Name: name, Err: err}
	}
	now := rec.Read
	if now.IsZero() {
		now = time.Now()
	}
	return Info{
		Name: name, First: firn.ID(r.First), Max: firn.ID(r.Max), Increment: max(r.Increment, 1),
		Granted: firn.ID(max(r.Granted, 0)), Left: r.Left(), Cache: r.Step, Strict: r.Strict, MayRepeat: r.Lossy,
		Instance: r.Instance, Store: r.Store, Stores: int(max(r.Stores, 1)), Offset: int(r.Offset), Rate: r.RateAt(now), At: r.At, By: r.By,
	}
}

// SetCache changes how many numbers a process reserves at a time, at least. Every process
// follows at its next reservation. Errors: [*OptionError], [*MissingError], and
// [*store.OtherStoreError], this store is a copy.
func SetCache(ctx context.Context, st store.Store, name string, cache int) (Info, error) {
	if cache < 1 || cache > block.MaxCache {
		return Info{}, &OptionError{"cache", fmt.Sprintf("cache %d: it is 1 to %d", cache, block.MaxCache)}
	}
	if err := checkStore(ctx, st); err != nil {
		return Info{}, err
	}
	return change(ctx, st, name, func(r block.Record) (block.Record, error) {
		r.Step = int64(cache)
		r.Writes++
		return r, nil
	})
}

// Raise continues a series above n: no process is granted a number up to n any more.
// Numbers that processes have in hand are still issued. Raise never lowers anything, so
// numbers that are skipped by mistake are lost: ask a person before a long way.
//
// Errors: [*OptionError], the series is above n already, or has no number above it;
// [*MissingError]; [*store.OtherStoreError], this store is a copy.
func Raise(ctx context.Context, st store.Store, name string, n firn.ID) (Info, error) {
	if err := checkStore(ctx, st); err != nil {
		return Info{}, err
	}
	return change(ctx, st, name, func(r block.Record) (block.Record, error) {
		switch {
		case int64(n) > r.Max:
			return r, &OptionError{"to", fmt.Sprintf("to %d: the series' max is %d", n, r.Max)}
		case int64(n) <= r.Granted:
			return r, &OptionError{"to", fmt.Sprintf("to %d: numbers up to %d were granted already", n, r.Granted)}
		}
		if r = r.Raised(int64(n)); r.Left() == 0 {
			return r, &OptionError{"to", fmt.Sprintf("to %d: the series' max is %d, and no number would be left", n, r.Max)}
		}
		return r, nil
	})
}

// change replaces the record of a series by what f makes of it.
func change(ctx context.Context, st store.Store, name string, f func(block.Record) (block.Record, error)) (Info, error) {
	if reason := record.CheckName("series", name, maxSeries); reason != "" {
		return Info{}, &OptionError{"series", reason}
	}
	rec, err := record.Change(ctx, st, block.Key(name), f)
	switch {
	case errors.Is(err, record.ErrMissing):
		return Info{}, withNames(ctx, st, &MissingError{Name: name})
	case err != nil:
		return Info{}, err
	}
	return info(rec), nil
}
