package open

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
)

// A lazy store is opened by its first call, because its client logs in when it is
// made: a server that is away must be an error of the call, which can be made again.
type lazy struct {
	name string
	open func(context.Context) (store.Store, func() error, error)

	slot chan *opened // one; nil until it is open
}

type opened struct {
	store.Store
	close func() error
}

func newLazy(name string, open func(context.Context) (store.Store, func() error, error)) *lazy {
	l := &lazy{name: name, open: open, slot: make(chan *opened, 1)}
	l.slot <- nil
	return l
}

var errClosed = errors.New("the store is closed")

func (l *lazy) get(ctx context.Context) (store.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var o *opened
	select {
	case o = <-l.slot:
	case <-ctx.Done():
		return nil, fmt.Errorf("store/open: %s: nobody has let us in yet: %w", l.name, ctx.Err())
	}
	defer func() { l.slot <- o }()
	switch {
	case o == nil:
		s, closer, err := l.open(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return nil, fmt.Errorf("store/open: %s: no server answers; is it running, and is the address right? (%w)", l.name, err)
		case errors.Is(err, context.Canceled):
			return nil, fmt.Errorf("store/open: %s: given up before the server has let us in: %w", l.name, err)
		case err != nil:
			return nil, fmt.Errorf("store/open: %s: the server does not let us in: %w", l.name, err)
		}
		o = &opened{s, closer}
	case o.Store == nil:
		return nil, errClosed
	}
	return o.Store, nil
}

func (l *lazy) close() (err error) {
	if o := <-l.slot; o != nil && o.close != nil {
		err = o.close()
	}
	l.slot <- &opened{}
	return err
}

func (l *lazy) Get(ctx context.Context, key string) (store.Record, error) {
	s, err := l.get(ctx)
	if err != nil {
		return store.Record{}, err
	}
	return s.Get(ctx, key)
}

func (l *lazy) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Record, error) {
	s, err := l.get(ctx)
	if err != nil {
		return store.Record{}, err
	}
	return s.Put(ctx, key, value, cond)
}

func (l *lazy) List(ctx context.Context, prefix string) ([]store.Record, error) {
	s, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return s.List(ctx, prefix)
}

func (l *lazy) Durability(ctx context.Context) (store.Durability, error) {
	s, err := l.get(ctx)
	if err != nil {
		return store.Durability{}, err
	}
	return s.Durability(ctx)
}
