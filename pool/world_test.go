package pool_test

import (
	"context"
	"errors"
	"testing"

	"github.com/firn-id/firn/internal/term"
	"github.com/firn-id/firn/pool"
	"github.com/firn-id/firn/store"
)

// with returns the store with a pool "default" that was created in it.
func with(t *testing.T, s store.Store, o *pool.Options) store.Store {
	t.Helper()
	if _, err := pool.Create(t.Context(), s, pool.Default, o); err != nil {
		t.Fatal(err)
	}
	return s
}

// record reads a pool's record.
func record(t *testing.T, s store.Store, name string) term.Pool {
	t.Helper()
	rec, err := s.Get(t.Context(), term.KeyPool(name))
	if err != nil {
		t.Fatal(err)
	}
	p, err := term.ReadPool(rec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// change edits a pool's record by hand.
func change(t *testing.T, s store.Store, name string, by func(term.Pool) term.Pool) {
	t.Helper()
	rec, err := s.Get(t.Context(), term.KeyPool(name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), rec.Key, by(record(t, s, name)).Encode(), store.Condition{Version: rec.Version}); err != nil {
		t.Fatal(err)
	}
}

// remote is a store that other hosts can reach.
type remote struct {
	store.Store
	identity string
}

func (r remote) Durability(ctx context.Context) (store.Durability, error) {
	p, err := r.Store.Durability(ctx)
	p.LocalClock, p.NoticesLoss, p.Durable, p.Identity = false, false, true, r.identity
	return p, err
}

// forgetful is a lossy store.
type forgetful struct{ store.Store }

func (f forgetful) Durability(ctx context.Context) (store.Durability, error) {
	p, err := f.Store.Durability(ctx)
	p.Durable = false
	return p, err
}

var errLost = errors.New("the connection was lost")

// interposed is a store where something happens before each write, and its reply is lost.
type interposed struct {
	store.Store
	before func(s store.Store, key string, value []byte)
}

func (i *interposed) Put(ctx context.Context, key string, value []byte, c store.Condition) (store.Record, error) {
	i.before(i.Store, key, value)
	rec, err := i.Store.Put(ctx, key, value, c)
	if errors.Is(err, store.ErrConflict) {
		return rec, err
	}
	return store.Record{Version: rec.Version}, errors.Join(err, errLost)
}

// scripted calls a function before each of the requests that a call makes.
type scripted struct {
	store.Store
	n      int
	before func(n int, op, key string) error
}

func (s *scripted) step(op, key string) error {
	s.n++
	return s.before(s.n, op, key)
}

func (s *scripted) Get(ctx context.Context, key string) (store.Record, error) {
	if err := s.step("get", key); err != nil {
		return store.Record{}, err
	}
	return s.Store.Get(ctx, key)
}

func (s *scripted) List(ctx context.Context, prefix string) ([]store.Record, error) {
	if err := s.step("list", prefix); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, prefix)
}

func (s *scripted) Put(ctx context.Context, key string, value []byte, c store.Condition) (store.Record, error) {
	if err := s.step("put", key); err != nil {
		return store.Record{}, err
	}
	return s.Store.Put(ctx, key, value, c)
}
