package open

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn/store"
)

// How long a call takes at most that has no deadline of its own, and how long it
// takes to see that nobody answers at an address.
const (
	patience     = 10 * time.Second
	listPatience = 60 * time.Second
	dialPatience = 5 * time.Second
)

// anyKey is a key, of which no record needs to be there.
const anyKey = "store"

// idle is how long a connection of a pool is kept that is not used: longer than
// between two extensions of a lease.
const idle = 2 * time.Minute

// connections are how many a store has at most where its client has a pool: a
// lease is one small write every few seconds.
const connections = 4

// A bounded store answers within a time, whatever its client does. Its errors name its servers.
type bounded struct {
	store.Store
	servers string // without secrets
}

// locate has an error of the adapter name the servers.
func (b *bounded) locate(err error) error {
	var at interface{ Locate(servers string) }
	if errors.As(err, &at) {
		at.Locate(b.servers)
	}
	return err
}

func patient(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

func (b *bounded) Get(ctx context.Context, key string) (store.Record, error) {
	ctx, cancel := patient(ctx, patience)
	defer cancel()
	r, err := b.Store.Get(ctx, key)
	return r, b.locate(err)
}

func (b *bounded) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	ctx, cancel := patient(ctx, patience)
	defer cancel()
	r, err := b.Store.Put(ctx, key, value, cond)
	return r, b.locate(err)
}

// List may take longer than other calls, because a list may be long. A read of one record goes
// first, so that a server which does not answer is noticed as soon as by other calls.
func (b *bounded) List(ctx context.Context, prefix string) ([]store.Record, error) {
	if _, ok := ctx.Deadline(); !ok {
		if _, err := b.Get(ctx, anyKey); err != nil {
			return nil, err
		}
	}
	ctx, cancel := patient(ctx, listPatience)
	defer cancel()
	all, err := b.Store.List(ctx, prefix)
	return all, b.locate(err)
}

func (b *bounded) Durability(ctx context.Context) (store.Durability, error) {
	ctx, cancel := patient(ctx, patience)
	defer cancel()
	d, err := b.Store.Durability(ctx)
	return d, b.locate(err)
}
