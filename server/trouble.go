package server

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/document"
)

// failed is what becomes of an error of the source, which was asked for a name.
func (s *Series) failed(name string, err error, o *Options) error {
	e := &SourceError{Series: name, Err: err, Since: o.Now()}
	if s.options.Explain != nil {
		e.Explanation = s.options.Explain(err)
	} else {
		e.Explanation = explain(err)
	}
	var full *document.FullError
	if errors.As(err, &full) {
		e.Since = time.Time{} // other names are served
		if _, tell := s.full.begins(o.Now()); tell {
			o.Logger.Warn("a template has no room for another name", withHint(e.Hint, "series", name, "template", full.Template, "names", full.Names)...)
		}
		return e
	}
	switch {
	case errors.Is(err, context.Canceled):
		return e // whoever asked has gone: that is no trouble of the source
	case e.Left > 0 || e.NameOnly:
		e.Since = time.Time{}
		return e // others are served
	}
	since, tell := s.trouble.begins(e.Since)
	if e.Since = since; !e.Began.IsZero() && e.Began.Before(since) {
		e.Since = e.Began
	}
	if tell {
		o.Logger.Warn("a series cannot issue", withHint(e.Hint, "series", name, "since", instant(e.Since), "err", err)...)
	}
	return e
}

// withHint adds a hint to the attributes of a log line, if there is one.
func withHint(hint string, attrs ...any) []any {
	if hint == "" {
		return attrs
	}
	return append(attrs, "hint", hint)
}

// ready is Ready of the series' state, with what can be done about it.
func (s *Series) ready(now time.Time) error {
	st := s.State()
	err := st.Ready(now)
	if err == nil {
		s.trouble.unready.Store(0)
		return nil
	}
	if st.Err != nil && !st.StoreAway && st.TroubleSince.IsZero() {
		st.TroubleSince = s.trouble.seen(now)
		err = st.Ready(now)
	}
	var e *UnreadyError
	if errors.As(err, &e) && e.Err != nil && s.options.Explain != nil {
		e.Hint = s.options.Explain(e.Err).Hint
	}
	return err
}

// resumed says that a request for a name was answered. When the source could have answered one,
// nobody knows: only when requests failed.
func (s *Series) resumed(name string, o *Options) {
	if began, last, told := s.trouble.over(); told {
		o.Logger.Info("the series issues again", "series", name, "since", instant(began), "last_failure", instant(last))
	}
}

// A trouble is a time in which all requests fail. Series of one source share theirs.
type trouble struct {
	since, last, told atomic.Int64 // the first failure, the last one, and when the log was told, in nanoseconds since 1970; 0: never
	known             atomic.Bool  // the log was told of this one, and is told when it is over
	unready           atomic.Int64 // when the server first saw that the series is not ready, in nanoseconds since 1970; 0: it is
}

// seen returns when the server first saw that a series is not ready which is not ready now. Series that
// end together have one time, so that Ready names them together.
func (t *trouble) seen(now time.Time) time.Time {
	if t.unready.CompareAndSwap(0, now.UnixNano()) {
		return now
	}
	if at := t.unready.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return now // it became ready meanwhile
}

// tellEvery is how often the log is told of the same trouble.
const tellEvery = time.Minute

// begins returns when the trouble began, and whether it is time to tell of it.
func (t *trouble) begins(now time.Time) (since time.Time, tell bool) {
	at := now.UnixNano()
	t.last.Store(at)
	t.since.CompareAndSwap(0, at)
	if first := t.since.Load(); first != 0 {
		since = time.Unix(0, first)
	} else {
		since = now
	}
	told := t.told.Load()
	tell = (told == 0 || at-told >= int64(tellEvery)) && t.told.CompareAndSwap(told, at)
	if tell {
		t.known.Store(true)
	}
	return since, tell
}

// over says that a request was answered. It returns when the trouble began that is over now,
// when a request failed last, and whether the log was told of it.
func (t *trouble) over() (began, last time.Time, told bool) {
	if t.since.Load() == 0 {
		return time.Time{}, time.Time{}, false
	}
	at := t.since.Swap(0)
	return time.Unix(0, at), time.Unix(0, t.last.Load()), at != 0 && t.known.Swap(false)
}
