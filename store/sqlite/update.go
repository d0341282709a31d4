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
	// f is the caller's, who must not go on while it runs; and what it has seen
	// counts only after a look at the file. So ctx ends the wait only for what f
	// has answered, which may be written or not, as with a Put.
	wait, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	tried := store.Record{Key: key, Version: store.NewVersion()}
	return run(wait, s, tried, func(context.Context) (store.Record, error) {
		return s.update(ctx, tried, func(old store.Record) ([]byte, error) {
			value, err := f(old)
			if err != nil {
				return nil, err
			}
			value = slices.Clone(value)
			go func() {
				select {
				case <-ctx.Done():
					leave()
				case <-wait.Done():
				}
			}()
			return value, nil
		})
	})
}

// update carries out one Update: tried has the key, and the version to write.
func (s *Store) update(ctx context.Context, tried store.Record, f func(store.Record) ([]byte, error)) (store.Record, error) {
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
	next, sent, err := s.replace(c, tried, f)
	var own *ownError
	if err != nil {
		own, _ = errors.AsType[*ownError](err)
		c = c.abandon(own == nil)
	}
	// Whatever f has seen counts only if this is still the store.
	if gone := s.check(); gone != nil {
		err, own = gone, nil
	}
	if !sent {
		tried = store.Record{}
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
func (s *Store) replace(c *session, next store.Record, f func(store.Record) ([]byte, error)) (_ store.Record, sent bool, err error) {
	old, err := s.get(c, next.Key)
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
	next.Value = value
	sent, err = s.compareAndSet(c, &next, store.Condition{Version: old.Version})
	return next, sent, err
}
