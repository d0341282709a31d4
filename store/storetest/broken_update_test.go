package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/firn-id/firn/store"
)

// holds has what one waits for who holds a record, for each broken store.
var holds sync.Map

var _ store.Updater = (*handle)(nil)

// Update holds all records of the store.
func (h *handle) Update(ctx context.Context, key string, f func(store.Record) ([]byte, error)) (store.Record, error) {
	made, _ := holds.LoadOrStore(h.broken, make(chan struct{}, 1))
	hold := made.(chan struct{})
	if !h.has("update holds nothing") {
		select {
		case hold <- struct{}{}:
			defer func() { <-hold }()
		case <-ctx.Done():
			if h.has("update of who gave up") {
				if _, err := f(store.Record{Key: key}); err != nil {
					return store.Record{}, err
				}
			}
			return store.Record{}, ctx.Err()
		}
	}
	r, err := h.Get(ctx, key)
	if err != nil {
		return store.Record{}, err
	}
	value, err := f(r)
	if err != nil && !h.has("update of what was refused") {
		return store.Record{}, err
	}
	if h.has("update calls twice") {
		if value, err = f(r); err != nil {
			return store.Record{}, err
		}
	}
	next, e := h.Put(ctx, key, value, store.Condition{Version: r.Version})
	if e != nil && h.has("update forgets what it tried") {
		return store.Record{}, e
	}
	return next, errors.Join(e, err)
}
