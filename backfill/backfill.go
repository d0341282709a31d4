// Package backfill makes the ids of rows that already have dates, such as those of another system.
// The ids are of a worker that nobody ever had: so no other process makes one of them.
//
//	b, err := backfill.New(info.Layout, worker, 0)
//	id, err := b.Add(row.Created) // of each row, always in the same order
//	err = b.Reserve(ctx, store, pool.Default) // then use the ids
package backfill

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// A Backfill makes ids of times, in any order: the nth of a tick has the sequence n. It is not
// safe for concurrent use.
type Backfill struct {
	layout        firn.Layout
	worker, shard int64
	now           time.Time // no time is after it
	ids           []firn.ID
	made          map[firn.Tick]int64 // how many ids there are of each tick
	latest        firn.Tick
}

// New returns a Backfill of a worker. Shard is the value of the layout's shard field; 0 where it
// has none. An error says that the layout has no such worker or shard.
func New(layout firn.Layout, worker, shard int64) (*Backfill, error) {
	if _, err := layout.Encode(firn.Parts{Tick: 1, Worker: worker, Shard: shard}); err != nil {
		return nil, err
	}
	return &Backfill{layout: layout, worker: worker, shard: shard, now: time.Now(), made: map[firn.Tick]int64{}}, nil
}

// Add makes the id of a time. Nobody may use it before [Backfill.Reserve] has returned nil. The
// same times in the same order give the same ids.
//
// Errors: [*FutureError], [*EarlyError] and [*FullError]. Then there is no id of that time, and
// more may be added.
func (b *Backfill) Add(at time.Time) (firn.ID, error) {
	switch {
	case at.After(b.now):
		return 0, &FutureError{at}
	case at.Before(b.layout.Epoch()):
		return 0, &EarlyError{at, b.layout}
	}
	tick := b.layout.Tick(at)
	seq, _ := b.layout.Field("seq")
	n := b.made[tick]
	if n > seq.Max() {
		return 0, &FullError{n, b.layout.Time(tick), b.layout.Unit()}
	}
	id, err := b.layout.Encode(firn.Parts{Tick: tick, Worker: b.worker, Shard: b.shard, Seq: n})
	if err != nil {
		return 0, err
	}
	b.made[tick], b.latest = n+1, max(b.latest, tick)
	b.ids = append(b.ids, id)
	return id, nil
}

// IDs returns all ids, in the order of their times' calls of Add.
func (b *Backfill) IDs() []firn.ID { return b.ids }

// Reserve takes the worker for these ids in a store, as [pool.ReserveBackfill] says, by a name that
// the same ids have again. After an error none of the ids may be used; call Reserve again.
func (b *Backfill) Reserve(ctx context.Context, s store.Store, name string) error {
	sum := sha256.New()
	var eight [8]byte
	for _, id := range b.ids {
		binary.BigEndian.PutUint64(eight[:], uint64(id))
		sum.Write(eight[:])
	}
	job := hex.EncodeToString(sum.Sum(nil)[:8])
	return pool.ReserveBackfill(ctx, s, name, b.worker, job, b.layout.Time(b.latest))
}

// A FutureError says that a time is still to come: a lease may make ids of that time.
type FutureError struct{ At time.Time }

func (e *FutureError) Error() string {
	return e.At.Format(time.RFC3339Nano) + " is still to come"
}

// Retryable is false; see firn.Retryable.
func (*FutureError) Retryable() bool { return false }

// An EarlyError says that a time is before the epoch of the layout.
type EarlyError struct {
	At     time.Time
	Layout firn.Layout
}

func (e *EarlyError) Error() string {
	return fmt.Sprintf("layout %s begins at %s, after %s", cmp.Or(e.Layout.Name(), e.Layout.String()),
		e.Layout.Epoch().Format(time.RFC3339Nano), e.At.UTC().Format(time.RFC3339Nano))
}

// Retryable is false; see firn.Retryable.
func (*EarlyError) Retryable() bool { return false }

// A FullError says that the worker has all ids of a tick already.
type FullError struct {
	IDs  int64
	At   time.Time     // the tick
	Tick time.Duration // how long it is
}

func (e *FullError) Error() string {
	return fmt.Sprintf("%s of one worker are of %s already, and there are no more in %s", phrase.Plural(int(e.IDs), "id"), e.At.Format(time.RFC3339Nano), e.Tick)
}

// Retryable is false; see firn.Retryable.
func (*FullError) Retryable() bool { return false }
