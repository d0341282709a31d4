package server

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/phrase"
)

// A Session is what one connection, or one request, may do. All methods may be
// called from many goroutines at once.
type Session struct {
	server *Server
	hash   [32]byte
	named  bool // it was entered with a token
	view   atomic.Pointer[view]
}

// A view is a session in one world.
type view struct {
	*world
	token *Token                 // nil: there is none, or not any more
	last  atomic.Pointer[Series] // that was looked up with the right to issue
}

// Enter returns the session of a token. Without tokens in the server, "" may do
// everything; with them, nothing. A token that is not known is ErrToken. Rights are those
// of the server's tokens at each request: a session that is there when Replace brings the
// first tokens may do nothing from then on, and one that is there when Replace takes away
// all tokens may do everything.
func (s *Server) Enter(token string) (*Session, error) {
	x := &Session{server: s, named: token != ""}
	if x.named {
		x.hash = HashToken(token)
		if x.look().token == nil {
			return nil, ErrToken
		}
	}
	return x, nil
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

// can returns why the session may not do something with a series, or nil.
func (x *Session) can(v *view, series string, r Right) error {
	switch {
	case len(v.tokens) == 0: // also where Replace has taken away the one that it was entered with
		return nil
	case v.token != nil && v.token.rights(series)&r == r:
		return nil
	case v.token != nil:
		return ErrDenied
	case x.named:
		return ErrToken
	}
	return ErrNoToken
}

// Can returns nil where the session has a right to a series, else ErrNoToken,
// ErrToken or ErrDenied. The series "*" is all that are not named in its token,
// and the server itself.
func (x *Session) Can(series string, r Right) error { return x.can(x.look(), series, r) }

// Explain returns what the session may be told of an error, and what can be done about it,
// "" if nothing is to be said. The cause of a *SourceError is for those who have the right
// Admin to the series.
func (x *Session) Explain(err error) (text, hint string) {
	var source *SourceError
	if errors.As(err, &source) && x.Can(source.Series, Admin) == nil {
		return Details(source), source.Hint
	}
	return phrase.Reason(err), Hint(err)
}

// Name returns the name of the session's token, "" where it has none.
func (x *Session) Name() string {
	if t := x.look().token; t != nil {
		return t.Name
	}
	return ""
}

// Next appends n values of a series to dst. On an error it returns dst as it was:
// what a flake gave until then is used up; a series that counts uses up nothing.
//
// Errors: *NameError, *NoSeriesError, *LimitError, ErrNoToken, ErrToken, ErrDenied,
// and [*SourceError]s. [Retry] says which of them to come again with.
func (x *Session) Next(ctx context.Context, series string, dst []Value, n int) ([]Value, error) {
	each := [1]int{n}
	all, err := x.Gather(ctx, series, dst, each[:])
	if err != nil {
		return dst, err
	}
	return all, nil
}

// Gather is Next for several requests that came together and are answered together: the
// first wants each[0] values, and so on. On an error it returns dst with what the series
// gave until then, so that the first of them can be answered.
func (x *Session) Gather(ctx context.Context, series string, dst []Value, each []int) ([]Value, error) {
	had, n := len(dst), 0
	for _, one := range each {
		n += one
	}
	err := x.use(ctx, series, len(each), func(v *view, s *Series) error {
		if n < 1 || n > v.options.MaxBatch {
			return &LimitError{What: "n", Asked: int64(n), Max: int64(v.options.MaxBatch)}
		}
		start := time.Now()
		before := len(dst)
		all, err := s.takeEach(ctx, dst, each, before-had)
		dst = all
		asked, failed := len(each), err
		if err != nil && x.replaced(ctx, v) {
			asked, failed = 0, nil // it will be asked again, and is counted then
		}
		s.counts.Load().add(asked, len(dst)-before, time.Since(start), failed)
		if err != nil {
			return s.failed(series, err, &v.options)
		}
		s.resumed(series, &v.options)
		return nil
	})
	return dst, err
}

// Reserve returns one range of n numbers of a series, which are used up whatever
// becomes of them. Errors are those of Next, and ErrNoRange.
func (x *Session) Reserve(ctx context.Context, series string, n int) (r firn.Range, err error) {
	err = x.use(ctx, series, 1, func(v *view, s *Series) error {
		if s.options.Reserve == nil {
			return ErrNoRange
		}
		if n < 1 || n > v.options.MaxRange {
			return &LimitError{What: "n", Asked: int64(n), Max: int64(v.options.MaxRange)}
		}
		start := time.Now()
		var err error
		r, err = s.options.Reserve(ctx, n)
		if err == nil && (r.First <= 0 || r.Count != n || r.Step != s.options.Step) {
			err = errors.New("server: the source gave another range than was asked for")
		}
		if err != nil {
			r = firn.Range{}
			if !x.replaced(ctx, v) {
				s.counts.Load().add(1, 0, time.Since(start), err)
			}
			return s.failed(series, err, &v.options)
		}
		s.resumed(series, &v.options)
		s.counts.Load().add(1, n, time.Since(start), nil)
		return nil
	})
	return r, err
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

// All returns the series that the session has a right to, as [Server.All] does.
func (x *Session) All(r Right) []*Series {
	v := x.look()
	var all []*Series
	for _, s := range v.all() {
		if x.can(v, s.name, r) == nil {
			all = append(all, s)
		}
	}
	return all
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
	if s := v.series[name]; s != nil {
		return s, nil
	}
	if err := CheckName(name); err != nil {
		return nil, err
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
