package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/public"
)

// A Value is one answer of a series.
type Value struct {
	ID   firn.ID // 0 of a document that is no number
	Text string  // what stands for the id outside, or a document; empty: the id itself
}

// Number returns the answer as a number, which is not ID where the series has a form. It is false
// of a text that is none.
func (v Value) Number() (firn.ID, bool) {
	if v.Text == "" {
		return v.ID, true
	}
	n, err := strconv.ParseUint(v.Text, 10, 63)
	return firn.ID(n), err == nil && n > 0
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
	// FormName is the name of Form.
	FormName string
	// Reads is the form of texts that are decoded too, though answers are not in it; of a series with a
	// Form it says nothing. A text that is a number is read as an id, and not in it.
	Reads public.Form
	// ReadsName is the name of Reads.
	ReadsName string
	// Pattern is that of documents. Where their texts are numbers, the series has numbers, and
	// may have a Form.
	Pattern *document.Pattern
	// Layout is that of the ids; zero: they are plain numbers.
	Layout firn.Layout

	// Reserve returns one range of n numbers, Step apart. Nil: there are no ranges.
	Reserve func(ctx context.Context, n int) (firn.Range, error)
	// Step is that of the ranges; 0 is 1.
	Step int64

	// Names makes the series a template of documents: it returns the source of one of its names, of
	// which there is no end. The series' own source is not asked. Nil: the series is none.
	Names func(ctx context.Context, name string) (TextSource, error)

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
	full    *trouble // of a template: names are refused
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
	s.options.Pattern, s.options.Names = nil, nil
	if s.options.Form != nil {
		s.options.Reserve = nil
		s.texts = !public.IsNumeric(s.options.Form)
	}
	return s
}

// Texts returns a series of documents. Layout and Reserve are not for it, and Form only where the
// Pattern gives numbers.
func Texts(name string, src TextSource, o *SeriesOptions) *Series {
	s := newSeries(name, o)
	s.options.Layout, s.options.Reserve = firn.Layout{}, nil
	numbers := s.options.Pattern != nil && s.options.Pattern.IsNumeric()
	if !numbers {
		s.options.Form = nil
	}
	s.draw = (&texts{src: src, form: s.options.Form}).draw
	s.texts = !numbers || s.options.Form != nil && !public.IsNumeric(s.options.Form)
	return s
}

func newSeries(name string, o *SeriesOptions) *Series {
	s := &Series{name: name, large: make(chan struct{}, largeDraws), trouble: new(trouble), full: new(trouble)}
	if o != nil {
		s.options = *o
	}
	if s.options.Step == 0 {
		s.options.Step = 1
	}
	s.counts.Store(new(counts))
	return s
}

// named returns the series of a name of a template. All that is counted and told of it is the template's.
func (s *Series) named(name string) *Series {
	one := &Series{name: name, texts: s.texts, options: s.options, large: s.large, trouble: s.trouble, full: s.full}
	one.countOn(s)
	one.draw = func(ctx context.Context, dst []Value, n int) ([]Value, error) {
		src, err := s.options.Names(ctx, name)
		if err != nil {
			return dst, err
		}
		return (&texts{src: src, form: s.options.Form}).draw(ctx, dst, n)
	}
	return one
}

// template returns the series that is a template which a name belongs to, or nil.
func (w *world) template(name string) *Series {
	for _, t := range template.Of(name) {
		if s := w.series[t]; s != nil {
			return s
		}
	}
	return nil
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

// FormName returns the name of the public form that the answers are in; "": they are in none.
func (s *Series) FormName() string {
	if s.options.Form == nil {
		return ""
	}
	return s.options.FormName
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
		dst = append(dst, Value{ID: id, Text: string(text)})
	}
	return dst, err
}

// texts draws documents.
type texts struct {
	src  TextSource
	form public.Form // nil: as they are
}

func (s *texts) draw(ctx context.Context, dst []Value, n int) ([]Value, error) {
	all, err := s.src.Append(ctx, nil, n)
	if err == nil && len(all) != n {
		err = fmt.Errorf("server: the source gave %d texts, not %d", len(all), n)
	}
	for _, one := range all {
		v := Value{ID: one.ID, Text: one.Text}
		if s.form != nil {
			text, failed := s.form.Append(nil, one.ID)
			if failed != nil {
				return dst, failed
			}
			v.Text = string(text)
		} else if one.ID > 0 && one.Text[0] != '0' {
			v.Text = "" // it is the number
		}
		dst = append(dst, v)
	}
	return dst, err
}
