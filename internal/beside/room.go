package beside

import (
	"context"
	"errors"
	"math/bits"
	"slices"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// A RoomError says how a pool gets a worker that it does not have, as its store allows.
type RoomError struct {
	error
	Worker    int64
	Most      int64     // the last worker that the layout has
	Other     pool.Info // that has the worker, or those between the worker and the pool; without a name: none
	Between   bool      // it has those between
	Low, High int64     // the range that would have the worker
}

func (e *RoomError) Unwrap() error { return e.error }

// RoomFor adds to the error for a worker that the pool does not have how it gets that
// worker, if it can.
func RoomFor(ctx context.Context, s store.Store, err error) error {
	var e *lease.WorkerError
	if !errors.As(err, &e) {
		return err
	}
	all, failed := pool.List(ctx, s)
	i := slices.IndexFunc(all, func(p pool.Info) bool { return p.Name == e.Pool })
	if failed != nil || i < 0 {
		return err
	}
	own := all[i]
	most := own.Layout.Workers() - 1
	if e.Worker > most {
		return &RoomError{error: err, Worker: e.Worker, Most: most}
	}
	low, high := min(e.Worker, own.First), max(min(widened(e.Worker), most), own.Last)
	for _, other := range all {
		switch {
		case other.Name == e.Pool || slices.Contains(own.MayRepeat, other.Name) || slices.Contains(other.MayRepeat, own.Name):
		case other.First <= e.Worker && e.Worker <= other.Last:
			return &RoomError{error: err, Worker: e.Worker, Most: most, Other: other}
		case other.First > own.Last && other.Last < e.Worker, other.Last < own.First && other.First > e.Worker:
			return &RoomError{error: err, Worker: e.Worker, Most: most, Other: other, Between: true}
		case other.First > max(e.Worker, own.Last):
			high = min(high, other.First-1)
		}
	}
	return &RoomError{error: err, Worker: e.Worker, Most: most, Low: low, High: high}
}

// widened is the last worker of the smallest range of a whole number of bits that has n.
func widened(n int64) int64 { return 1<<bits.Len64(uint64(n)) - 1 }
