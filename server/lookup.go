package server

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/firn-id/firn/internal/nearest"
)

// A view is a session in one world.
type view struct {
	*world
	token *Token                 // nil: there is none, or not any more
	last  atomic.Pointer[Series] // that was looked up with the right to issue
}

// look returns the view in the world of now.
func (x *Session) look() *view {
	w := x.server.now.Load()
	if v := x.view.Load(); v != nil && v.world == w {
		return v
	}
	v := &view{world: w}
	if x.named {
		v.token = w.find(x.hash)
	}
	x.view.Store(v)
	return v
}

// Series returns a series that the session has a right to, for so many requests,
// which count where they are refused. Errors are those of Next.
func (x *Session) Series(ctx context.Context, name string, r Right, requests int) (*Series, error) {
	for {
		s, err := x.lookup(x.look(), name, r)
		if errors.Is(err, errReplaced) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			x.server.refused.Add(uint64(requests))
		}
		return s, err
	}
}

// use calls do with the series, for so many requests. It does so again when Replace has taken the series
// away meanwhile, whose source may be closed.
func (x *Session) use(ctx context.Context, name string, requests int, do func(*view, *Series) error) error {
	for {
		v := x.look()
		s, err := x.lookup(v, name, Issue)
		if errors.Is(err, errReplaced) && ctx.Err() == nil {
			continue
		}
		if err == nil {
			err = do(v, s)
			var source *SourceError
			if errors.As(err, &source) {
				if x.replaced(ctx, v) {
					continue
				}
				return err
			}
		}
		if err != nil {
			x.server.refused.Add(uint64(requests))
		}
		return err
	}
}

// replaced reports whether Replace has taken a view's series away, so that what has
// failed is asked of others.
func (x *Session) replaced(ctx context.Context, v *view) bool {
	return x.server.now.Load() != v.world && ctx.Err() == nil
}

// errReplaced says that a name was not found in a view whose series Replace has taken away
// meanwhile: look again.
var errReplaced = errors.New("server: the series were replaced at this moment")

// lookup finds a series. Most are the one of the request before.
func (x *Session) lookup(v *view, name string, r Right) (*Series, error) {
	if s := v.last.Load(); s != nil && s.name == name && r == Issue {
		return s, nil
	}
	s, err := x.find(v, name, r)
	if err == nil && r == Issue && s.name == name {
		v.last.Store(s)
	}
	return s, err
}

func (x *Session) find(v *view, name string, r Right) (*Series, error) {
	if err := x.can(v, name, r); err != nil {
		return nil, err
	}
	if s := v.series[name]; s != nil && s.options.Names == nil {
		return s, nil
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if t := v.template(name); t != nil {
		return t.named(name), nil
	}
	// A name that stands for something of its own, such as a counter of the store, has
	// to be found here: what follows takes every name for one that somebody made up.
	if v.options.Others != nil {
		s, err := v.others.series(name)
		if err != nil && x.server.now.Load() != v.world {
			return nil, errReplaced
		}
		var none *NoSeriesError
		if errors.As(err, &none) {
			near := none.Nearest
			if x.can(v, near, r) != nil { // it is none of this client's
				near = ""
			}
			return nil, &NoSeriesError{Name: name, Nearest: near}
		}
		if err != nil {
			return nil, v.others.rest.failed(name, err, &v.options)
		}
		return s, nil
	}
	known := slices.DeleteFunc(slices.Clone(v.names), func(have string) bool { return x.can(v, have, r) != nil })
	return nil, &NoSeriesError{Name: name, Nearest: nearest.Name(name, known)}
}
