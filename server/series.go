package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/public"
)

// A Value is one answer of a series.
type Value struct {
	ID   firn.ID // 0 where there is a Text
	Text string  // what stands for the id outside, or a document; else empty
}

// Append appends the value as people read it.
func (v Value) Append(dst []byte) []byte {
	if v.Text != "" {
		return append(dst, v.Text...)
	}
	dst, _ = v.ID.AppendText(dst) // a series gives no id that is not positive
	return dst
}

// A TextSource gives documents. A *document.Series is one.
type TextSource interface {
	// Append appends n documents to dst. On an error it returns dst with those it got.
	Append(ctx context.Context, dst []document.Number, n int) ([]document.Number, error)
}

// SeriesOptions: nil, or any zero field, means that the series has no such thing.
type SeriesOptions struct {
	// Form is what ids look like outside: answers are its texts, and only those
	// are decoded. Such a series has no ranges: they would show the ids.
	Form public.Form
	// Layout is that of the ids; zero: they are plain numbers.
	Layout firn.Layout

	// Reserve returns one range of n numbers, Step apart. Nil: there are no ranges.
	Reserve func(ctx context.Context, n int) (firn.Range, error)
	// Step is that of the ranges; 0 is 1.
	Step int64

	// Source is what the series draws from, and says how that is. Nil: nobody knows.
	Source *Source
	// Explain says what is to be said of an error of the source. Nil: what package firn
	// knows of it.
	Explain func(err error) Explanation
}

// A Series is a named stream of numbers or texts. Make one with Numbers or Texts.
// It may be used from many goroutines at once, and be given to one server.
type Series struct {
	name    string
	draw    drawer
	texts   bool
	options SeriesOptions
	counts  atomic.Pointer[counts]
	large   chan struct{} // has one for each large draw
	trouble *trouble
}

// A draw of more than largeDraw values has a buffer that counts. There are largeDraws
// of them at a time, others wait: where thousands come at once, most would only hold
// memory until it is their turn at the source.
const (
	largeDraw  = 256
	largeDraws = 16
)

// A drawer appends n values to dst. On an error it returns dst with those it got.
type drawer func(ctx context.Context, dst []Value, n int) ([]Value, error)

// Numbers returns a series of the ids of a source.
func Numbers(name string, src firn.Source, o *SeriesOptions) *Series {
	s := newSeries(name, o)
	ids := &numbers{src: src, form: s.options.Form}
	ids.spare.New = func() any { return new([]firn.ID) }
	s.draw = ids.draw
	if s.options.Form != nil {
		s.options.Reserve = nil
		_, numeric := s.options.Form.(*public.Cipher)
		s.texts = !numeric
	}
	return s
}

// Texts returns a series of documents. Form, Layout and Reserve are not for it.
func Texts(name string, src TextSource, o *SeriesOptions) *Series {
	s := newSeries(name, o)
	s.options.Form, s.options.Layout, s.options.Reserve = nil, firn.Layout{}, nil
	s.draw = (&texts{src: src}).draw
	s.texts = true
	return s
}

func newSeries(name string, o *SeriesOptions) *Series {
	s := &Series{name: name, large: make(chan struct{}, largeDraws), trouble: new(trouble)}
	if o != nil {
		s.options = *o
	}
	if s.options.Step == 0 {
		s.options.Step = 1
	}
	s.counts.Store(new(counts))
	return s
}

// Name returns the name.
func (s *Series) Name() string { return s.name }

// Numeric reports whether every answer is a positive number of 63 bits, be it in
// a Value's Text.
func (s *Series) Numeric() bool { return !s.texts }

// Step returns how far apart the numbers of a range are; 0 where there are no ranges.
func (s *Series) Step() int64 {
	if s.options.Reserve == nil {
		return 0
	}
	return s.options.Step
}

// Layout returns the layout of the ids; zero: they are plain numbers, or texts.
func (s *Series) Layout() firn.Layout { return s.options.Layout }

// State says how the source of the series is now; the zero State where nobody knows.
func (s *Series) State() State { return s.options.Source.now() }

