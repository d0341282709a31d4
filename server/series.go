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
	"github.com/firn-id/firn/public"
	"github.com/firn-id/firn/serial"
)

// A Value is one answer of a series.
type Value struct {
	ID   firn.ID // 0 where there is a Text
	Text string  // what stands for the id outside, or a serial; else empty
}

// Append appends the value as people read it.
func (v Value) Append(dst []byte) []byte {
	if v.Text != "" {
		return append(dst, v.Text...)
	}
	dst, _ = v.ID.AppendText(dst) // a series gives no id that is not positive
	return dst
}

// A TextSource gives serials. A *serial.Series is one.
type TextSource interface {
	// Append appends n serials to dst. On an error it returns dst with those it got.
	Append(ctx context.Context, dst []serial.Serial, n int) ([]serial.Serial, error)
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

	// State says how the source is. It is called often, and does not wait.
	State func() State
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

// Texts returns a series of serials. Form, Layout and Reserve are not for it.
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

// State says how the series is now; the zero State where nobody knows.
func (s *Series) State() State {
	if s.options.State == nil {
		return State{}
	}
	return s.options.State()
}

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

// failed is what becomes of an error of the source, which was asked for a name.
func (s *Series) failed(name string, err error, o *Options) error {
	e := &SourceError{Series: name, Err: err, Since: o.Now()}
	if s.options.Explain != nil {
		e.Explanation = s.options.Explain(err)
	} else {
		e.Explanation = explain(err)
	}
	if errors.Is(err, context.Canceled) {
		return e // whoever asked has gone: that is no trouble of the source
	}
	var tell bool
	if e.Since, tell = s.trouble.begins(e.Since); tell {
		o.Logger.Warn("a series cannot issue", "series", name, "since", instant(e.Since), "err", err, "hint", e.Hint)
	}
	return e
}

// A trouble is a time in which all requests fail. Series of one source share theirs.
type trouble struct {
	since, told atomic.Int64 // in nanoseconds since 1970; 0: there is none, or nobody was told
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
	return since, (told == 0 || at-told >= int64(tellEvery)) && t.told.CompareAndSwap(told, at)
}

// over says that a request was answered.
func (t *trouble) over() {
	if t.since.Load() != 0 {
		t.since.Store(0)
	}
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
		text, failed := public.Text(s.form, id)
		if failed != nil {
			return dst, failed
		}
		dst = append(dst, Value{Text: text})
	}
	return dst, err
}

// texts draws serials.
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
