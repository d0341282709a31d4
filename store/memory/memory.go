// Package memory keeps records in the process: for tests, and for one process
// that needs nothing to outlive it.
package memory

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
)

// A Store is a [store.Store] that lasts as long as the process. The zero Store is empty and
// ready to use. A Store must not be copied. Its methods never wait: they look at ctx
// once, before they do anything.
type Store struct {
	now     func() time.Time
	mu      sync.Mutex
	records map[string]record
}

// A record's value is never changed in place, so that snapshots may share it.
type record struct {
	value   []byte
	version store.Version
	written time.Time
}

var _ store.Store = (*Store)(nil)

// New returns an empty store on this host's clock.
func New() *Store { return new(Store) }

// NewClock returns an empty store whose clock is now. It calls now under its lock, by one
// goroutine at a time; now must not call the store.
func NewClock(now func() time.Time) *Store { return &Store{now: now} }

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := check(ctx, key, nil); err != nil {
		return store.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(key, s.clock()), nil
}

// Put implements [store.Store]. Its outcome is always known: an error other
// than [store.ErrConflict] comes with the zero Version, and nothing was written.
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	if err := check(ctx, key, value); err != nil {
		return store.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	old := s.records[key]
	if old.version != cond.Version {
		return store.Record{}, store.ErrConflict
	}
	if cond.Within != 0 && (cond.Within < 0 || now.Sub(old.written) > cond.Within) {
		return store.Record{}, store.ErrConflict
	}
	if s.records == nil {
		s.records = make(map[string]record)
	}
	s.records[key] = record{slices.Clone(value), store.NewVersion(), now}
	return s.read(key, now), nil
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	var list []store.Record
	for key := range s.records {
		if strings.HasPrefix(key, prefix) {
			list = append(list, s.read(key, now))
		}
	}
	slices.SortFunc(list, func(a, b store.Record) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

// Durability implements [store.Store].
func (s *Store) Durability(ctx context.Context) (store.Durability, error) {
	return store.Durability{
		Durable:    true,
		Why:        "in memory, as long as this process lives",
		LocalClock: true, NoticesLoss: true,
	}, ctx.Err()
}

// A Snapshot is what a store held at one instant. It stays as it is and may be
// restored any number of times, into any store.
type Snapshot struct{ records map[string]record }

// Snapshot returns what the store holds now, for tests of what happens when a
// store goes back.
func (s *Store) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{maps.Clone(s.records)}
}

// Restore puts the store back to snap, Versions and times of writing included,
// and forgets every write since. The zero Snapshot is the empty store.
func (s *Store) Restore(snap Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = maps.Clone(snap.records)
}

// clock reads the wall clock, as every other store's clock is: a reading of the
// monotonic clock would be lost wherever a record is written down.
func (s *Store) clock() time.Time {
	if s.now == nil {
		return time.Now().Round(0)
	}
	return s.now().Round(0)
}

func (s *Store) read(key string, now time.Time) store.Record {
	r := s.records[key]
	return store.Record{
		Key:     key,
		Value:   slices.Clone(r.value),
		Version: r.version,
		Written: r.written,
		Read:    now,
	}
}

func check(ctx context.Context, key string, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(store.CheckKey(key), store.CheckValue(value))
}
