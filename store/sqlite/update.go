package sqlite

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/firn-id/firn/store"
)

var _ store.Updater = (*Store)(nil)

// Update implements [store.Updater], with the lock that every writer of the file
// takes. It also holds a record that was never written.
func (s *Store) Update(ctx context.Context, key string, f func(store.Record) ([]byte, error)) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	// Unlike a Put it does not return before its work is done: f is the caller's,
	// who must not go on while it runs.
	return run(context.WithoutCancel(ctx), s, store.Record{}, func(context.Context) (store.Record, error) {
		return s.update(ctx, key, f)
	})
}

func (s *Store) update(ctx context.Context, key string, f func(store.Record) ([]byte, error)) (store.Record, error) {
	deadline := time.Now().Add(s.patience)
	c, err := s.acquire(ctx, s.write)
	if err != nil {
		return store.Record{}, err
	}
	defer func() { s.write <- c }()
	err = s.patiently(ctx, deadline, func() error {
		if err := s.check(); err != nil {
			return err
		}
		return s.begin(&c)
	})
	if err != nil {
		return store.Record{}, err
	}
	next, sent, err := s.replace(c, key, f)
	var own *ownError
	if err != nil {
		own, _ = errors.AsType[*ownError](err)
		c = c.abandon(own == nil)
	}
	// Whatever f has seen counts only if this is still the store.
	if gone := s.check(); gone != nil {
		err, own = gone, nil
	}
	tried := store.Record{}
	if sent {
		tried = store.Record{Key: key, Version: next.Version}
	}
	switch {
	case err == nil:
		return next, nil
	case own != nil:
		return store.Record{}, own.error
	}
	return tried, s.at.explain(err)
}

// An ownError is one of the caller's f.
type ownError struct{ error }

// replace runs in the transaction that begin opened, and ends it if it returns no
// error. It says whether anything was written by then.
func (s *Store) replace(c *session, key string, f func(store.Record) ([]byte, error)) (next store.Record, sent bool, err error) {
	old, err := s.get(c, key)
	if err != nil {
		return next, false, err
	}
	value, err := f(old)
	if err == nil {
		err = store.CheckValue(value)
	}
	if err != nil {
		return next, false, &ownError{err}
	}
	next = store.Record{Key: key, Value: slices.Clone(value), Version: store.NewVersion()}
	sent, err = s.compareAndSet(c, &next, store.Condition{Version: old.Version})
	return next, sent, err
}
