package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/public"
)

// A source gives what is printed, some at a time.
type source interface {
	// draw draws n in place of those drawn before. With an error it has what it got.
	draw(ctx context.Context, n int) error
	// drawn is how many it has.
	drawn() int
	// appendLine appends the line of one of them.
	appendLine(dst []byte, i int) ([]byte, error)
	// longest is how long a line is at most, about.
	longest() int
}

// An idSource gives ids.
type idSource struct {
	src  firn.Source
	json bool
	kind string       // printed with JSON; empty: it is not
	form public.Form  // nil: none
	spec *config.Form // of form

	ids  []firn.ID
	text []byte
}

func (s *idSource) drawn() int { return len(s.ids) }

func (s *idSource) draw(ctx context.Context, n int) (err error) {
	s.ids, err = s.src.Append(ctx, s.ids[:0], n)
	return err
}

func (s *idSource) longest() int {
	n := len("9223372036854775807\n")
	if s.json {
		n += len(`{"id":""}`)
	}
	if s.form != nil {
		n += 100
	}
	return n
}

func (s *idSource) appendLine(dst []byte, i int) (_ []byte, err error) {
	id := s.ids[i]
	switch {
	case !s.json && s.form != nil:
		if dst, err = s.form.Append(dst, id); err != nil {
			return dst, err
		}
		return append(dst, '\n'), nil
	case !s.json:
		return append(strconv.AppendInt(dst, int64(id), 10), '\n'), nil
	}
	dst = append(dst, `{"id":"`...)
	dst = append(strconv.AppendInt(dst, int64(id), 10), '"')
	if s.kind != "" {
		dst = append(append(append(dst, `,"kind":"`...), s.kind...), '"')
	}
	if s.form != nil {
		if s.text, err = s.form.Append(s.text[:0], id); err != nil {
			return dst, err
		}
		dst = appendFormJSON(dst, s.spec.Kind.Name, s.spec.Series, string(s.text))
	}
	return append(dst, "}\n"...), nil
}

// A textSource gives the texts of a document.
type textSource struct {
	src  *document.Series
	json bool
	form public.Form // in which texts that are numbers are printed; nil: as they are
	spec *config.Form
	got  []document.Number
}

func (s *textSource) drawn() int { return len(s.got) }

func (s *textSource) draw(ctx context.Context, n int) (err error) {
	s.got, err = s.src.Append(ctx, s.got[:0], n)
	return err
}

func (s *textSource) longest() int {
	if s.json {
		return 400
	}
	return 100
}

// A textLine is a document as --json prints it.
type textLine struct {
	Text   string `json:"text"`
	Kind   string `json:"kind"`
	Period string `json:"period,omitempty"`
	Count  int64  `json:"count,string"`
	ID     int64  `json:"id,string,omitempty"` // of digits only
	Form   string `json:"form,omitempty"`      // that Text is in
	Series string `json:"series,omitempty"`    // where there is a form, or it was read
}

func (s *textSource) appendLine(dst []byte, i int) (_ []byte, err error) {
	one := s.got[i]
	line := textLine{Text: one.Text, Kind: config.Document, Period: one.Period, Count: one.Count, ID: int64(one.ID)}
	if s.form != nil {
		text, err := s.form.Append(nil, one.ID)
		if err != nil {
			return dst, err
		}
		line.Text, line.Form, line.Series = string(text), s.spec.Kind.Name, s.spec.Series
	}
	if !s.json {
		return append(append(dst, line.Text...), '\n'), nil
	}
	b, err := json.Marshal(line)
	return append(append(dst, b...), '\n'), err
}

// A printer prints what a source gives as lines.
type printer struct {
	out   io.Writer
	src   source
	batch int // lines drawn at a time
	// A pipe takes so many bytes whole or not at all. So nobody ever reads half
	// a line, even if this process is killed while the reader is slow.
	whole   int
	written atomic.Int64 // lines
	line    []byte
}

// newPrinter makes the printer of ids that come at most at this rate.
func newPrinter(out io.Writer, src source, rate float64) *printer {
	whole := 512 // what POSIX promises
	if runtime.GOOS == "linux" {
		whole = 4096
	}
	// A slow layout prints what it has 20 times a second.
	batch := max(1, int(min(float64(whole/src.longest()), math.Ceil(rate/20))))
	return &printer{out: out, src: src, batch: batch, whole: whole}
}

// stuck is how long a write may go on after a signal: longer means that nobody
// reads, and nobody may ever.
const stuck = 200 * time.Millisecond

// runUntil prints n ids, or fewer if ctx is done.
func (p *printer) runUntil(ctx context.Context, n int64) error {
	done := make(chan error, 1)
	go func() { done <- p.print(ctx, n) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(stuck):
		return ctx.Err()
	}
}

func (p *printer) print(ctx context.Context, n int64) error {
	for left := n; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := p.src.draw(ctx, int(min(left, int64(p.batch))))
		if err := p.write(); err != nil {
			if errors.Is(err, ui.ErrNoReader) {
				return err
			}
			return p.incomplete(err, n)
		}
		if err != nil {
			return p.incomplete(err, n)
		}
		left -= int64(p.src.drawn())
	}
	return nil
}

// incomplete adds to an error how many of n ids were written before it.
func (p *printer) incomplete(err error, n int64) error {
	var f *ui.Failure
	if !errors.As(err, &f) {
		f = classify(err)
	}
	f.Err = fmt.Errorf("%w; %s of %s ids were written", err, phrase.Count(p.written.Load()), phrase.Count(n))
	return f
}

// write prints what was drawn, and counts what went out whole.
func (p *printer) write() error {
	p.line = p.line[:0]
	for i := range p.src.drawn() {
		before := len(p.line)
		var err error
		if p.line, err = p.src.appendLine(p.line, i); err != nil {
			return errors.Join(p.flush(p.line[:before]), err)
		}
		if before > 0 && len(p.line) > p.whole {
			if err := p.flush(p.line[:before]); err != nil {
				return err
			}
			p.line = append(p.line[:0], p.line[before:]...)
		}
	}
	return p.flush(p.line)
}

// flush prints lines by one write.
func (p *printer) flush(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	n, err := p.out.Write(lines)
	p.written.Add(int64(bytes.Count(lines[:n], []byte{'\n'})))
	return err
}
