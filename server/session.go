package server

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
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

// Explain returns what the session may be told of an error, and what can be done about it,
// "" if nothing is to be said. The cause of a *SourceError is for those who have the right
// Admin to the series. Fewer says how a client of a protocol asks a series for the n values that
// it has left, where a request asked for more. Nil means that the hint names no request.
func (x *Session) Explain(err error, fewer func(series string, n int64) string) (text, hint string) {
	text, hint = phrase.Reason(err), Hint(err)
	var source *SourceError
	if !errors.As(err, &source) {
		return text, hint
	}
	if source.Left > 0 && fewer != nil {
		hint = fewer(source.Series, source.Left)
	}
	if x.Can(source.Series, Admin) != nil {
		return text, hint
	}
	text = Details(source)
	if source.Left == 0 {
		return text, source.Hint
	}
	return text, strings.TrimSuffix(hint+"; "+source.Hint, "; ")
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
		v.count(s, asked, len(dst)-before, time.Since(start), failed)
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
				v.count(s, 1, 0, time.Since(start), err)
			}
			return s.failed(series, err, &v.options)
		}
		s.resumed(series, &v.options)
		v.count(s, 1, n, time.Since(start), nil)
		return nil
	})
	return r, err
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
