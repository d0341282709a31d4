package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/store"
)

// names are those of a template that clients have asked for. Each is opened when it is first asked for, and
// open until the template is closed: there are at most as many as the template may have.
type names struct {
	store    store.Store
	template string
	options  document.Options

	mu     sync.Mutex
	closed bool
	open   map[string]*name
}

// A name is opened by one request, and others wait for that.
type name struct {
	ready  chan struct{}
	series *document.Series // once it is ready
	err    error
}

// source returns the series of a name. The first request for a name opens it. If that fails, it and the requests that wait get the error, and the next request tries again.
func (n *names) source(ctx context.Context, text string) (*document.Series, error) {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, firn.ErrClosed
	}
	one, there := n.open[text]
	if !there {
		one = &name{ready: make(chan struct{})}
		n.open[text] = one
	}
	n.mu.Unlock()
	if there {
		select {
		case <-one.ready:
			return one.series, one.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	// Others wait for it, so that it does not end with the request that came first.
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookPatience)
	defer cancel()
	o := n.options
	o.Template, o.Names = n.template, 0
	o.Logger = slog.New(slog.DiscardHandler) // what there is to say of the store, opening the template has said
	one.series, one.err = document.Open(asked, n.store, text, &o)
	n.mu.Lock()
	defer n.mu.Unlock()
	defer close(one.ready)
	if one.err != nil {
		delete(n.open, text)
		return nil, one.err
	}
	if n.closed {
		err := one.series.Close()
		one.series, one.err = nil, firn.ErrClosed
		return nil, errors.Join(one.err, err)
	}
	return one.series, nil
}

// final is why a name gives nothing ever again; nil if all may.
func (n *names) final() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.open {
		select {
		case <-one.ready:
			if err := unforgiven(one.series.State().Err); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// close closes all names. The request that is opening a name closes that one.
func (n *names) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	var errs []error
	for _, one := range n.open {
		select {
		case <-one.ready:
			errs = append(errs, one.series.Close())
		default:
		}
	}
	clear(n.open)
	return errors.Join(errs...)
}

// A nameSupply is a name of a template, as clients draw from it.
type nameSupply struct {
	now    *flowing
	series *document.Series
}

func (s nameSupply) Append(ctx context.Context, dst []document.Number, n int) ([]document.Number, error) {
	dst, err := s.series.Append(ctx, dst, n)
	s.now.heed(err)
	return dst, err
}

// named returns what a name of a template draws from.
func (s *supply) named(ctx context.Context, text string) (server.TextSource, error) {
	now, err := s.flow()
	if err != nil {
		return nil, err
	}
	series, err := now.names.source(ctx, text)
	if err != nil {
		now.heed(err)
		return nil, err
	}
	return nameSupply{now, series}, nil
}