// take draws n values when it is their turn.
func (s *Series) take(ctx context.Context, dst []Value, n int) ([]Value, error) {
	if n > largeDraw {
		select {
		case s.large <- struct{}{}:
			defer func() { <-s.large }()
			dst = slices.Grow(dst, n)
		case <-ctx.Done():
			return dst, ctx.Err()
		}
	}
	return s.draw(ctx, dst, n)
}

// takeEach draws the values of several requests, of which the first ones have got had
// values already: all at once, or where that fails one request after another, so that
// the first ones get what there is.
func (s *Series) takeEach(ctx context.Context, dst []Value, each []int, had int) ([]Value, error) {
	n := -had
	for _, one := range each {
		n += one
	}
	all, err := s.take(ctx, dst, n)
	if err == nil || len(each) == 1 || len(all) > len(dst) {
		return all, err
	}
	for _, one := range each {
		given := min(had, one)
		had -= given
		if one == given {
			continue
		}
		if dst, err = s.take(ctx, dst, one-given); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// failed is what becomes of an error of the source, which was asked for a name.
func (s *Series) failed(name string, err error, o *Options) error {
	e := &SourceError{Series: name, Err: err, Since: o.Now()}
	if s.options.Explain != nil {
		e.Explanation = s.options.Explain(err)
	} else {
		e.Explanation = explain(err)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return e // whoever asked has gone: that is no trouble of the source
	case e.TooMany:
		e.Since = time.Time{}
		return e // others are served
	}
	var tell bool
	if e.Since, tell = s.trouble.begins(e.Since); tell {
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
	err := s.State().Ready(now)
	var e *UnreadyError
	if errors.As(err, &e) && e.Err != nil && s.options.Explain != nil {
		e.Hint = s.options.Explain(e.Err).Hint
	}
	return err
}

// resumed says that a request for a name was answered.
func (s *Series) resumed(name string, o *Options) {
	if began, told := s.trouble.over(); told {
		o.Logger.Info("the series issues again", "series", name, "since", instant(began), "after", o.Now().Sub(began).Round(time.Millisecond))
	}
}

// A trouble is a time in which all requests fail. Series of one source share theirs.
type trouble struct {
	since, told atomic.Int64 // in nanoseconds since 1970; 0: there is none, or nobody was told
	known       atomic.Bool  // the log was told of this one, and is told when it is over
}

// tellEvery is how often the log is told of the same trouble.
const tellEvery = time.Minute

// begins returns when the trouble began, and whether it is time to tell of it.
func (t *trouble) begins(now time.Time) (since time.Time, tell bool) {
	at := now.UnixNano()
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

// over says that a request was answered. It returns when the trouble began that is over
// now, and whether the log was told of it.
func (t *trouble) over() (began time.Time, told bool) {
	if t.since.Load() == 0 {
		return time.Time{}, false
	}
	at := t.since.Swap(0)
	return time.Unix(0, at), at != 0 && t.known.Swap(false)
}

// numbers draws ids.
type numbers struct {
	src   firn.Source
	form  public.Form // nil: as they are
	spare sync.Pool   // of *[]firn.ID
}

func (s *numbers) draw(ctx context.Context, dst []Value, n int) ([]Value, error) {
	buf := s.spare.Get().(*[]firn.ID)
	defer s.spare.Put(buf)
	ids, err := s.src.Append(ctx, (*buf)[:0], n)
	*buf = ids
	if err == nil && len(ids) != n {
		err = fmt.Errorf("server: the source gave %d ids, not %d", len(ids), n)
	}
	for _, id := range ids {
		if id <= 0 {
			return dst, fmt.Errorf("server: the source gave %d, which is no id", int64(id))
		}
		if s.form == nil {
			dst = append(dst, Value{ID: id})
			continue
		}
		text, failed := s.form.Append(nil, id)
		if failed != nil {
			return dst, failed
		}
		dst = append(dst, Value{Text: string(text)})
	}
	return dst, err
}

// texts draws documents.
type texts struct{ src TextSource }

func (s *texts) draw(ctx context.Context, dst []Value, n int) ([]Value, error) {
	all, err := s.src.Append(ctx, nil, n)
	if err == nil && len(all) != n {
		err = fmt.Errorf("server: the source gave %d texts, not %d", len(all), n)
	}
	for _, one := range all {
		dst = append(dst, Value{Text: one.Text})
	}
	return dst, err
}
